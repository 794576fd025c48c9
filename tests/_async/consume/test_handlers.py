"""Consuming with handlers: concurrency, order, and the end."""

from __future__ import annotations

import socket
from collections import defaultdict
from datetime import timedelta

import pytest

import js_async as js
from tests._async.flow import eventually, pause
from tests._async.progress import reports_of
from tests._async.streams import filled, settled
from tests.meter import Meter
from twinstream.core.deadline import monotonic
from twinstream.models import ConsumerConfig, StreamConfig

PATIENT = ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=60))
"""A consumer whose messages no pause of a busy machine lets come again."""

OFTEN = 600
"""How many times progress is reported in that time: each 0.1 s."""


async def ignore(message):
    """Do nothing with a message."""


async def test_handlers_overlap_up_to_the_limit(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 40)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        meter = Meter()

        async def all_are_busy():
            return meter.most == 4

        async def handler(message):
            meter.enter(message)
            await eventually(all_are_busy)
            meter.leave(message)
            await message.ack()

        async def all_handled():
            return consuming.handled == 40

        async with consumer.consume(handler, concurrency=4) as consuming:
            await eventually(settled, consumer, 40)
            await eventually(all_handled)
        assert sorted(meter.seen) == list(range(1, 41))
        assert meter.most == 4


async def test_messages_of_a_subject_keep_their_order(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        for number in range(60):
            await jet.publish(f"{name}.{number % 3}")
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        meter = Meter()
        order = defaultdict(list)

        async def handler(message):
            meter.enter(message)
            order[message.subject].append(message.metadata.stream_seq)
            await pause(0.001)
            meter.leave(message)
            await message.ack()

        async with consumer.consume(handler, concurrency=8, order="subject"):
            await eventually(settled, consumer, 60)
        assert meter.overlaps == 0
        assert all(each == sorted(each) for each in order.values())
        assert len(order) == 3


async def test_a_subject_need_not_be_utf_8(server, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream()
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        with socket.create_connection(("127.0.0.1", server.port)) as sock:
            sock.sendall(b"CONNECT {}\r\nPUB %b.\xff 1\r\nx\r\nPING\r\n" % name.encode())
            while b"PONG" not in sock.recv(4096):
                pass
        seen = []

        async def handler(message):
            seen.append(message.subject)

        options = {"order": "subject", "concurrency": 2, "stop_after": 1}
        async with consumer.consume(handler, **options) as consuming:
            await consuming.wait(timeout=30)
        assert seen == [f"{name}.\udcff"]


async def test_waiting_too_long_for_an_end_raises(opened, name):
    async with opened() as jet:
        consumer = await (await filled(jet, name, 1)).create_consumer(ConsumerConfig(name="c"))

        async def handler(message):
            await message.ack()

        async with consumer.consume(handler) as consuming:
            with pytest.raises(js.RequestTimeout, match="it is still running"):
                await consuming.wait(timeout=0.01)


async def test_an_end_may_be_waited_for_without_bound(opened, name):
    async with opened() as jet:
        consumer = await (await filled(jet, name, 1)).create_consumer(ConsumerConfig(name="c"))

        async def handler(message):
            await message.ack()

        async with consumer.consume(handler, stop_after=1) as consuming:
            await consuming.wait(timeout=float("inf"))
            assert consuming.handled == 1


async def test_error_in_a_handler_ends_the_work_and_is_raised(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 10)
        config = ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=60))
        consumer = await stream.create_consumer(config)

        async def handler(message):
            if message.metadata.stream_seq == 4:
                raise LookupError("the fourth")
            await message.ack()

        consuming = consumer.consume(handler)
        await consuming.start()
        with pytest.raises(LookupError, match="the fourth"):
            await consuming.wait(timeout=60)
        assert consuming.handled == 3
        # The rest went back to the server, except the one whose handler failed.
        rest = await consumer.fetch(6, timeout=5)
        assert sorted(message.metadata.stream_seq for message in rest) == [5, 6, 7, 8, 9, 10]


async def test_draining_works_on_what_is_here(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 30)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        seen = []

        async def handler(message):
            seen.append(message.metadata.stream_seq)
            await message.ack()

        consuming = consumer.consume(handler, max_messages=10)
        await consuming.start()

        async def some():
            return seen

        async def all_acknowledged():
            return (await consumer.info()).ack_floor.stream_seq == len(seen)

        await eventually(some)
        await consuming.drain()
        assert seen == list(range(1, len(seen) + 1))
        await eventually(all_acknowledged)
        # The server would deliver a message at once that the drain has returned to it.
        rest = await consumer.fetch(30, wait="none")
        assert all(message.metadata.num_delivered == 1 for message in rest)
        assert all(message.metadata.stream_seq > len(seen) for message in rest)


