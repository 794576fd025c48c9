"""Several threads or tasks that share an iteration, a subscription or a publisher."""

from __future__ import annotations

from itertools import chain

import pytest

import js_async as js
from tests._async.flow import eventually, together
from tests._async.streams import filled
from twinstream.models import ConsumerConfig

ROUNDS = 20
COUNT = 2000
TAKERS = 4


async def pulled(stream, **options):
    """Return an iteration over a pull consumer."""
    consumer = await stream.create_consumer(ConsumerConfig(ack_policy="none"))
    # No heartbeat comes in the time of a test: it would wake a caller that missed its message.
    return consumer.messages(expires=60, heartbeat=30, **options)


async def by_bytes(stream):
    """Return an iteration over a pull consumer whose buffer is bounded by bytes."""
    return await pulled(stream, max_bytes=20_000)


async def pushed(stream):
    """Return an iteration over a push consumer."""
    return await stream.push_messages(ConsumerConfig(ack_policy="none"))


async def ordered(stream):
    """Return an ordered read."""
    return stream.ordered()


KINDS = pytest.mark.parametrize("kind", [pulled, by_bytes, pushed, ordered])


def seqs(messages):
    return sorted(message.metadata.stream_seq for message in messages)


@KINDS
async def test_two_callers_get_the_two_messages_of_one_packet(server, opened, name, kind):
    async with opened() as jet, js.connect(server.url) as connection:
        stream = await filled(jet, name, 0)
        async with await kind(stream) as messages:

            async def one():
                waiting.append(None)
                return await messages.next(timeout=20)

            async def publish():
                await eventually(both_wait)
                await connection.publish(f"{name}.a")
                await connection.publish(f"{name}.b")
                await connection.flush()

            async def both_wait():
                return len(waiting) == 2

            for number in range(ROUNDS):
                waiting = []
                first, second, _ = await together(one, one, publish)
                assert seqs([first, second]) == [2 * number + 1, 2 * number + 2]


async def test_concurrent_callers_get_stop_after_messages_in_total(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 40)
        async with await pulled(stream, stop_after=20) as messages:

            async def take():
                taken = []
                while True:
                    try:
                        taken.append(await messages.next(timeout=20))
                    except js.IterationEnded:
                        return taken

            taken = await together(*[take] * TAKERS)
            assert messages.is_ended
        assert seqs(chain.from_iterable(taken)) == list(range(1, 21))


@KINDS
async def test_callers_together_get_each_message_once(opened, name, kind):
    async with opened() as jet:
        stream = await filled(jet, name, COUNT)
        async with await kind(stream) as messages:
            turns = iter(range(COUNT))

            async def take():
                taken = []
                for _ in turns:
                    taken.append(await messages.next(timeout=30))
                return taken

            taken = await together(*[take] * TAKERS)
        assert seqs(chain.from_iterable(taken)) == list(range(1, COUNT + 1))


@KINDS
async def test_closing_ends_all_waits(opened, name, kind):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        messages = await kind(stream)
        started = []

        async def take():
            started.append(None)
            return [message async for message in messages]

        async def close():
            async def waiting():
                return len(started) == TAKERS

            await eventually(waiting)
            await messages.close()

        assert (await together(*[take] * TAKERS, close))[:TAKERS] == [[]] * TAKERS
        assert messages.is_ended


async def test_waiting_behind_another_caller_ends_in_time(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        async with await pulled(stream) as messages:

            async def late():
                assert await messages.next(timeout=0.05) is None
                # For the other one, who still waits.
                await jet.publish(f"{name}.x")

            first, _ = await together(lambda: messages.next(timeout=30), late)
        assert first.metadata.stream_seq == 1


async def test_callers_together_leave_one_consumer_of_an_ordered_read(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 10)
        async with stream.ordered() as messages:
            await together(*[lambda: messages.next(timeout=30)] * 10)
            assert len([found async for found in stream.consumer_names()]) == 1
        assert [found async for found in stream.consumer_names()] == []


async def test_callers_together_get_each_message_of_a_subscription_once(server, name):
    async with js.connect(server.url) as connection:
        subscription = await connection.subscribe(name)
        await connection.flush()

        async def take():
            return [int(message.data) async for message in subscription]

        async def publish():
            for number in range(COUNT):
                await connection.publish(name, b"%d" % number)
            await connection.flush()
            await subscription.drain()

        taken = await together(*[take] * TAKERS, publish)
        assert sorted(chain.from_iterable(taken[:TAKERS])) == list(range(COUNT))


async def test_a_publisher_that_is_shared_counts_every_message(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        async with jet.publisher(window=50) as publisher:

            async def send():
                handles = [await publisher.send(f"{name}.x") for _ in range(300)]
                return [(await handle.result()).seq for handle in handles]

            taken = await together(*[send] * TAKERS)
            assert publisher.in_flight == 0
        assert sorted(chain.from_iterable(taken)) == list(range(1, 300 * TAKERS + 1))
        assert (await stream.info()).state.messages == 300 * TAKERS
