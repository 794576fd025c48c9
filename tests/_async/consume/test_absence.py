"""Programs that take no message for a long time: buffered messages return to the server."""

from __future__ import annotations

from datetime import timedelta

import pytest

import js_async as js
from tests._async.flow import eventually, pause, together
from tests._async.progress import reports_of
from tests._async.streams import filled, waiting
from tests.inside import buffer_of, held_of, outstanding
from twinstream.core.consume.reports import PullWarning
from twinstream.core.deadline import monotonic
from twinstream.models import ConsumerConfig
from twinstream.testing import Proxy

COUNT = 6
ACK_WAIT = 0.4


def hasty(**more):
    """Return a consumer with a short ack_wait."""
    config = {"durable_name": "c", "ack_wait": timedelta(seconds=ACK_WAIT), "max_deliver": 50}
    return ConsumerConfig(**config | more)


async def none_given_up(events):
    assert await events.next(timeout=0.2) is None


async def left_alone(messages):
    return held_of(messages).gave_up


@pytest.mark.parametrize(
    "limits",
    [{}, {"max_bytes": 4000}, {"stop_after": 2 * COUNT}],
    ids=["count", "bytes", "bounded"],
)
async def test_long_absent_program_gets_all_changes(opened, name, limits):
    async with opened() as jet, jet.events(stream_name=name, kinds=["max_deliver"]) as events:
        stream = await filled(jet, name, COUNT)
        consumer = await stream.create_consumer(hasty())
        seen = set()
        async with consumer.messages(**limits) as messages:
            # More messages are requested than exist.
            while len(seen) < 2 * COUNT:
                message = await messages.next(timeout=60)
                seen.add(message.metadata.stream_seq)
                await message.ack()
                if len(seen) == 1:
                    await eventually(left_alone, messages)
                    before = await consumer.info()
                    await pause(3 * ACK_WAIT)
                    after = await consumer.info()
                    assert after.num_waiting == 0
                    assert after.delivered.consumer_seq == before.delivered.consumer_seq
                    for number in range(COUNT):
                        await jet.publish(f"{name}.more.{number}")
        await none_given_up(events)


@pytest.mark.parametrize(
    "settings",
    [{"max_deliver": 1}, {"durable_name": None, "inactive_threshold": timedelta(seconds=60)}],
    ids=["delivered once", "not durable"],
)
async def test_messages_for_no_other_client_are_kept(opened, server, name, tuned, settings):
    # Others are given up at the first of the reports, after 0.1 s.
    tuned("ack progress patience", 0)
    tuned("ack progress reports", 600)
    async with opened() as jet, reports_of(server, name) as reports:
        stream = await filled(jet, name, COUNT)
        # Long enough for a machine that is busy elsewhere for a moment.
        consumer = await stream.create_consumer(hasty(ack_wait=timedelta(seconds=60), **settings))
        deliveries = []
        async with consumer.messages() as messages:
            for _ in range(COUNT):
                message = await messages.next(timeout=60)
                deliveries.append(message.metadata.num_delivered)
                await message.ack()
                if len(deliveries) == 1:
                    await reports.wait(COUNT - 1, times=4)
                    assert not await left_alone(messages)
        assert deliveries == [1] * COUNT


async def test_waiting_caller_is_not_absent(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        consumer = await stream.create_consumer(hasty(ack_wait=timedelta(seconds=0.1)))
        reports = []

        async def publish():
            await pause(2)
            await jet.publish(f"{name}.late")

        async with consumer.messages(on_report=reports.append) as messages:
            message, _ = await together(lambda: messages.next(timeout=60), publish)
            await message.ack()
        assert not reports


async def test_waiter_is_not_absent_if_another_gave_up(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        consumer = await stream.create_consumer(hasty(ack_wait=timedelta(seconds=0.1)))
        reports = []

        async def publish():
            assert await messages.next(timeout=0.1) is None
            await pause(2)
            await jet.publish(f"{name}.late")

        async with consumer.messages(on_report=reports.append) as messages:
            message, _ = await together(lambda: messages.next(timeout=60), publish)
            await message.ack()
        assert not reports


async def test_occasional_caller_is_not_absent(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        # So long that nobody looks meanwhile.
        consumer = await stream.create_consumer(hasty(ack_wait=timedelta(seconds=300)))
        async with consumer.messages() as messages:
            before = monotonic()
            assert await messages.next(timeout=0.01) is None
            assert buffer_of(messages).ready.taken_at > before


async def test_caller_that_returns_in_time_gets_buffered_messages(opened, name, tuned):
    # After a second; looked at each half second.
    tuned("ack progress patience", 1 / 60)
    tuned("ack progress reports", 120)
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        consumer = await stream.create_consumer(hasty(ack_wait=timedelta(seconds=60)))
        reports = []
        async with consumer.messages(on_report=reports.append) as messages:
            await (await messages.next(timeout=60)).ack()
            await jet.publish(f"{name}.more")
            await eventually(left_alone, messages)
            assert outstanding(messages) == 0
            assert not reports
            message = await messages.next(timeout=60)
            assert message.metadata.num_delivered == 1
            await message.ack()
        [report] = reports
        assert isinstance(report, PullWarning)
        assert "no message was taken" in report.text


@pytest.mark.parametrize("end", ["close", "drain"])
async def test_what_was_left_alone_is_ended(opened, name, tuned, end):
    # After a second; looked at each half second.
    tuned("ack progress patience", 1 / 60)
    tuned("ack progress reports", 120)
    async with opened() as jet:
        stream = await filled(jet, name, COUNT)
        consumer = await stream.create_consumer(hasty(ack_wait=timedelta(seconds=60)))
        async with consumer.messages() as messages:
            await (await messages.next(timeout=60)).ack()
            await eventually(left_alone, messages)
            await (messages.drain if end == "drain" else messages.close)()
            # What was told of a moment ago is in time.
            rest = [message.metadata.num_delivered async for message in messages]
            assert rest == ([1] * (COUNT - 1) if end == "drain" else [])
        if end == "close":
            batch = await consumer.fetch(COUNT - 1)
            assert [message.metadata.num_delivered for message in batch] == [2] * (COUNT - 1)
        await eventually(waiting, consumer, 0)


async def test_a_link_that_breaks_during_an_absence_loses_nothing(server, name, tuned):
    tuned("ack progress patience", 1)
    with Proxy(server.url) as proxy:
        policy = js.ReconnectPolicy(wait=0.01, max_wait=0.05, attempts=-1)
        async with js.connect(proxy.url, reconnect=policy) as connection:
            jet = connection.jetstream(timeout=60)
            stream = await filled(jet, name, COUNT)
            consumer = await stream.create_consumer(hasty())
            seen = set()
            async with consumer.messages() as messages:
                while len(seen) < COUNT:
                    message = await messages.next(timeout=60)
                    seen.add(message.metadata.stream_seq)
                    await message.ack()
                    await eventually(left_alone, messages)
                    if len(seen) % 2:
                        proxy.cut()
