# Generated from tests/_async/test_ordered.py by codegen/twin.py. Edit that file instead.
"""Ordered reads: each message once and in order, through any trouble."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import js_sync as js
from js_models import ConsumerConfig, ConsumerLimits, StreamConfig
from js_sync import _ordered_consumer
from tests._sync.flow import eventually
from tests._sync.streams import filled


def read(messages, count):
    """Return the stream sequences of the next messages."""
    return [(messages.next(20)).metadata.stream_seq for _ in range(count)]


def test_everything_comes_once_and_in_order(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 1200)
        with stream.ordered(max_messages=100) as messages:
            assert read(messages, 1200) == list(range(1, 1201))
            assert messages.position == 1200
            assert messages.resets == 0
            jet.publish(f"{name}.new")
            assert read(messages, 1) == [1201]
        assert [each for each in stream.consumer_names()] == []


def test_it_starts_where_it_is_told(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 10)
        middle = (stream.get_message(6)).time
        for options, expected in (
            ({"start_seq": 4}, 4),
            ({"start_time": middle}, 6),
            ({"deliver_policy": "last"}, 10),
            ({"subjects": f"{name}.7"}, 8),
            ({"subjects": [f"{name}.2", f"{name}.8"]}, 3),
        ):
            with stream.ordered(**options) as messages:
                assert read(messages, 1) == [expected]
        with pytest.raises(js.BadArgument):
            stream.ordered(start_seq=1, start_time=datetime.now(UTC))
        with pytest.raises(js.BadArgument):
            stream.ordered(subjects="a b")


def test_a_lost_consumer_is_replaced(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 30)
        reports = []
        with stream.ordered(max_messages=5, on_report=reports.append) as messages:
            seen = []
            for _ in range(6):
                seen += read(messages, 5)
                for consumer in [each for each in stream.consumer_names()]:
                    stream.delete_consumer(consumer)
            assert seen == list(range(1, 31))
            assert messages.resets >= 4
            assert all(isinstance(report, js.PullWarning) for report in reports)


def asked(messages, stream):
    """Ask for a message that does not come; return the names of the stream's consumers."""
    with pytest.raises(js.RequestTimeout):
        messages.next(0.1)
    return [each for each in stream.consumer_names()]


def test_new_is_not_asked_for_twice(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 5)
        with stream.ordered(deliver_policy="new") as messages:
            (consumer,) = eventually(asked, messages, stream)
            stream.delete_consumer(consumer)
            # Published while there is no consumer: "new" alone would skip it.
            jet.publish(f"{name}.x")
            assert read(messages, 1) == [6]


def test_a_snapshot_by_subject_survives_a_reset(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        for number in range(12):
            jet.publish(f"{name}.{number % 6}")
        with stream.ordered(deliver_policy="last_per_subject", max_messages=2) as messages:
            first = read(messages, 3)
            assert first == [7, 8, 9]
            for consumer in [each for each in stream.consumer_names()]:
                stream.delete_consumer(consumer)
            assert read(messages, 3) == [10, 11, 12]
            jet.publish(f"{name}.0")
            jet.publish(f"{name}.0")
            assert read(messages, 2) == [13, 14]


def test_purges_and_deletes_are_no_gaps(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 20)
        with stream.ordered(max_messages=4) as messages:
            assert read(messages, 2) == [1, 2]
            for seq in (8, 9, 10):
                stream.delete_message(seq)
            seen = read(messages, 8)
            assert [seq for seq in seen if seq not in {8, 9, 10}][:5] == [3, 4, 5, 6, 7]
            stream.purge()
            jet.publish(f"{name}.after")
            while (seen := read(messages, 1)) != [21]:
                assert seen[0] <= 20


def test_a_stream_made_anew_is_read_from_its_beginning(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 10)
        reports = []
        with stream.ordered(on_report=reports.append) as messages:
            assert read(messages, 10) == list(range(1, 11))
            jet.delete_stream(name)
            jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
            jet.publish(f"{name}.x")
            assert read(messages, 1) == [1]
            assert js.Recreated(name) in reports


def test_a_missing_stream_is_told(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 1)
        with stream.ordered() as messages:
            assert read(messages, 1) == [1]
            jet.delete_stream(name)
            with pytest.raises(js.StreamNotFound):
                messages.next(30)


def test_the_link_may_break(server_factory, name):
    policy = js.ReconnectPolicy(wait=0.01, max_wait=0.1, attempts=-1)
    with server_factory() as server:
        with js.connect(server.url, reconnect=policy) as connection:
            jet = connection.jetstream(timeout=10)
            stream = filled(jet, name, 50)
            with stream.ordered(max_messages=10) as messages:
                seen = read(messages, 15)
                server.kill()
                server.restart()
                seen += read(messages, 35)
                assert seen == list(range(1, 51))
                eventually(published, jet, name)
                assert read(messages, 1) == [51]


def published(jet, name):
    try:
        return jet.publish(f"{name}.x", msg_id="once")
    except (js.ConnectionLost, js.RequestTimeout, js.NoResponders):
        # The link, or the stream, is not mended yet.
        return None


def test_idle_reads_do_not_reset(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 1)
        with stream.ordered(expires=1, heartbeat=0.5) as messages:
            assert read(messages, 1) == [1]
            with pytest.raises(js.RequestTimeout):
                messages.next(timedelta(seconds=2.5))
            jet.publish(f"{name}.x")
            assert read(messages, 1) == [2]
            assert messages.resets == 0


def test_a_read_that_is_closed_while_its_consumer_is_made_leaves_none(opened, name, monkeypatch):
    with opened() as jet:
        stream = filled(jet, name, 3)
        messages = stream.ordered()
        own = _ordered_consumer.create_consumer

        def closed_meanwhile(*args):
            info = own(*args)
            messages.close()
            return info

        monkeypatch.setattr(_ordered_consumer, "create_consumer", closed_meanwhile)
        assert [each for each in messages] == []
        assert [each for each in stream.consumer_names()] == []


def test_a_stream_may_bound_how_long_its_consumers_are_idle(opened, name):
    with opened() as jet:
        limits = ConsumerLimits(inactive_threshold=timedelta(seconds=20))
        config = StreamConfig(name=name, subjects=[f"{name}.>"], consumer_limits=limits)
        stream = jet.create_stream(config)
        for number in range(2):
            jet.publish(f"{name}.{number}")
        with stream.ordered() as messages:
            assert read(messages, 2) == [1, 2]
        assert [message.seq for message in stream.read(via="consumer")] == [1, 2]


def test_a_read_without_a_consumer_in_time_tells_why(opened, name):
    with opened() as jet:
        stream = jet.create_stream(StreamConfig(name=name, max_consumers=1))
        reports = []
        with stream.ordered(on_report=reports.append) as messages:
            with pytest.raises(js.RequestTimeout):
                messages.next(0.1)
            (consumer,) = [each for each in stream.consumer_names()]
            stream.delete_consumer(consumer)
            stream.create_consumer(ConsumerConfig(durable_name="other"))
            with pytest.raises(js.RequestTimeout, match="no message in time") as caught:
                messages.next(1)
        assert "maximum consumers limit reached" in str(caught.value.__cause__)
        assert "maximum consumers limit reached" in str(reports[-1])
