"""Publishers whose tasks are cancelled."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

import js_async as js
import js_async.publish.publisher
from js_async.fast_ingest import FastIngest
from tests._async.flow import eventually
from tests._async.scripted import scripted
from tests._async.streams import disconnected
from tests.inside import session_of
from twinstream.models import StreamConfig
from twinstream.testing import FakePeer, FakeServer


async def test_a_handle_ends_with_a_publisher_that_is_cut_short():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.until_left(timeout=60)

    async with scripted(script) as connection:
        publisher = connection.jetstream().publisher(timeout=60)
        handle = await publisher.send("orders")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await publisher.close()
        with pytest.raises(js.OutcomeUnknown, match="closed before"):
            await handle.result()


async def test_room_is_given_back_when_sending_is_cancelled():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.wait_for("opened")
        peer.close()

    with FakeServer(script, rest=lambda peer: peer.until_left(timeout=60)) as server:
        events = []
        options = {"connect_timeout": 60, "on_event": events.append}
        async with js.connect(server.url, **options) as connection:
            publisher = await connection.jetstream().publisher(timeout=60, window=1).__aenter__()
            server.tell("opened")
            await eventually(disconnected, events)
            for _ in range(2):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await publisher.send("orders")
            assert publisher.in_flight == 0
            await publisher.close()


async def test_leaving_many_messages_ends_when_sending_one_was_cancelled():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect("^SUB ")
        peer.wait_for("break")
        peer.close()

    with FakeServer(script, rest=lambda peer: peer.until_left(timeout=60)) as server:
        events = []
        options = {"connect_timeout": 60, "on_event": events.append}
        async with js.connect(server.url, **options) as connection:

            async def requests():
                server.tell("break")
                await eventually(disconnected, events)
                yield "orders", b""

            jet = connection.jetstream()

            async def publish():
                async with jet.publish_many(requests(), timeout=60) as outcomes:
                    async with asyncio.timeout(0.2):
                        async for _ in outcomes:
                            pass

            async with asyncio.timeout(15) as patience:
                with pytest.raises(TimeoutError):
                    await publish()
            assert not patience.expired()


class Watched:
    """The replies of a connection, and the callbacks that receive failures of inboxes."""

    def __init__(self, replies):
        self._replies = replies
        self.watchers = []
        self.begun = 0

    def __getattr__(self, name):
        return getattr(self._replies, name)

    def watch(self, watcher):
        self.begun += 1
        self.watchers.append(watcher)
        self._replies.watch(watcher)

    def unwatch(self, watcher):
        self.watchers.remove(watcher)
        self._replies.unwatch(watcher)


class WithReplies:
    """A transport with other replies."""

    def __init__(self, transport, replies):
        self._transport = transport
        self.replies = replies

    def __getattr__(self, name):
        return getattr(self._transport, name)


@pytest.mark.parametrize(
    "call", ["publish_many", pytest.param("FastIngest", marks=pytest.mark.since("2.14"))]
)
async def test_cancelled_caller_is_not_warned(server, call):
    waiting = asyncio.Event()

    async def source():
        yield js.PublishRequest("quiet.1")
        waiting.set()
        await asyncio.Event().wait()

    async with js.connect(server.url) as connection:
        replies = Watched(session_of(connection).replies)
        jet = js.JetStream(WithReplies(session_of(connection), replies), timeout=10)
        await jet.create_stream(
            StreamConfig(
                name="QUIET", subjects=["quiet.>"], allow_batched=call == "FastIngest" or None
            )
        )
        many = jet.publish_many if call == "publish_many" else partial(FastIngest, jet, "QUIET")

        async def send():
            async for _ in many(source()):
                pass

        sending = asyncio.create_task(send())
        await waiting.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert (replies.begun, replies.watchers) == (1, [])
        await jet.delete_stream("QUIET")


async def test_cancelled_calls_are_reported():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect(r"^PUB orders ")
        peer.reach("published")
        peer.expect(r"STREAM\.INFO\.S")
        peer.reach("asked")
        peer.until_left()

    calls = []
    with FakeServer(script) as server:
        async with js.connect(server.url, on_call=calls.append) as connection:
            jet = connection.jetstream(timeout=30)
            for sign, work in (
                ("published", jet.publish("orders")),
                ("asked", jet.get_stream("S")),
            ):
                task = asyncio.create_task(work)

                async def is_sent(sign=sign):
                    return server.reached(sign)

                await eventually(is_sent)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
    assert [(call.subject, type(call.error)) for call in calls] == [
        ("orders", js.OutcomeUnknown),
        ("$JS.API.STREAM.INFO.S", js.OutcomeUnknown),
    ]
    for call in calls:
        assert isinstance(call.error.__cause__, asyncio.CancelledError)
