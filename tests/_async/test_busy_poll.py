"""`busy_poll`: a wait polls before it sleeps, and nothing else changes."""

from __future__ import annotations

import pytest

import js_async as js
from tests._async.flow import pause, together
from twinstream.models import ConsumerConfig, StreamConfig

POLL = 0.002
COUNT = 60


async def test_nothing_is_lost_or_doubled(server, name):
    async with js.connect(server.url, busy_poll=POLL) as polling:
        jet = polling.jetstream()
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        for number in range(1, COUNT + 1):
            assert (await jet.publish(name, b"%d" % number)).seq == number
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        seen = [await consumer.next(timeout=20) for _ in range(5)]
        seen += await consumer.fetch(20, timeout=20)
        async with consumer.messages() as messages:
            async for message in messages:
                seen.append(message)
                if len(seen) == COUNT:
                    break
    assert [int(message.data) for message in seen] == list(range(1, COUNT + 1))


async def test_messages_after_the_polling_are_waited_for(server, name):
    async with (
        js.connect(server.url, busy_poll=POLL) as polling,
        js.connect(server.url) as other,
    ):
        subscription = await polling.subscribe(name)
        await polling.flush()

        async def hear():
            for number in range(3):
                assert (await subscription.next(timeout=20)).data == b"%d" % number

        async def say():
            for number in range(3):
                await pause(20 * POLL)
                await other.publish(name, b"%d" % number)
                await other.flush()

        await together(hear, say)


async def test_a_wait_that_is_shorter_than_the_polling_ends_in_time(server, name):
    async with js.connect(server.url, busy_poll=0.1) as connection:
        subscription = await connection.subscribe(name)
        with pytest.raises(js.RequestTimeout):
            await subscription.next(timeout=0.01)
        await connection.publish(name, b"here")
        assert (await subscription.next(timeout=20)).data == b"here"


async def test_many_wait_at_once(server, name):
    seqs = []

    async def publish():
        for _ in range(20):
            seqs.append((await jet.publish(name, b"x")).seq)

    async with js.connect(server.url, busy_poll=POLL) as polling:
        jet = polling.jetstream()
        await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        await together(publish, publish, publish)
    assert sorted(seqs) == list(range(1, 61))
