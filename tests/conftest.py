"""Servers for all tests.

``server`` is one real server for the whole run: tests name their streams so that they cannot
meet. ``server_factory`` starts further ones, which end with the test. ``TWINSTREAM_SERVER`` names
an older release for all of them (`make versions`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from js_testing import NatsCluster, NatsServer

VERSION = os.environ.get("TWINSTREAM_SERVER")


@pytest.fixture(scope="session")
def server() -> Iterator[NatsServer]:
    """One real server with JetStream, shared by the whole run."""
    with NatsServer(version=VERSION) as running:
        yield running


@pytest.fixture
def server_factory() -> Iterator[Callable[..., NatsServer]]:
    """Starts servers with the arguments of :class:`js_testing.NatsServer`."""
    with ExitStack() as stack:

        def start(*args: Any, **options: Any) -> NatsServer:
            options.setdefault("version", VERSION)
            return stack.enter_context(NatsServer(*args, **options))

        yield start


@pytest.fixture(scope="session")
def cluster() -> Iterator[NatsCluster]:
    """Three real servers that know each other, shared by the whole run."""
    with NatsCluster(version=VERSION) as running:
        yield running


@pytest.fixture(autouse=True)
def since(request: pytest.FixtureRequest) -> None:
    """Skip tests marked `since("2.14")` on a server that is older."""
    marker = request.node.get_closest_marker("since")
    if marker is not None and VERSION is not None:
        wanted = tuple(map(int, marker.args[0].split(".")))
        if tuple(map(int, VERSION.split(".")))[: len(wanted)] < wanted:
            pytest.skip(f"needs server {marker.args[0]}, this is {VERSION}")
