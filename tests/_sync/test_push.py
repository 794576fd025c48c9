# Generated from tests/_async/test_push.py by codegen/twin.py. Edit that file instead.
"""Push consumers: flow control, heartbeats, groups and replay."""

from __future__ import annotations

from datetime import timedelta

import pytest

import js_sync as js
from twinstream.models import ConsumerConfig
from js_sync.consume import push
from tests._sync.flow import eventually, pause, together
from tests._sync.streams import filled


def test_messages_are_pushed_and_acknowledged(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 50)
        with stream.subscribe(ConsumerConfig(durable_name="p")) as messages:
            seen = []
            for _ in range(50):
                message = messages.next(10)
                seen.append(message.metadata.stream_seq)
                message.ack()
            assert seen == list(range(1, 51))
        consumer = jet.bind_consumer(name, "p")

        def done():
            return (consumer.info()).ack_floor.stream_seq == 50

        eventually(done)
        told = f"^{name}/p: a push consumer cannot be pulled from; .*bind_push"
        with pytest.raises(js.ConsumerIsPush, match=told):
            consumer.fetch(1)
        with consumer.messages() as messages:
            with pytest.raises(js.ConsumerIsPush, match=told):
                messages.next(10)


def test_flow_control_holds_nothing_up(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        requests = (js.PublishRequest(subject=f"{name}.x", data=bytes(2000)) for _ in range(3000))
        for outcome in jet.publish_many(requests):
            assert not isinstance(outcome, js.PublishFailure)
        config = ConsumerConfig(
            ack_policy="none", flow_control=True, idle_heartbeat=timedelta(seconds=1)
        )
        with stream.subscribe(config) as messages:
            seen = [(messages.next(20)).metadata.stream_seq for _ in range(3000)]
        assert seen == list(range(1, 3001))


def test_a_group_shares_the_messages(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        config = ConsumerConfig(
            durable_name="p", deliver_subject=f"deliver.{name}", deliver_group="workers"
        )
        seen = []
        with stream.subscribe(config) as first, stream.bind_push("p") as second:

            def work(messages):
                while len(seen) < 100:
                    try:
                        message = messages.next(0.2)
                    except js.RequestTimeout:
                        continue
                    seen.append(message.metadata.stream_seq)
                    message.ack()

            def publish():
                for number in range(100):
                    jet.publish(f"{name}.{number}")

            together(lambda: work(first), lambda: work(second), publish)
        assert sorted(seen) == list(range(1, 101))


def test_a_group_with_heartbeats_reports_none_missing(opened, name, monkeypatch):
    # A second of silence would be two missing heartbeats; the consumer is looked for meanwhile.
    monkeypatch.setattr(push, "_SILENCE", 0.5)
    looks = []

    def looked(*about):
        looks.append(about)

    monkeypatch.setattr(push._control, "require_there", looked)
    with opened() as jet:
        stream = filled(jet, name, 0)
        config = ConsumerConfig(
            durable_name="p",
            deliver_subject=f"deliver.{name}",
            deliver_group="workers",
            idle_heartbeat=timedelta(seconds=0.1),
        )
        reports = []
        with (
            stream.subscribe(config, on_report=reports.append) as first,
            stream.bind_push("p", on_report=reports.append) as second,
        ):

            def member(messages):
                with pytest.raises(js.RequestTimeout):
                    messages.next(3)

            together(lambda: member(first), lambda: member(second))
        assert reports == []
        assert {about[1:] for about in looks} <= {(name, "p")}


def test_a_second_subscription_without_a_group_is_refused(opened, name):
    with opened() as jet, opened() as other:
        stream = filled(jet, name, 1)
        config = ConsumerConfig(durable_name="p", deliver_subject=f"deliver.{name}")
        with stream.subscribe(config) as messages:
            (messages.next(10)).double_ack()
            with pytest.raises(js.BadArgument, match="another subscription is bound to this push"):
                with other.bind_stream(name).bind_push("p"):
                    pass
        # The server hears of the end of the first one a moment later.
        with stream.bind_push("p") as messages:
            jet.publish(f"{name}.x")
            assert (messages.next(10)).metadata.stream_seq == 2


def test_a_push_iteration_drains_what_the_server_had_sent(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 50)
        with stream.subscribe(ConsumerConfig(ack_policy="none")) as messages:
            seen = [messages.next(10)]

            def all_here():
                return messages.buffered == 49

            eventually(all_here)
            messages.drain()
            jet.publish(f"{name}.later")
            assert not messages.is_ended
            for message in messages:
                seen.append(message)
            assert messages.is_ended
            with pytest.raises(js.IterationEnded):
                messages.next(1)
        assert [message.metadata.stream_seq for message in seen] == list(range(1, 51))


def test_replay_keeps_the_pace_of_the_past(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 1)
        first = stream.get_message(1)

        def later():
            jet.publish(f"{name}.later")
            last = stream.get_last_message(f"{name}.later")
            return last.time - first.time > timedelta(seconds=0.3)

        eventually(later)
        count = (stream.info()).state.messages
        config = ConsumerConfig(replay_policy="original", ack_policy="none")
        with stream.subscribe(config) as messages:
            arrived = [messages.next(10) for _ in range(count)]
        assert arrived[-1].metadata.num_pending == 0


def test_what_came_long_ago_is_late_though_heartbeats_came_since(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 2)
        config = ConsumerConfig(
            durable_name="p",
            ack_wait=timedelta(seconds=1),
            idle_heartbeat=timedelta(seconds=0.2),
        )
        with stream.subscribe(config) as messages:
            (messages.next(20)).ack()
            # As long as the user is at work the second one waits.
            pause(1.5)
            second = messages.next(20)
            assert (second.metadata.num_delivered, second.is_late) == (1, True)
            assert not second.double_ack()


def test_a_deleted_push_consumer_is_noticed(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 1)
        reports = []
        config = ConsumerConfig(
            durable_name="p", idle_heartbeat=timedelta(seconds=0.2), flow_control=True
        )
        with stream.subscribe(config, on_report=reports.append) as messages:
            (messages.next(5)).ack()
            stream.delete_consumer("p")
            with pytest.raises(js.ConsumerDeleted):
                messages.next(20)
        assert isinstance(reports[0], js.PullWarning)
        with pytest.raises(js.ConsumerNotFound):
            with stream.bind_push("p"):
                pass
        stream.create_consumer(ConsumerConfig(durable_name="pull"))
        with pytest.raises(js.BadArgument, match="get_consumer"):
            with stream.bind_push("pull"):
                pass


def test_heartbeats_are_asked_for_where_nobody_shares_the_consumer(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        for config, wanted in (
            (ConsumerConfig(), timedelta(seconds=5)),
            (ConsumerConfig(idle_heartbeat=timedelta(seconds=1)), timedelta(seconds=1)),
            (ConsumerConfig(durable_name="p"), None),
        ):
            with stream.subscribe(config) as messages:
                info = jet.bind_consumer(name, messages.name).info()
                assert info.config.idle_heartbeat == wanted


def test_a_deleted_consumer_without_heartbeats_is_noticed(opened, name, monkeypatch):
    monkeypatch.setattr(push, "_SILENCE", 0.2)
    with opened() as jet:
        stream = filled(jet, name, 1)
        stream.create_consumer(ConsumerConfig(durable_name="p", deliver_subject=f"deliver.{name}"))
        reports = []
        with stream.bind_push("p", on_report=reports.append) as messages:
            (messages.next(5)).ack()
            with pytest.raises(js.RequestTimeout, match="no message in time"):
                messages.next(0.5)
            stream.delete_consumer("p")
            with pytest.raises(js.ConsumerDeleted):
                messages.next(20)
        assert reports == []
