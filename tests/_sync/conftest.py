"""Opens JetStream for the generated scenarios."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import Any

import pytest

import js_sync
from tests.unhurried import long_limits
from twinstream.testing import NatsServer

_NUMBERS = count(1)


@pytest.fixture(autouse=True)
def unhurried() -> Iterator[None]:
    """Give calls more time by default: a test sets the limit itself if a call is to be late."""
    with long_limits(js_sync.connect):
        yield


Opened = Callable[..., AbstractContextManager[js_sync.JetStream]]


@pytest.fixture
def opened(server: NatsServer) -> Opened:
    """Opens the JetStream API: `with opened() as jet`."""

    @contextmanager
    def own(**options: Any) -> Generator[js_sync.JetStream]:
        with js_sync.connect(server.url) as connection:
            yield connection.jetstream(**options)

    return own


@pytest.fixture
def name() -> str:
    """A name for a stream that no other test uses."""
    return f"S{next(_NUMBERS)}"
