"""Servers for all tests.

``server`` is one real server for the whole run: tests name their streams so that they cannot
meet. ``server_factory`` starts further ones, which end with the test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from js_testing import NatsCluster, NatsServer


@pytest.fixture(scope="session")
def server() -> Iterator[NatsServer]:
    """One real server with JetStream, shared by the whole run."""
    with NatsServer() as running:
        yield running


@pytest.fixture
def server_factory() -> Iterator[Callable[..., NatsServer]]:
    """Starts servers with the arguments of :class:`js_testing.NatsServer`."""
    with ExitStack() as stack:

        def start(*args: Any, **options: Any) -> NatsServer:
            return stack.enter_context(NatsServer(*args, **options))

        yield start


@pytest.fixture(scope="session")
def cluster() -> Iterator[NatsCluster]:
    """Three real servers that know each other, shared by the whole run."""
    with NatsCluster() as running:
        yield running