async def test_a_long_handler_keeps_its_message(opened, server, name, tuned):
    tuned("ack progress reports", OFTEN)
    async with opened() as jet, reports_of(server, name) as reports:
        stream = await filled(jet, name, 1)
        consumer = await stream.create_consumer(PATIENT)
        deliveries = []

        async def handler(message):
            deliveries.append(message.metadata.num_delivered)
            before = message.time_left + monotonic()
            await reports.wait(1, times=4)
            # The time at which it may come again.
            assert message.time_left + monotonic() > before + 0.1
            await message.ack()

        async with consumer.consume(handler, progress=True):
            await eventually(settled, consumer, 1)
        assert deliveries == [1]


async def test_messages_behind_a_very_long_handler_are_delivered_once(opened, server, name, tuned):
    # A handler that takes longer than the patience with who takes no message.
    tuned("ack progress patience", 0)
    tuned("ack progress reports", OFTEN)
    async with opened() as jet, reports_of(server, name) as reports:
        stream = await filled(jet, name, 1)
        consumer = await stream.create_consumer(PATIENT)
        deliveries = []

        async def handler(message):
            deliveries.append(message.metadata.num_delivered)
            if len(deliveries) == 1:
                for number in range(5):
                    await jet.publish(f"{name}.more.{number}")
                # The server does not deliver again what is reported.
                await reports.wait(6)
            await message.ack()

        async with consumer.consume(handler, progress=True):
            await eventually(settled, consumer, 6)
        assert deliveries == [1] * 6


async def test_what_is_buffered_does_not_age(opened, server, name, tuned):
    tuned("ack progress reports", OFTEN)
    async with opened() as jet, reports_of(server, name) as reports:
        stream = await filled(jet, name, 30)
        consumer = await stream.create_consumer(PATIENT)
        deliveries = []
        async with consumer.messages() as messages:
            async for message in messages:
                deliveries.append(message.metadata.num_delivered)
                if len(deliveries) == 1:
                    await reports.wait(29)
                await message.ack()
                if len(deliveries) == 30:
                    break
            assert messages.late == 0
        assert deliveries == [1] * 30


async def test_it_ends_after_as_many_as_were_wanted(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 100)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        for limit, count in ((500, 30), (7, 20)):
            seen = []
            async with consumer.messages(max_messages=limit, stop_after=count) as messages:
                async for message in messages:
                    seen.append(message.metadata.stream_seq)
                    await message.ack()
            assert len(seen) == count
        handled = []

        async def handler(message):
            handled.append(message.metadata.stream_seq)
            await message.ack()

        async with consumer.consume(handler, stop_after=10, concurrency=2) as consuming:
            await consuming.wait(timeout=60)
        assert sorted(handled) == list(range(51, 61))
        # No further message was requested.
        await eventually(settled, consumer, 60)
        assert (await consumer.info()).delivered.stream_seq == 60


async def test_consumption_pulls_according_to_its_options(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 20)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        seen = []

        async def handler(message):
            seen.append(message.metadata.stream_seq)
            await message.ack()

        options = {"expires": 2, "heartbeat": 0.5, "max_bytes": 300, "threshold_bytes": 100}
        async with consumer.consume(handler, stop_after=20, **options) as consuming:
            await consuming.wait(timeout=30)
        assert seen == list(range(1, 21))


async def test_bad_arguments_are_named(opened, name):
    async with opened() as jet:
        consumer = jet.bind_consumer(name, "c")
        for options in (
            {"concurrency": 0},
            {"order": "chaos"},
            {"order": "total", "concurrency": 2},
            {"on_deleted": "shrug"},
            {"on_deleted": "recreate"},
            {"max_messages": 0},
            {"stop_after": 0},
            {"expires": 0.5},
            {"heartbeat": 0.1},
            {"threshold_messages": 501},
            {"max_bytes": 100, "threshold_bytes": 101},
        ):
            with pytest.raises(js.BadArgument):
                consumer.consume(ignore, **options)
        for options in (
            {"expires": 0.5},
            {"heartbeat": 20, "expires": 30},
            {"heartbeat": 0.1},
            {"threshold_messages": 501},
            {"max_bytes": 0},
        ):
            with pytest.raises(js.BadArgument):
                consumer.messages(**options)
        with pytest.raises(js.BadArgument):
            await consumer.fetch(0)
        with pytest.raises(js.BadArgument):
            await consumer.fetch(1, wait="whatever")
