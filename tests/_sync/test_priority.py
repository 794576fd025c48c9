# Generated from tests/_async/test_priority.py by codegen/twin.py. Edit that file instead.
"""Priority groups: overflow, pinned clients and ranks (ADR-42)."""

from __future__ import annotations

from datetime import timedelta

import pytest

import js_sync as js
from twinstream.core.consume.fetch import frame_size
from twinstream.core.consume.pin import pin_size
from twinstream.models import ConsumerConfig, StreamConfig
from tests._sync.flow import eventually, together
from tests._sync.streams import filled, waiting


def test_overflow_waits_for_its_threshold(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 5)
        config = ConsumerConfig(durable_name="c", priority_policy="overflow", priority_groups=["g"])
        consumer = stream.create_consumer(config)
        far = js.Priority(group="g", min_pending=10)
        near = js.Priority(group="g", min_pending=0)
        assert not consumer.fetch(1, timeout=0.3, priority=far)
        [message] = consumer.fetch(1, timeout=5, priority=near)
        assert consumer.ack_next(message, timeout=5, priority=near) is not None
        for number in range(7):
            jet.publish(f"{name}.more.{number}")
        assert len(consumer.fetch(1, timeout=5, priority=far)) == 1
        with pytest.raises(js.BadPull, match=r"(?i)priority group"):
            consumer.fetch(1, timeout=5)
        with pytest.raises(js.BadPull, match=r"(?i)group"):
            consumer.fetch(1, timeout=5, priority=js.Priority(group="other"))
    for wrong in ({"group": ""}, {"group": "a b"}, {"group": "g", "rank": 10}):
        with pytest.raises(js.BadArgument):
            js.Priority(**wrong)


