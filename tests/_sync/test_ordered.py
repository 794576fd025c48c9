# Generated from tests/_async/test_ordered.py by codegen/twin.py. Edit that file instead.
"""Ordered reads: each message once and in order, through any trouble."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from attrs import evolve

import js_sync as js
from twinstream.models import ConsumerConfig, ConsumerLimits, StreamConfig
from js_sync.consume import ordered_consumer as _ordered_consumer
from tests._sync.flow import eventually, pause, together
from tests._sync.streams import filled


def read(messages, count):
    """Return the stream sequences of the next messages."""
    return [(messages.next(20)).metadata.stream_seq for _ in range(count)]


def keeping(jet, name, keeps, subjects, data=b""):
    """Return a stream that keeps so many messages of each of its subjects, with one of each."""
    config = StreamConfig(name=name, subjects=[f"{name}.>"], max_msgs_per_subject=keeps)
    stream = jet.create_stream(config)
    requests = (js.PublishRequest(subject=f"{name}.{n}", data=data) for n in range(subjects))
    for outcome in jet.publish_many(requests):
        assert not isinstance(outcome, js.PublishFailure), outcome
    return stream


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


# ---- callers that share a read


def test_callers_that_share_a_read_leave_no_consumer(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 40)
        with stream.ordered() as messages:
            got = together(*(partial(messages.next, 20) for _ in range(20)))
            assert sorted(each.metadata.stream_seq for each in got) == list(range(1, 21))
            assert messages.resets == 0
            assert len([each for each in stream.consumer_names()]) == 1
            assert read(messages, 20) == list(range(21, 41))
        assert [each for each in stream.consumer_names()] == []


def test_a_read_may_be_closed_while_others_wait_for_it(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        messages = stream.ordered()

        def wait():
            return [message for message in messages]

        def close():
            eventually(made)
            messages.close()

        def made():
            return messages.name is not None

        assert (together(*[wait] * 5, close))[:5] == [[]] * 5
        assert [each for each in stream.consumer_names()] == []


# ---- streams that keep few messages of each subject


def test_messages_that_are_removed_before_they_come_cause_no_pause(opened, name):
    """Without its heartbeats the consumer would wait for longer than the test does."""
    with opened() as jet:
        stream = keeping(jet, name, 5, 600)
        options = {"deliver_policy": "last_per_subject", "expires": 120, "heartbeat": 30}
        with stream.ordered(**options) as messages:
            assert read(messages, 10) == list(range(1, 11))
            for number in (*range(580, 590), 595, 599):
                stream.purge(subject=f"{name}.{number}")
            rest = [*range(11, 581), *range(591, 596), *range(597, 600)]
            assert read(messages, len(rest)) == rest
            # The last one of all was removed, too: this is seen without a message.
            batch = messages.fetch(5, wait="none")
            assert (list(batch), batch.reason) == ([], js.BatchEnd.NO_MESSAGES)
            assert messages.is_current
            assert messages.resets == 0
            jet.publish(f"{name}.599")
            assert read(messages, 1) == [601]


def test_a_snapshot_by_bytes_is_whole(opened, name):
    """Servers up to 2.15 forget a message of it that does not fit into a request."""
    with opened() as jet:
        stream = keeping(jet, name, 2, 200, b"x" * 1000)
        options = {"deliver_policy": "last_per_subject", "max_bytes": 3500}
        with stream.ordered(**options) as messages:
            assert read(messages, 200) == list(range(1, 201))
            jet.publish(f"{name}.0")
            jet.publish(f"{name}.0")
            assert read(messages, 2) == [201, 202]
            assert messages.resets == 0


def test_after_a_snapshot_nothing_is_skipped_however_it_was_compacted(opened, name):
    """What was overwritten while the snapshot was read is not missing in it afterwards."""
    with opened() as jet:
        stream = keeping(jet, name, 1, 30)
        with stream.ordered(deliver_policy="last_per_subject", max_messages=2) as messages:
            assert read(messages, 3) == [1, 2, 3]
            for number in range(10, 20):
                jet.publish(f"{name}.{number}")
            assert read(messages, 27) == [*range(4, 11), *range(21, 41)]
            stream.change(lambda config: evolve(config, max_msgs_per_subject=5))
            stream.delete_consumer(messages.name)
            for _ in range(3):
                jet.publish(f"{name}.0")
            assert read(messages, 3) == [41, 42, 43]


def test_a_snapshot_that_is_cut_short_skips_nothing_that_came_since(opened, name):
    with opened() as jet:
        stream = keeping(jet, name, 3, 30)
        with stream.ordered(deliver_policy="last_per_subject", max_messages=2) as messages:
            assert read(messages, 10) == list(range(1, 11))
            for _ in range(3):
                jet.publish(f"{name}.5")
            stream.delete_consumer(messages.name)
            # The last message of the subject is the third; the two before it are there, too.
            assert read(messages, 23) == list(range(11, 34))
            assert messages.resets == 1


def test_the_end_of_what_filters_let_through_is_known(opened, name):
    """Although the last message of the stream is not among it."""
    with opened() as jet:
        stream = filled(jet, name, 40)
        with stream.ordered(subjects=f"{name}.3") as messages:
            assert read(messages, 1) == [4]
            batch = messages.fetch(5, wait="none")
            assert (list(batch), batch.reason) == ([], js.BatchEnd.NO_MESSAGES)
            assert (messages.position, messages.scanned) == (4, 40)
            assert messages.is_current


# ---- fetching, ending


def seqs(batch):
    return [message.metadata.stream_seq for message in batch]


def test_fetching_takes_turns_with_iterating(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 12)
        with stream.ordered() as messages:
            batch = messages.fetch(4, timeout=20)
            assert (seqs(batch), batch.reason) == ([1, 2, 3, 4], js.BatchEnd.FILLED)
            assert read(messages, 2) == [5, 6]
            batch = messages.fetch(4, timeout=20, wait="first")
            assert (seqs(batch), batch.reason) == ([7, 8, 9, 10], js.BatchEnd.FILLED)
            batch = messages.fetch(4, timeout=0.2)
            assert (seqs(batch), batch.reason) == ([11, 12], js.BatchEnd.EXPIRED)
            batch = messages.fetch(4, timeout=0)
            assert (seqs(batch), batch.reason) == ([], js.BatchEnd.EXPIRED)
            assert len([each for each in stream.consumer_names()]) == 1
            assert messages.resets == 0


def test_a_fetch_that_does_not_wait_takes_all_that_is_stored(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        with stream.ordered() as messages:
            for number in range(30):
                jet.publish(f"{name}.x")
                batch = messages.fetch(5, wait="none")
                assert (seqs(batch), batch.reason) == ([number + 1], js.BatchEnd.NO_MESSAGES)
            batch = messages.fetch(5, wait="none")
            assert (seqs(batch), batch.reason) == ([], js.BatchEnd.NO_MESSAGES)
            for _ in range(3):
                jet.publish(f"{name}.x")
            batch = messages.fetch(5, timeout=20, wait="first")
            assert (seqs(batch), batch.reason) == ([31, 32, 33], js.BatchEnd.NO_MESSAGES)


def test_a_fetch_that_does_not_wait_passes_what_was_removed(opened, name):
    with opened() as jet:
        stream = keeping(jet, name, 5, 100)
        options = {"deliver_policy": "last_per_subject", "expires": 120, "heartbeat": 30}
        with stream.ordered(max_messages=20, **options) as messages:
            assert seqs(messages.fetch(3, timeout=20)) == [1, 2, 3]
            for number in range(80, 90):
                stream.purge(subject=f"{name}.{number}")
            batch = messages.fetch(200, wait="none")
            assert seqs(batch) == [*range(4, 81), *range(91, 101)]
            assert batch.reason is js.BatchEnd.NO_MESSAGES


def test_a_fetch_may_be_bounded_in_bytes(opened, name):
    with opened() as jet:
        stream = keeping(jet, name, -1, 5, b"x" * 1000)
        with stream.ordered() as messages:
            batch = messages.fetch(max_bytes=2500, timeout=20)
            assert (seqs(batch), batch.reason) == ([1, 2], js.BatchEnd.BYTES_FILLED)
            assert messages.position == 2
            with pytest.raises(js.PullError, match="bigger than the 500 bytes"):
                messages.fetch(max_bytes=500, timeout=20)
            assert read(messages, 1) == [3]
            batch = messages.fetch(2, max_bytes=9000, timeout=20)
            assert (seqs(batch), batch.reason) == ([4, 5], js.BatchEnd.FILLED)


def test_a_read_may_end_by_itself(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 12)
        with stream.ordered(stop_after=5) as messages:
            assert [each.metadata.stream_seq for each in messages] == [1, 2, 3, 4, 5]
            assert messages.is_ended
            # Its consumer is gone already.
            assert [each for each in stream.consumer_names()] == []
        with stream.ordered(stop_after=5) as messages:
            assert read(messages, 3) == [1, 2, 3]
            stream.delete_consumer(messages.name)
            messages.fetch(1, timeout=20)
            batch = messages.fetch(9, timeout=20)
            assert (seqs(batch), batch.reason) == ([5], js.BatchEnd.NO_MESSAGES)
            with pytest.raises(js.TwinstreamError, match="ended"):
                messages.fetch(1)


def test_a_drained_read_hands_over_what_is_buffered(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 20)
        with stream.ordered(max_messages=20) as messages:
            assert read(messages, 1) == [1]
            messages.drain()
            rest = [each.metadata.stream_seq for each in messages]
            assert rest == list(range(2, len(rest) + 2))
            assert messages.is_ended
            assert [each for each in stream.consumer_names()] == []
        with stream.ordered() as messages:
            messages.drain()
            assert [each for each in messages] == []
        assert [each for each in stream.consumer_names()] == []


def test_the_consumer_is_as_it_was_asked_for(opened, name):
    with opened() as jet:
        filled(jet, name, 3)
        options = {"metadata": {"app": "test"}, "inactive_threshold": timedelta(seconds=70)}
        with jet.ordered(name, name_prefix="reader", **options) as messages:
            assert messages.name is None
            with pytest.raises(js.BadArgument, match="no consumer now"):
                messages.info()
            assert read(messages, 3) == [1, 2, 3]
            info = messages.info()
            assert info.name == messages.name
            assert info.name.startswith("reader_")
            assert info.config.metadata["app"] == "test"
            assert info.config.inactive_threshold == timedelta(seconds=70)
            assert info.delivered.stream_seq == 3
            # Another read with the same prefix is not in the way.
            with jet.ordered(name, name_prefix="reader") as other:
                assert read(other, 3) == [1, 2, 3]
                assert other.name != messages.name


def test_arguments_that_make_no_sense(opened, name):
    with opened() as jet:
        for options, text in (
            ({"name_prefix": "a.b"}, "name_prefix name 'a.b' holds '.'"),
            ({"stop_after": 0}, "stop_after"),
            ({"max_reset_attempts": 0}, "max_reset_attempts"),
            ({"inactive_threshold": 0}, "inactive_threshold"),
            ({"metadata": {"a": 1}}, "metadata"),
        ):
            with pytest.raises(js.BadArgument, match=text):
                jet.ordered(name, **options)


def test_the_pace_of_the_past_survives_silence(opened, name):
    """The server sends no heartbeats while it waits for a message's time."""
    with opened() as jet:
        stream = filled(jet, name, 1)
        pause(1.5)
        jet.publish(f"{name}.x")
        options = {"replay_policy": "original", "expires": 1, "heartbeat": 0.5}
        with stream.ordered(**options) as messages:
            first = messages.next(20)
            second = messages.next(20)
            assert [first.metadata.stream_seq, second.metadata.stream_seq] == [1, 2]
            assert messages.resets == 0
