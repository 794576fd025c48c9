"""`Connection.drain`: nothing more arrives, what has arrived is handled, then the end."""

from __future__ import annotations

from datetime import timedelta

import pytest

import js_async as js
from js_async.exactly_once import Processing
from js_async.workers import Worker
from tests._async.flow import eventually, pause, together
from tests._async.streams import filled, is_still
from twinstream.core.deadline import Deadline
from twinstream.models import ConsumerConfig
from twinstream.testing import Proxy

PATIENT = ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=60))


async def count_is(log, count):
    return len(log) >= count


async def consumer_of(server, name, count):
    """Return a connection, and the consumer `c` of a new stream with `count` messages."""
    connection = await js.connect(server.url)
    stream = await filled(connection.jetstream(), name, count)
    return connection, await stream.create_consumer(PATIENT)


async def states(server, stream):
    """Return the number of acknowledged messages of `c`, of those in hand, and of those left."""
    async with js.connect(server.url) as other:
        info = await other.jetstream().bind_consumer(stream, "c").info()
    return info.ack_floor.stream_seq, info.num_ack_pending, info.num_pending


async def drained_in_the_middle(connection, consumer, freed):
    """Drain a connection while handlers wait for `freed`, which is filled meanwhile."""
    await eventually(is_still, consumer)
    subscriptions = connection.stats.subscriptions

    async def has_unsubscribed():
        return connection.stats.subscriptions < subscriptions

    async def free():
        await eventually(has_unsubscribed)
        freed.append(True)

    await together(lambda: connection.drain(timeout=60), free)


async def test_a_consumption_handles_what_has_arrived(server, name):
    connection, consumer = await consumer_of(server, name, 50)
    seen, freed = [], []

    async def handler(message):
        if len(seen) == 4:
            await eventually(count_is, freed, 1)
        seen.append(message.metadata.stream_seq)
        await message.ack()

    consuming = consumer.consume(handler, max_messages=20)
    await consuming.start()
    await eventually(count_is, seen, 4)
    await drained_in_the_middle(connection, consumer, freed)
    assert connection.is_closed
    assert not consuming.is_running
    assert seen == list(range(1, len(seen) + 1))
    # Nothing was returned, and nothing is left without an acknowledgement.
    acknowledged, in_hand, left = await states(server, name)
    assert (acknowledged, in_hand, left) == (len(seen), 0, 50 - len(seen))


async def test_an_iteration_ends_after_what_has_arrived(server, name):
    connection, consumer = await consumer_of(server, name, 30)
    seen = []

    async def read():
        async with consumer.messages(max_messages=30) as messages:
            async for message in messages:
                seen.append(message.metadata.stream_seq)
                await pause(0.01)

    async def drain():
        await eventually(count_is, seen, 1)
        await eventually(is_still, consumer)
        await connection.drain(timeout=60)

    await together(read, drain)
    assert connection.is_closed
    assert seen == list(range(1, 31))


@pytest.mark.parametrize("kind", ["pull", "push"])
async def test_the_last_message_of_a_loop_is_acknowledged(server, name, kind):
    connection = await js.connect(server.url)
    stream = await filled(connection.jetstream(), name, 1)
    seen, done = [], []

    async def read():
        if kind == "push":
            opened = stream.push_messages(PATIENT)
        else:
            opened = (await stream.create_consumer(PATIENT)).messages()
        async with opened as messages:
            async for message in messages:
                seen.append(message)
                await pause(0.5)
                await message.ack()
                done.append(message)

    async def drain():
        await eventually(count_is, seen, 1)
        await connection.drain(timeout=60)
        assert len(done) == 1

    await together(read, drain)
    assert await states(server, name) == (1, 0, 0)


async def test_the_last_of_several_messages_is_acknowledged(server, name):
    connection, consumer = await consumer_of(server, name, 2)
    seen = []

    async def read():
        async with consumer.messages() as messages:
            async for message in messages:
                seen.append(message)
                await pause(0.5)
                await message.ack()

    async def drain():
        await eventually(count_is, seen, 1)
        await connection.drain(timeout=60)

    await together(read, drain)
    assert len(seen) == 2
    assert await states(server, name) == (2, 0, 0)