@pytest.mark.since("2.12")
def test_ranks_are_served_in_order(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        config = ConsumerConfig(
            durable_name="c", priority_policy="prioritized", priority_groups=["g"]
        )
        stream.create_consumer(config)

        def fetch(rank):
            consumer = stream.get_consumer("c")
            batch = consumer.fetch(2, timeout=1.5, priority=js.Priority(group="g", rank=rank))
            return len(batch)

        def publish():
            consumer = stream.get_consumer("c")
            eventually(waiting, consumer, 2)
            for number in range(2):
                jet.publish(f"{name}.{number}")

        second, first, _ = together(lambda: fetch(5), lambda: fetch(0), publish)
        assert (first, second) == (2, 0)


def test_a_pin_moves_and_both_sides_are_told(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        config = ConsumerConfig(
            durable_name="c",
            priority_policy="pinned_client",
            priority_groups=["g"],
            priority_timeout=timedelta(seconds=60),
        )
        stream.create_consumer(config)
        group = js.Priority(group="g")
        reports = {"a": [], "b": []}
        one = stream.get_consumer("c")
        two = stream.get_consumer("c")
        with one.messages(priority=group, on_report=reports["a"].append) as first:
            jet.publish(f"{name}.1")
            (first.next(10)).ack()
            pin = reports["a"][0]
            assert isinstance(pin, js.Pinned)
            assert pin.group == "g"
            with two.messages(priority=group, on_report=reports["b"].append) as second:
                with pytest.raises(js.RequestTimeout):
                    second.next(0.2)
                one.unpin("g")
                jet.publish(f"{name}.2")
                with pytest.raises(js.RequestTimeout):
                    first.next(0.5)
                (second.next(10)).ack()
                assert isinstance(reports["b"][0], js.Pinned)

                def is_told():
                    # It hears that when it looks.
                    with pytest.raises(js.RequestTimeout):
                        first.next(0.01)
                    return js.Unpinned("g") in reports["a"]

                eventually(is_told)
                # The first one stands by, and gets the next pin.
                two.unpin("g")
                jet.publish(f"{name}.3")
                with pytest.raises(js.RequestTimeout):
                    second.next(0.5)
                (first.next(10)).ack()


def test_a_pin_is_kept_between_fetches(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 4)
        config = ConsumerConfig(
            durable_name="c", priority_policy="pinned_client", priority_groups=["g"]
        )
        consumer = stream.create_consumer(config)
        group = js.Priority(group="g")
        seen = [(consumer.next(priority=group)).metadata.stream_seq for _ in range(4)]
        assert seen == [1, 2, 3, 4]
        other = stream.get_consumer("c")
        jet.publish(f"{name}.x")
        assert other.next(timeout=0.3, priority=group) is None
        assert consumer.next(timeout=5, priority=group) is not None


def test_a_pin_that_came_with_a_copied_message_is_not_ones_own(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        config = ConsumerConfig(
            durable_name="c", priority_policy="pinned_client", priority_groups=["g"]
        )
        consumer = stream.create_consumer(config)
        for _ in range(3):
            jet.publish(f"{name}.x", headers={"Nats-Pin-Id": "A" * 22})
        group = js.Priority(group="g")
        seen = [consumer.next(timeout=5, priority=group) for _ in range(3)]
        assert [message and message.metadata.stream_seq for message in seen] == [1, 2, 3]


def test_bytes_of_a_pinned_client_are_those_of_the_server(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 6)
        config = ConsumerConfig(
            durable_name="c", priority_policy="pinned_client", priority_groups=["g"]
        )
        consumer = stream.create_consumer(config)
        group = js.Priority(group="g")
        first = consumer.next(timeout=5, priority=group)
        size = frame_size(first._frame) - pin_size(first._frame)
        batch = consumer.fetch(5, max_bytes=5 * size, timeout=5, priority=group)
        assert [message.metadata.stream_seq for message in batch] == [2, 3, 4, 5, 6]


def test_a_pin_stays_with_a_client_that_has_nothing_to_do(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 1)
        config = ConsumerConfig(
            durable_name="c",
            priority_policy="pinned_client",
            priority_groups=["g"],
            priority_timeout=timedelta(seconds=3),
        )
        one = stream.create_consumer(config)
        two = stream.get_consumer("c")
        group, reports = js.Priority(group="g"), []
        with one.messages(priority=group, on_report=reports.append) as first:
            (first.next(10)).ack()
            with two.messages(priority=group) as second:

                def stand_by():
                    with pytest.raises(js.RequestTimeout):
                        second.next(5)

                def idle():
                    with pytest.raises(js.RequestTimeout):
                        first.next(5)

                together(stand_by, idle)
                state, *_ = (one.info()).priority_groups
        [pin] = reports
        assert pin == js.Pinned("g", state.pinned_client_id)


def test_workers_and_processing_take_the_place_of_their_client_in_a_group(opened, name):
    with opened() as jet:
        filled(jet, name, 4)
        config = ConsumerConfig(
            durable_name="c", priority_policy="pinned_client", priority_groups=["g"]
        )
        group, seen, reports = js.Priority(group="g"), [], []

        def handler(message):
            seen.append(message.metadata.stream_seq)

        def all_are_seen():
            return len(seen) == 4

        options = {"priority": group, "on_report": reports.append}
        with jet.worker(name, config, handler, **options):
            eventually(all_are_seen)
        assert seen == [1, 2, 3, 4]
        assert [type(report) for report in reports] == [js.Pinned]

        jet.create_stream(StreamConfig(name=f"{name}-out", subjects=[f"{name}-out.*"]))
        stream = jet.get_stream(name)
        consumer = stream.create_consumer(
            ConsumerConfig(durable_name="p", priority_policy="overflow", priority_groups=["g"])
        )

        def result(message):
            return js.PublishRequest(subject=f"{name}-out.{{id}}", data=message.data)

        options = {"into": f"{name}-out", "by": "subject", "stop_after": 4, "priority": group}
        with jet.process(consumer, result, **options) as work:
            work.wait(30)
        assert work.done == 4


def nothing(message):
    raise AssertionError("it is not to be called")


def test_an_iteration_without_a_group_of_the_consumer_is_refused_at_the_call(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 1)
        config = ConsumerConfig(
            durable_name="c",
            ack_policy="explicit",
            priority_policy="overflow",
            priority_groups=["g"],
        )
        made = stream.create_consumer(config)
        other = js.Priority(group="h")
        for consumer in (made, stream.get_consumer("c")):
            for priority in (None, other):
                with pytest.raises(js.BadArgument, match=r"priority=Priority\(group='g'\)"):
                    consumer.messages(priority=priority)
                with pytest.raises(js.BadArgument, match=r"priority=Priority\(group='g'\)"):
                    consumer.consume(nothing, priority=priority)
            with consumer.messages(priority=js.Priority(group="g")):
                pass
        worker = jet.worker(name, "c", nothing)
        with pytest.raises(js.BadArgument, match="each pull has to name one of the priority"):
            worker.start()
        # Where the groups are not known, the server says it.
        with stream.bind_consumer("c").messages() as messages:
            with pytest.raises(js.BadPull, match=r"(?i)group"):
                messages.next(20)
