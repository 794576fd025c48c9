"""Priority groups: overflow, pinned clients and ranks (ADR-42)."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial

import pytest

import js_async as js
from js_async.exactly_once import Processing
from js_async.workers import Worker
from tests._async.flow import eventually, together
from tests._async.streams import filled, waiting
from tests.stalls import attempts
from twinstream.errors import InvalidPullRequest
from twinstream.models import ConsumerConfig, StreamConfig


async def test_overflow_waits_for_its_threshold(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 5)
        config = ConsumerConfig(durable_name="c", priority_policy="overflow", priority_groups=["g"])
        consumer = await stream.create_consumer(config)
        far = js.Priority(group="g", min_pending=10)
        near = js.Priority(group="g", min_pending=0)
        assert not await consumer.fetch(1, timeout=0.3, priority=far)
        [message] = await consumer.fetch(1, timeout=60, priority=near)
        await message.ack()
        assert await consumer.next(timeout=60, priority=near) is not None
        for number in range(7):
            await jet.publish(f"{name}.more.{number}")
        assert len(await consumer.fetch(1, timeout=60, priority=far)) == 1
        with pytest.raises(InvalidPullRequest, match=r"(?i)priority group"):
            await consumer.fetch(1, timeout=5)
        with pytest.raises(InvalidPullRequest, match=r"(?i)group"):
            await consumer.fetch(1, timeout=60, priority=js.Priority(group="other"))
    for wrong in ({"group": ""}, {"group": "a b"}, {"group": "g", "rank": 10}):
        with pytest.raises(js.BadArgument):
            js.Priority(**wrong)


@pytest.mark.since("2.12")
async def test_ranks_are_served_in_order(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        config = ConsumerConfig(
            durable_name="c", priority_policy="prioritized", priority_groups=["g"]
        )
        await stream.create_consumer(config)

        async def fetch(rank):
            consumer = await stream.get_consumer("c")
            batch = await consumer.fetch(2, timeout=60, priority=js.Priority(group="g", rank=rank))
            return [message.metadata.stream_seq for message in batch]

        async def publish():
            consumer = await stream.get_consumer("c")
            # Two for the pull that is served first, and then two for the other.
            for count in (2, 1):
                await eventually(waiting, consumer, count)
                for number in range(2):
                    await jet.publish(f"{name}.{number}")

        second, first, _ = await together(lambda: fetch(5), lambda: fetch(0), publish)
        assert (first, second) == ([1, 2], [3, 4])


async def test_pin_moves_and_both_clients_are_notified(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        config = ConsumerConfig(
            durable_name="c",
            priority_policy="pinned_client",
            priority_groups=["g"],
            priority_timeout=timedelta(seconds=60),
        )
        await stream.create_consumer(config)
        group = js.Priority(group="g")
        reports = {"a": [], "b": []}
        one = await stream.get_consumer("c")
        two = await stream.get_consumer("c")
        async with one.messages(priority=group, on_report=reports["a"].append) as first:
            await jet.publish(f"{name}.1")
            await (await first.next(timeout=60)).ack()
            pin = reports["a"][0]
            assert isinstance(pin, js.Pinned)
            assert pin.group == "g"
            async with two.messages(priority=group, on_report=reports["b"].append) as second:
                assert await second.next(timeout=0.2) is None
                await one.unpin("g")
                await jet.publish(f"{name}.2")
                assert await first.next(timeout=0.5) is None
                await (await second.next(timeout=60)).ack()
                assert isinstance(reports["b"][0], js.Pinned)

                async def is_told():
                    # The client is notified when it reads its mailbox.
                    assert await first.next(timeout=0.01) is None
                    return js.Unpinned("g") in reports["a"]

                await eventually(is_told)
                # The first one stands by, and gets the next pin.
                await two.unpin("g")
                await jet.publish(f"{name}.3")
                assert await second.next(timeout=0.5) is None
                await (await first.next(timeout=60)).ack()


async def test_a_pin_is_kept_between_fetches(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 4)
        config = ConsumerConfig(
            durable_name="c", priority_policy="pinned_client", priority_groups=["g"]
        )
        consumer = await stream.create_consumer(config)
        group = js.Priority(group="g")
        seen = [(await consumer.next(priority=group)).metadata.stream_seq for _ in range(4)]
        assert seen == [1, 2, 3, 4]
        other = await stream.get_consumer("c")
        await jet.publish(f"{name}.x")
        assert await other.next(timeout=0.3, priority=group) is None
        assert await consumer.next(timeout=60, priority=group) is not None


async def test_pin_of_a_copied_message_is_ignored(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        config = ConsumerConfig(
            durable_name="c", priority_policy="pinned_client", priority_groups=["g"]
        )
        consumer = await stream.create_consumer(config)
        for _ in range(3):
            await jet.publish(f"{name}.x", headers={"Nats-Pin-Id": "A" * 22})
        group = js.Priority(group="g")
        seen = [await consumer.next(timeout=60, priority=group) for _ in range(3)]
        assert [message and message.metadata.stream_seq for message in seen] == [1, 2, 3]


async def test_bytes_of_a_pinned_client_are_those_of_the_server(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 6)
        config = ConsumerConfig(
            durable_name="c", priority_policy="pinned_client", priority_groups=["g"]
        )
        consumer = await stream.create_consumer(config)
        group = js.Priority(group="g")
        first = await consumer.next(timeout=60, priority=group)
        # The pin is in a header, which does not count.
        size = len(first.subject) + len(first.reply) + len(first.data)
        batch = await consumer.fetch(5, max_bytes=5 * size, timeout=60, priority=group)
        assert [message.metadata.stream_seq for message in batch] == [2, 3, 4, 5, 6]


async def test_a_pin_stays_with_a_client_that_has_nothing_to_do(opened, name):
    async with opened() as jet:
        for number, attempt in enumerate(attempts(3)):
            with attempt:
                await keep_the_pin(await filled(jet, f"{name}-{number}", 1))


async def keep_the_pin(stream):
    config = ConsumerConfig(
        durable_name="c",
        priority_policy="pinned_client",
        priority_groups=["g"],
        priority_timeout=timedelta(seconds=3),
    )
    one = await stream.create_consumer(config)
    two = await stream.get_consumer("c")
    group, reports = js.Priority(group="g"), []
    async with one.messages(priority=group, on_report=reports.append) as first:
        await (await first.next(timeout=60)).ack()
        async with two.messages(priority=group) as second:

            async def stand_by():
                assert await second.next(timeout=5) is None

            async def idle():
                assert await first.next(timeout=5) is None

            await together(stand_by, idle)
            state, *_ = (await one.info()).priority_groups
    [pin] = reports
    assert pin == js.Pinned("g", state.pinned_client_id)


async def test_workers_and_processing_use_the_priority_group_of_their_client(opened, name):
    async with opened() as jet:
        await filled(jet, name, 4)
        config = ConsumerConfig(
            durable_name="c", priority_policy="pinned_client", priority_groups=["g"]
        )
        group, seen, reports = js.Priority(group="g"), [], []

        async def handler(message):
            seen.append(message.metadata.stream_seq)

        async def all_are_seen():
            return len(seen) == 4

        options = {"priority": group, "on_report": reports.append}
        async with Worker(jet, name, config, handler, **options):
            await eventually(all_are_seen)
        assert seen == [1, 2, 3, 4]
        assert [type(report) for report in reports] == [js.Pinned]

        await jet.create_stream(StreamConfig(name=f"{name}-out", subjects=[f"{name}-out.*"]))
        stream = await jet.get_stream(name)
        await stream.create_consumer(
            ConsumerConfig(durable_name="p", priority_policy="overflow", priority_groups=["g"])
        )

        async def result(message):
            return js.PublishRequest(subject=f"{name}-out.{{id}}", data=message.data)

        options = {"into": f"{name}-out", "by": "subject", "stop_after": 4, "priority": group}
        async with Processing(jet, name, "p", result, **options) as work:
            await work.wait(timeout=60)
        assert work.done == 4


async def nothing(message):
    raise AssertionError("it is not to be called")


async def test_an_iteration_without_a_group_of_the_consumer_is_refused_at_the_call(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        config = ConsumerConfig(
            durable_name="c",
            ack_policy="explicit",
            priority_policy="overflow",
            priority_groups=["g"],
        )
        made = await stream.create_consumer(config)
        other = js.Priority(group="h")
        for consumer in (made, await stream.get_consumer("c")):
            for priority in (None, other):
                with pytest.raises(js.BadArgument, match=r"priority=Priority\(group='g'\)"):
                    consumer.messages(priority=priority)
                with pytest.raises(js.BadArgument, match=r"priority=Priority\(group='g'\)"):
                    consumer.consume(nothing, priority=priority)
            for call in (consumer.messages, partial(consumer.consume, nothing)):
                with pytest.raises(js.BadArgument, match="priority must be a Priority, as "):
                    call(priority="g")
            async with consumer.messages(priority=js.Priority(group="g")):
                pass
        worker = Worker(jet, name, "c", nothing)
        with pytest.raises(js.BadArgument, match="each pull must name one of the priority"):
            await worker.start()
        # Where the groups are not known, the server says it.
        async with stream.bind_consumer("c").messages() as messages:
            with pytest.raises(InvalidPullRequest, match=r"(?i)group"):
                await messages.next(timeout=60)


async def test_a_pin_is_known_even_if_its_messages_were_not_taken(opened, server, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        config = ConsumerConfig(
            durable_name="c", priority_policy="pinned_client", priority_groups=["g"]
        )
        consumer = await stream.create_consumer(config)
        reports = []
        group = js.Priority(group="g")
        async with consumer.messages(priority=group, on_report=reports.append) as messages:
            assert await messages.next(timeout=0.1) is None
            await jet.publish(f"{name}.1")

            async def arrived():
                return messages.buffered

            await eventually(arrived)
        [state] = (await consumer.info()).priority_groups
        assert reports == []
        async with (
            js.connect(server.url) as other,
            other.subscribe(f"$JS.API.CONSUMER.MSG.NEXT.{name}.c") as pulls,
        ):
            await other.flush()
            assert await consumer.next(timeout=20, priority=group) is not None
            assert json.loads((await pulls.next(timeout=60)).data)["id"] == state.pinned_client_id