async def test_all_callers_of_an_iteration_acknowledge_their_messages(server, name):
    connection, consumer = await consumer_of(server, name, 1)
    seen = []
    async with consumer.messages() as messages:

        async def read():
            async for message in messages:
                seen.append(message)
                await pause(0.5)
                await message.ack()

        async def drain():
            await eventually(count_is, seen, 1)
            await connection.drain(timeout=60)

        await together(read, read, drain)
    assert await states(server, name) == (1, 0, 0)


async def test_what_nobody_takes_is_returned(server, name):
    connection, consumer = await consumer_of(server, name, 5)
    async with consumer.messages() as messages:
        async for message in messages:
            await message.ack()
            break
        await eventually(is_still, consumer)
        await connection.drain(timeout=3600)
    async with js.connect(server.url) as other:
        batch = await other.jetstream().bind_consumer(name, "c").fetch(4, timeout=30)
    assert sorted(message.metadata.stream_seq for message in batch) == [2, 3, 4, 5]


async def test_heartbeats_are_nothing_to_wait_for(server, name):
    connection, consumer = await consumer_of(server, name, 1)
    async with consumer.messages(heartbeat=0.5) as messages:
        await (await messages.next(timeout=30)).ack()
        await pause(1.5)
        assert messages.buffered == 0
        await connection.drain(timeout=3600)


async def test_the_connection_closes_though_a_handler_ends_the_program(server, name):
    connection, consumer = await consumer_of(server, name, 1)
    begun = []

    async def handler(message):
        begun.append(message)
        raise SystemExit(3)

    consuming = consumer.consume(handler)
    await consuming.start()
    await eventually(count_is, begun, 1)
    with pytest.raises(SystemExit):
        await connection.drain(timeout=60)
    assert connection.is_closed


async def test_a_second_call_leaves_the_first_alone(server, name):
    connection, consumer = await consumer_of(server, name, 1)
    begun, ended, freed = [], [], []

    async def handler(message):
        begun.append(message)
        await eventually(count_is, freed, 1)
        await message.ack()
        ended.append(message)

    async def has_unsubscribed():
        return connection.stats.subscriptions < subscriptions

    async def second():
        await eventually(has_unsubscribed)
        await connection.drain(timeout=60)
        assert not ended
        freed.append(True)

    consuming = consumer.consume(handler)
    await consuming.start()
    await eventually(count_is, begun, 1)
    subscriptions = connection.stats.subscriptions
    await together(lambda: connection.drain(timeout=60), second)
    assert ended
    assert await states(server, name) == (1, 0, 0)


async def test_draining_raises_the_error_of_a_processing(server, name):
    connection = await js.connect(server.url)
    jet = connection.jetstream()
    stream = await filled(jet, name, 1)
    results = await filled(jet, f"{name}R", 0)
    await stream.create_consumer(PATIENT)
    begun = []

    async def handler(message):
        begun.append(message)
        raise js.OutcomeUnknown("nothing is known")

    work = Processing(jet, name, "c", handler, into=results.name, by="id")
    await work.start()
    await eventually(count_is, begun, 1)
    with pytest.raises(js.OutcomeUnknown, match="nothing is known"):
        await connection.drain(timeout=60)
    assert connection.is_closed
    await work.stop()


async def test_a_caller_that_left_its_loop_may_drain(server, name):
    connection, consumer = await consumer_of(server, name, 1)
    async with consumer.messages() as messages:
        message = await messages.next(timeout=30)
        await message.ack()
        # No other caller takes messages, so there is nothing to wait for.
        await connection.drain(timeout=3600)
    assert connection.is_closed


async def test_pushed_messages_end_after_what_has_arrived(server, name):
    connection = await js.connect(server.url)
    stream = await filled(connection.jetstream(), name, 30)
    seen = []

    async def read():
        async with stream.push_messages(PATIENT) as messages:
            async for message in messages:
                seen.append(message.metadata.stream_seq)
                await pause(0.01)

    async def drain():
        await eventually(count_is, seen, 1)
        await eventually(is_still, await stream.get_consumer("c"))
        await connection.drain(timeout=60)

    await together(read, drain)
    assert seen == list(range(1, 31))
    # The server counts as delivered just the messages that the program has seen.
    assert await states(server, name) == (0, 30, 0)


