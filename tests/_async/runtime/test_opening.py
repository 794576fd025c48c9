"""Objects that `await` and `async with` open."""

from __future__ import annotations

import asyncio

import pytest

import js_async as js
import js_async.publish.publisher
from twinstream.testing import FakePeer, FakeServer


async def test_use_before_await_is_explained(server):
    connecting = js.connect(server.url)
    with pytest.raises(AttributeError, match=r"jetstream is not available .* await it"):
        connecting.jetstream()
    async with connecting as connection:
        assert connection.is_connected


async def test_what_is_opened_may_be_opened_by_a_task(server):
    async with js.connect(server.url) as connection:
        task = asyncio.create_task(connection.subscribe("a"))
        assert "Opening" in repr(task)
        async with asyncio.TaskGroup() as group:
            other = group.create_task(js.connect(server.url))
        gathered = await asyncio.gather(connection.subscribe("b"), task)
        assert [each.subject for each in gathered] == ["b", "a"]
        assert (await other).is_connected
        await (await other).close()


async def test_a_task_that_opens_something_can_be_cancelled():
    loop, reached = asyncio.get_running_loop(), asyncio.Event()

    def script(peer: FakePeer) -> None:
        loop.call_soon_threadsafe(reached.set)
        peer.until_left()

    with FakeServer(script) as server:
        task = asyncio.create_task(js.connect(server.url, connect_timeout=30))
        async with asyncio.timeout(30):
            await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
