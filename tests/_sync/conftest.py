"""Opens JetStream for the generated scenarios."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import Any

import pytest

import js_sync
from twinstream.testing import NatsServer

_NUMBERS = count(1)

Opened = Callable[..., AbstractContextManager[js_sync.JetStream]]


@pytest.fixture
def opened(server: NatsServer) -> Opened:
    """Opens the JetStream API: `with opened() as jet`."""

    # What a test does not want to be late is not to fail where the machine is slow.
    unhurried = {"timeout": 10}

    @contextmanager
    def own(**options: Any) -> Generator[js_sync.JetStream]:
        with js_sync.connect(server.url) as connection:
            yield connection.jetstream(**unhurried | options)

    return own


@pytest.fixture
def name() -> str:
    """A name for a stream that no other test uses."""
    return f"S{next(_NUMBERS)}"