async def test_a_worker_ends_and_returns_what_it_has_not_begun(server, name):
    connection = await js.connect(server.url)
    jet = connection.jetstream()
    await filled(jet, name, 20)
    begun, done, freed = [], [], []

    async def handler(message):
        begun.append(message.metadata.stream_seq)
        await eventually(count_is, freed, 1)
        done.append(message.metadata.stream_seq)

    worker = Worker(jet, name, PATIENT, handler, concurrency=2)
    await worker.start()
    await eventually(count_is, begun, 2)
    await drained_in_the_middle(connection, await jet.get_consumer(name, "c"), freed)
    assert connection.is_closed
    assert not worker.is_running
    assert sorted(begun) == sorted(done)
    async with js.connect(server.url) as other:
        # Long before `ack_wait`.
        batch = await other.jetstream().bind_consumer(name, "c").fetch(20 - len(done), timeout=20)
    rest = sorted(message.metadata.stream_seq for message in batch)
    assert sorted(done) + rest == list(range(1, 21))


async def test_a_processing_stores_its_results(server, name):
    connection = await js.connect(server.url)
    jet = connection.jetstream()
    stream = await filled(jet, name, 20)
    results = await filled(jet, f"{name}R", 0)
    consumer = await stream.create_consumer(PATIENT)
    seen, freed = [], []

    async def handler(message):
        if len(seen) == 2:
            await eventually(count_is, freed, 1)
        seen.append(message.metadata.stream_seq)
        return [js.PublishRequest(subject=f"{name}R.x", data=message.data)]

    work = Processing(jet, name, "c", handler, into=results.name, by="id")
    await work.start()
    await eventually(count_is, seen, 2)
    await drained_in_the_middle(connection, consumer, freed)
    assert not work.is_running
    assert await states(server, name) == (len(seen), 0, 20 - len(seen))
    async with js.connect(server.url) as other:
        info = await other.jetstream().bind_stream(results.name).info()
    assert info.state.messages == len(seen)


async def test_the_connection_closes_though_a_handler_goes_on(server, name):
    connection, consumer = await consumer_of(server, name, 1)
    begun, ended, freed = [], [], []

    async def handler(message):
        begun.append(message)
        await eventually(count_is, freed, 1)
        ended.append(message)

    consuming = consumer.consume(handler)
    await consuming.start()
    await eventually(count_is, begun, 1)
    with pytest.raises(js.RequestTimeout, match="a handler is still running"):
        await connection.drain(timeout=0.1)
    assert connection.is_closed
    freed.append(True)
    await consuming.wait(timeout=60)
    assert ended


async def test_a_silent_server_prolongs_a_drain_by_one_iteration_only(server, name):
    iterations = []
    with Proxy(server.url) as proxy:
        connection = await js.connect(proxy.url)
        stream = await filled(connection.jetstream(), name, 1)
        consumer = await stream.create_consumer(PATIENT)
        for _ in range(40):
            iterations.append(consumer.messages())
            await iterations[-1].next(timeout=0.05)
        proxy.mute = True
        # Each of them ends after about a second, so that all of them would exceed this time.
        patience = Deadline.after(25)
        await connection.drain(timeout=0.5)
        assert not patience.expired()
    assert connection.is_closed


async def test_draining_raises_the_error_of_a_handler(server, name):
    connection, consumer = await consumer_of(server, name, 1)
    begun = []

    async def handler(message):
        begun.append(message)
        raise ValueError("the handler failed")

    consuming = consumer.consume(handler)
    await consuming.start()
    await eventually(count_is, begun, 1)
    with pytest.raises(ValueError, match="the handler failed"):
        await connection.drain(timeout=60)
    assert connection.is_closed


async def test_a_handler_may_drain_its_connection(server, name):
    connection, consumer = await consumer_of(server, name, 1)

    async def handler(message):
        await message.ack()
        await connection.drain(timeout=60)

    consuming = consumer.consume(handler)
    await consuming.start()
    await consuming.wait(timeout=60)
    assert connection.is_closed
    assert await states(server, name) == (1, 0, 0)


async def test_buffers_that_ended_are_forgotten(server, name):
    async with js.connect(server.url) as connection:
        stream = await filled(connection.jetstream(), name, 3)
        consumer = await stream.create_consumer(PATIENT)
        for _ in range(3):
            async with consumer.messages() as messages:
                await messages.next(timeout=30)
        await connection.drain(timeout=60)
        assert connection.is_closed
