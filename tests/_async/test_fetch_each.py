"""Fetching message by message, and without a time limit."""

from __future__ import annotations

from datetime import timedelta

import pytest

import js_async as js
from tests._async.flow import eventually, pause, together
from tests._async.streams import filled, waiting
from tests.dropping import let_go
from twinstream.models import ConsumerConfig
from twinstream.testing import FakePeer, FakeServer


async def test_messages_of_a_fetch_come_before_its_end(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 2)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        async with consumer.fetch_each(3, timeout=60) as messages:
            seen = [(await messages.next(20)).metadata.stream_seq for _ in range(2)]
            assert messages.reason is None
            assert not messages.is_ended
            with pytest.raises(js.RequestTimeout):
                await messages.next(0.01)
            await jet.publish(f"{name}.x")
            async for message in messages:
                seen.append(message.metadata.stream_seq)
            assert (messages.reason, messages.is_ended) == (js.BatchEnd.FILLED, True)
            with pytest.raises(js.IterationEnded):
                await messages.next(1)
        assert seen == [1, 2, 3]


@pytest.mark.parametrize(
    ("options", "reason", "count"),
    [
        ({"max_messages": 100, "wait": "none"}, js.BatchEnd.NO_MESSAGES, 10),
        ({"max_messages": 100, "wait": "first"}, js.BatchEnd.NO_MESSAGES, 10),
        ({"max_messages": 100, "timeout": 0.3}, js.BatchEnd.EXPIRED, 10),
        ({"max_bytes": 200}, js.BatchEnd.BYTES_FILLED, None),
        ({"max_messages": 4}, js.BatchEnd.FILLED, 4),
    ],
    ids=str,
)
async def test_it_ends_as_a_fetch_does(opened, name, options, reason, count):
    async with opened() as jet:
        stream = await filled(jet, name, 10)
        for number in range(3):
            consumer = await stream.create_consumer(ConsumerConfig(durable_name=f"c{number}"))
            messages = consumer.fetch_each(**options)
            seen = [message.metadata.stream_seq async for message in messages]
            batch = await (
                await stream.create_consumer(ConsumerConfig(durable_name=f"d{number}"))
            ).fetch(**options)
            assert seen == [message.metadata.stream_seq for message in batch]
            assert (messages.reason, messages.detail) == (batch.reason, batch.detail)
            assert messages.reason is reason
            assert count in {None, len(seen)}


async def test_remaining_messages_are_returned(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 5)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        async with consumer.fetch_each(10, timeout=60) as messages:
            await (await messages.next(20)).double_ack()
        assert messages.is_ended
        rest = await consumer.fetch(4, timeout=20)
        assert sorted(message.metadata.stream_seq for message in rest) == [2, 3, 4, 5]
        assert not [message async for message in messages]


async def test_callers_share_the_messages_of_a_fetch(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 200)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        async with consumer.fetch_each(200) as messages:

            async def take():
                return [message.metadata.stream_seq async for message in messages]

            parts = await together(*[take] * 4)
        assert sorted(seq for part in parts for seq in part) == list(range(1, 201))


async def test_closing_ends_a_fetch_that_waits(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        messages = consumer.fetch_each(5, timeout=60)

        async def take():
            return [message async for message in messages]

        async def close():
            await eventually(waiting, consumer)
            await messages.close()

        assert await together(take, close) == [[], None]


async def test_error_comes_first_and_is_raised_once():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        pull = peer.expect_pull()
        peer.deliver(pull, 1, b"one")
        peer.status(pull, 409, "Consumer Deleted")
        peer.status(peer.expect_pull(), 409, "Consumer Deleted")

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            consumer = connection.jetstream().bind_consumer("S", "c")
            messages = consumer.fetch_each(5)
            assert [message.data async for message in messages] == [b"one"]
            assert messages.reason is js.BatchEnd.DELETED
            messages = consumer.fetch_each(5)
            with pytest.raises(js.ConsumerDeleted, match=r"^S/c: "):
                await messages.next(5)
            assert (messages.reason, messages.is_ended) == (None, True)
            with pytest.raises(js.IterationEnded):
                await messages.next(5)


async def test_a_fetch_that_is_dropped_before_its_end_warns(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 2)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        dropped = [consumer.fetch_each(5, timeout=60)]
        await dropped[0].next(20)
        with pytest.warns(ResourceWarning, match="c: a fetch was left before its end"):
            let_go(dropped)


async def test_a_fetch_may_wait_without_limit(opened, name, tuned):
    tuned("fetch round", 0.2)
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        assert len(await consumer.fetch(5, timeout=None, wait="none")) == 1

        async def publish():
            for number in range(3):
                await eventually(waiting, consumer)
                await pause(0.3)  # More than a round.
                await jet.publish(f"{name}.{number}")

        batch, _ = await together(lambda: consumer.fetch(3, timeout=None), publish)
        assert (len(batch), batch.reason) == (3, js.BatchEnd.FILLED)
        first, _ = await together(
            lambda: consumer.fetch(3, timeout=None, wait="first"), lambda: jet.publish(f"{name}.x")
        )
        assert len(first) == 1
        single, _ = await together(
            lambda: consumer.next(timeout=None), lambda: jet.publish(f"{name}.y")
        )
        assert single.subject == f"{name}.y"
        with pytest.raises(js.BadArgument, match="max_messages"):
            await consumer.fetch(0, timeout=None)


async def test_rounds_of_a_fetch_without_limit(tuned):
    tuned("fetch pause", 0.0)

    def script(peer: FakePeer) -> None:
        peer.handshake()
        ends = (
            (10, 0, 408, "Request Timeout"),
            (10, 2, 408, "Request Timeout"),
            (8, 0, 409, "Leadership Change"),
            (8, 0, 409, "Message Size Exceeds MaxBytes"),
        )
        for batch, count, code, text in ends:
            pull = peer.expect_pull()
            assert pull.json["batch"] == batch
            assert (pull.json["max_bytes"] == 1000) == (batch == 10)
            assert 0 < pull.json["max_bytes"] <= 1000
            assert pull.json["expires"] == 30_000_000_000
            for seq in range(count):
                peer.deliver(pull, seq + 1, b"")
            peer.status(pull, code, text)

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            consumer = connection.jetstream().bind_consumer("S", "c")
            batch = await consumer.fetch(10, max_bytes=1000, timeout=None)
            assert (len(batch), batch.reason) == (2, js.BatchEnd.BYTES_FILLED)


async def test_an_error_of_a_later_round_leaves_the_messages():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        pull = peer.expect_pull()
        peer.deliver(pull, 1, b"one")
        peer.status(pull, 408, "Request Timeout")
        peer.status(peer.expect_pull(), 409, "Consumer Deleted")
        peer.status(peer.expect_pull(), 409, "Consumer Deleted")

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            consumer = connection.jetstream().bind_consumer("S", "c")
            batch = await consumer.fetch(10, timeout=None)
            assert [message.data for message in batch] == [b"one"]
            assert batch.reason is js.BatchEnd.INTERRUPTED
            assert "deleted" in batch.detail
            with pytest.raises(js.ConsumerDeleted):
                await consumer.fetch(10, timeout=None)


async def test_rounds_keep_to_what_the_consumer_allows(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        config = ConsumerConfig(durable_name="c", max_expires=timedelta(seconds=1))
        consumer = await stream.create_consumer(config)
        assert await consumer.next(timeout=None) is not None
