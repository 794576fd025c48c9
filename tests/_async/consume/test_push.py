"""Push consumers: flow control, heartbeats, groups and replay."""

from __future__ import annotations

from datetime import timedelta

import pytest

import js_async as js
from tests._async.disturbed import Disturbed
from tests._async.flow import eventually, pause, together
from tests._async.streams import filled
from tests.inside import api_of
from twinstream.errors import ConsumerIsPush
from twinstream.models import ConsumerConfig


async def test_messages_are_pushed_and_acknowledged(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 50)
        async with stream.push_messages(ConsumerConfig(durable_name="p")) as messages:
            seen = []
            for _ in range(50):
                message = await messages.next(timeout=60)
                seen.append(message.metadata.stream_seq)
                await message.ack()
            assert seen == list(range(1, 51))
        consumer = jet.bind_consumer(name, "p")

        async def done():
            return (await consumer.info()).ack_floor.stream_seq == 50

        await eventually(done)
        text = f"^{name}/p: a push consumer cannot be pulled from; .*push_messages"
        with pytest.raises(ConsumerIsPush, match=text):
            await consumer.fetch(1)
        async with consumer.messages() as messages:
            with pytest.raises(ConsumerIsPush, match=text):
                await messages.next(timeout=10)


async def test_flow_control_delays_nothing(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        requests = (js.PublishRequest(subject=f"{name}.x", data=bytes(2000)) for _ in range(3000))
        async for outcome in jet.publish_many(requests):
            assert not isinstance(outcome, js.PublishFailure)
        config = ConsumerConfig(
            ack_policy="none", flow_control=True, idle_heartbeat=timedelta(seconds=1)
        )
        async with stream.push_messages(config) as messages:
            seen = [(await messages.next(timeout=60)).metadata.stream_seq for _ in range(3000)]
        assert seen == list(range(1, 3001))


async def test_a_group_shares_the_messages(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        config = ConsumerConfig(
            durable_name="p", deliver_subject=f"deliver.{name}", deliver_group="workers"
        )
        seen = []
        async with stream.push_messages(config) as first, stream.push_messages("p") as second:

            async def work(messages):
                while len(seen) < 100:
                    message = await messages.next(timeout=0.2)
                    if message is None:
                        continue
                    seen.append(message.metadata.stream_seq)
                    await message.ack()

            async def publish():
                for number in range(100):
                    await jet.publish(f"{name}.{number}")

            await together(lambda: work(first), lambda: work(second), publish)
        assert sorted(seen) == list(range(1, 101))


async def test_a_group_without_a_name_is_refused_and_creates_nothing(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        config = ConsumerConfig(deliver_subject=f"deliver.{name}", deliver_group="workers")
        with pytest.raises(js.BadArgument, match="'workers' needs a durable_name or name"):
            async with stream.push_messages(config):
                pass
        assert (await stream.info()).state.consumer_count == 0


async def test_a_second_member_without_the_subject_of_the_first_is_refused(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        config = ConsumerConfig(durable_name="p", deliver_group="workers")
        async with stream.push_messages(config) as first:
            with pytest.raises(js.ConsumerExists) as caught:
                async with stream.push_messages(config):
                    pass
            assert "wanted 'an inbox'" in str(caught.value)
            assert str(caught.value).endswith(
                "; all members of the deliver_group 'workers' must give one deliver_subject, or"
                " open the existing consumer by its name: push_messages(name)"
            )
            async with stream.push_messages("p") as second:
                found = [await each.next(timeout=1) for each in (first, second)]
        assert len([each for each in found if each is not None]) == 1


async def test_a_group_with_heartbeats_reports_none_missing(opened, name, tuned):
    # A second of silence would be two missing heartbeats; the consumer is looked for meanwhile.
    tuned("push silence", 0.5)
    async with opened() as jet:
        await filled(jet, name, 0)
        transport = Disturbed(api_of(jet).transport)
        stream = transport.jetstream(timeout=60).bind_stream(name)
        config = ConsumerConfig(
            durable_name="p",
            deliver_subject=f"deliver.{name}",
            deliver_group="workers",
            idle_heartbeat=timedelta(seconds=0.1),
        )
        reports = []
        async with (
            stream.push_messages(config, on_report=reports.append) as first,
            stream.push_messages("p", on_report=reports.append) as second,
        ):

            async def member(messages):
                assert await messages.next(timeout=3) is None

            await together(lambda: member(first), lambda: member(second))
        assert reports == []
        looks = {each for each in transport.requests if "CONSUMER.INFO" in each}
        assert looks == {f"$JS.API.CONSUMER.INFO.{name}.p"}


async def test_a_second_subscription_without_a_group_is_refused(opened, name):
    async with opened() as jet, opened() as other:
        stream = await filled(jet, name, 1)
        config = ConsumerConfig(durable_name="p", deliver_subject=f"deliver.{name}")
        async with stream.push_messages(config) as messages:
            await (await messages.next(timeout=10)).double_ack()
            with pytest.raises(js.BadArgument, match="another subscription is bound to this push"):
                async with other.bind_stream(name).push_messages("p"):
                    pass
        # The server processes the end of the first subscription a moment later.
        async with stream.push_messages("p") as messages:
            await jet.publish(f"{name}.x")
            assert (await messages.next(timeout=60)).metadata.stream_seq == 2


async def test_a_push_iteration_drains_what_the_server_had_sent(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 50)
        async with stream.push_messages(ConsumerConfig(ack_policy="none")) as messages:
            seen = [await messages.next(timeout=10)]

            async def all_here():
                return messages.buffered == 49

            await eventually(all_here)
            await messages.drain()
            await jet.publish(f"{name}.later")
            assert not messages.is_ended
            async for message in messages:
                seen.append(message)
            assert messages.is_ended
            with pytest.raises(js.IterationEnded):
                await messages.next(timeout=1)
        assert [message.metadata.stream_seq for message in seen] == list(range(1, 51))


async def test_replay_keeps_the_pace_of_the_past(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        first = await stream.get_message(1)

        async def later():
            await jet.publish(f"{name}.later")
            last = await stream.get_last_message(f"{name}.later")
            return last.time - first.time > timedelta(seconds=0.3)

        await eventually(later)
        count = (await stream.info()).state.messages
        config = ConsumerConfig(replay_policy="original", ack_policy="none")
        async with stream.push_messages(config) as messages:
            arrived = [await messages.next(timeout=60) for _ in range(count)]
        assert arrived[-1].metadata.num_pending == 0


async def test_old_messages_are_late_despite_later_heartbeats(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 2)
        config = ConsumerConfig(
            durable_name="p",
            ack_wait=timedelta(seconds=1),
            idle_heartbeat=timedelta(seconds=0.2),
        )
        async with stream.push_messages(config) as messages:
            await (await messages.next(timeout=60)).ack()
            # As long as the user is at work the second one waits.
            await pause(1.5)
            second = await messages.next(timeout=60)
            assert (second.metadata.num_delivered, second.is_late) == (1, True)
            assert not await second.double_ack()


async def test_a_deleted_push_consumer_is_noticed(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        reports = []
        config = ConsumerConfig(
            durable_name="p", idle_heartbeat=timedelta(seconds=0.2), flow_control=True
        )
        async with stream.push_messages(config, on_report=reports.append) as messages:
            await (await messages.next(timeout=60)).ack()
            await stream.delete_consumer("p")
            with pytest.raises(js.ConsumerDeleted):
                await messages.next(timeout=20)
        assert isinstance(reports[0], js.PullWarning)
        with pytest.raises(js.ConsumerNotFound):
            async with stream.push_messages("p"):
                pass
        await stream.create_consumer(ConsumerConfig(durable_name="pull"))
        with pytest.raises(js.BadArgument, match="get_consumer"):
            async with stream.push_messages("pull"):
                pass


async def test_heartbeats_are_requested_if_the_consumer_is_not_shared(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        for config, wanted in (
            (ConsumerConfig(), timedelta(seconds=5)),
            (ConsumerConfig(idle_heartbeat=timedelta(seconds=1)), timedelta(seconds=1)),
            (ConsumerConfig(durable_name="p"), None),
        ):
            async with stream.push_messages(config) as messages:
                info = await jet.bind_consumer(name, messages.consumer_name).info()
                assert info.config.idle_heartbeat == wanted


async def test_a_deleted_consumer_without_heartbeats_is_noticed(opened, name, tuned):
    tuned("push silence", 0.2)
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        await stream.create_consumer(
            ConsumerConfig(durable_name="p", deliver_subject=f"deliver.{name}")
        )
        reports = []
        async with stream.push_messages("p", on_report=reports.append) as messages:
            await (await messages.next(timeout=60)).ack()
            assert await messages.next(timeout=0.5) is None
            await stream.delete_consumer("p")
            with pytest.raises(js.ConsumerDeleted):
                await messages.next(timeout=20)
        assert reports == []
