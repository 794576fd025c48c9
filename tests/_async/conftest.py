"""Run test coroutines, and open JetStream over each kind of connection."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from typing import Any

import nats
import pytest

import js_async
from tests.soak import LONGEST
from tests.unhurried import LIMIT, long_limits
from twinstream.testing import NatsServer

_NUMBERS = count(1)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test coroutine to its end in its own event loop."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}

    async def bounded() -> None:
        async with asyncio.timeout(LONGEST) as timeout:
            await pyfuncitem.obj(**arguments)
        # The test may have taken the cancellation for one of its own.
        assert not timeout.expired(), f"the test did not end within {LONGEST:g} s"

    asyncio.run(bounded())
    return True


@pytest.fixture(autouse=True)
def unhurried() -> Iterator[None]:
    """Give calls more time by default: a test sets the limit itself if a call is to be late."""
    with long_limits(js_async.connect):
        yield


Opened = Callable[..., AbstractAsyncContextManager[js_async.JetStream]]


@pytest.fixture(params=["own connection", "nats-py connection"])
def opened(request: pytest.FixtureRequest, server: NatsServer) -> Opened:
    """Open the JetStream API: `async with opened() as jet`."""

    @asynccontextmanager
    async def own(**options: Any) -> AsyncGenerator[js_async.JetStream]:
        async with js_async.connect(server.url) as connection:
            yield connection.jetstream(**options)

    @asynccontextmanager
    async def over_nats_py(**options: Any) -> AsyncGenerator[js_async.JetStream]:
        client = await nats.connect(server.url)
        try:
            yield js_async.from_nats(client, **{"timeout": LIMIT} | options)
        finally:
            await client.close()

    return own if request.param == "own connection" else over_nats_py


@pytest.fixture
def name() -> str:
    """A stream name that no other test uses."""
    return f"A{next(_NUMBERS)}"
