"""Ordered reads: each message once and in order, despite failures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from attrs import evolve

import js_async as js
from tests._async.disturbed import Disturbed
from tests._async.flow import eventually, pause, together
from tests._async.streams import filled
from tests.inside import api_of
from tests.stalls import attempts
from twinstream.errors import PullError
from twinstream.models import ConsumerConfig, ConsumerLimits, StreamConfig


async def read(messages, count):
    """Return the stream sequences of the next messages."""
    return [(await messages.next(timeout=60)).metadata.stream_seq for _ in range(count)]


async def keeping(jet, name, keeps, subjects, data=b""):
    """Return a stream that keeps `keeps` messages of each subject, with one message of each."""
    config = StreamConfig(name=name, subjects=[f"{name}.>"], max_msgs_per_subject=keeps)
    stream = await jet.create_stream(config)
    requests = (js.PublishRequest(subject=f"{name}.{n}", data=data) for n in range(subjects))
    async for outcome in jet.publish_many(requests):
        assert not isinstance(outcome, js.PublishFailure), outcome
    return stream


async def test_messages_are_delivered_once_and_in_order(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1200)
        async with stream.ordered(max_messages=100) as messages:
            assert await read(messages, 1200) == list(range(1, 1201))
            assert messages.position == 1200
            assert messages.resets == 0
            await jet.publish(f"{name}.new")
            assert await read(messages, 1) == [1201]
        assert [each async for each in stream.consumer_names()] == []


async def test_read_starts_at_the_given_position(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 10)
        middle = (await stream.get_message(6)).time
        for options, expected in (
            ({"start_seq": 4}, 4),
            ({"start_time": middle}, 6),
            ({"deliver_policy": "last"}, 10),
            ({"subjects": f"{name}.7"}, 8),
            ({"subjects": [f"{name}.2", f"{name}.8"]}, 3),
        ):
            async with stream.ordered(**options) as messages:
                assert await read(messages, 1) == [expected]
        with pytest.raises(js.BadArgument):
            stream.ordered(start_seq=1, start_time=datetime.now(UTC))
        with pytest.raises(js.BadArgument):
            stream.ordered(subjects="a b")


async def test_a_lost_consumer_is_replaced(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 30)
        reports = []
        async with stream.ordered(max_messages=5, on_report=reports.append) as messages:
            seen = []
            for _ in range(6):
                seen += await read(messages, 5)
                for consumer in [each async for each in stream.consumer_names()]:
                    await stream.delete_consumer(consumer)
            assert seen == list(range(1, 31))
            assert messages.resets >= 4
            assert all(isinstance(report, js.PullWarning) for report in reports)


async def asked(messages, stream):
    """Wait for a message that does not arrive; return the names of the stream's consumers."""
    assert await messages.next(timeout=0.1) is None
    return [each async for each in stream.consumer_names()]


async def test_new_is_not_requested_twice(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 5)
        async with stream.ordered(deliver_policy="new") as messages:
            (consumer,) = await eventually(asked, messages, stream)
            await stream.delete_consumer(consumer)
            # Published while there is no consumer: "new" alone would skip it.
            await jet.publish(f"{name}.x")
            assert await read(messages, 1) == [6]


async def test_a_snapshot_by_subject_survives_a_reset(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        for number in range(12):
            await jet.publish(f"{name}.{number % 6}")
        async with stream.ordered(deliver_policy="last_per_subject", max_messages=2) as messages:
            first = await read(messages, 3)
            assert first == [7, 8, 9]
            for consumer in [each async for each in stream.consumer_names()]:
                await stream.delete_consumer(consumer)
            assert await read(messages, 3) == [10, 11, 12]
            await jet.publish(f"{name}.0")
            await jet.publish(f"{name}.0")
            assert await read(messages, 2) == [13, 14]


async def test_purges_and_deletes_are_no_gaps(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 20)
        async with stream.ordered(max_messages=4) as messages:
            assert await read(messages, 2) == [1, 2]
            for seq in (8, 9, 10):
                await stream.delete_message(seq)
            seen = await read(messages, 8)
            assert [seq for seq in seen if seq not in {8, 9, 10}][:5] == [3, 4, 5, 6, 7]
            await stream.purge()
            await jet.publish(f"{name}.after")
            while (seen := await read(messages, 1)) != [21]:
                assert seen[0] <= 20


async def test_recreated_stream_is_read_from_its_beginning(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 10)
        reports = []
        async with stream.ordered(on_report=reports.append) as messages:
            assert await read(messages, 10) == list(range(1, 11))
            await jet.delete_stream(name)
            await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
            await jet.publish(f"{name}.x")
            assert await read(messages, 1) == [1]
            assert js.ConsumerRecreated(name) in reports


async def test_missing_stream_is_reported(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        async with stream.ordered() as messages:
            assert await read(messages, 1) == [1]
            await jet.delete_stream(name)
            with pytest.raises(js.StreamNotFound):
                await messages.next(timeout=30)


async def test_the_link_may_break(server_factory, name):
    policy = js.ReconnectPolicy(wait=0.01, max_wait=0.1, attempts=-1)
    with server_factory() as server:
        async with js.connect(server.url, reconnect=policy) as connection:
            jet = connection.jetstream(timeout=60)
            stream = await filled(jet, name, 50)
            async with stream.ordered(max_messages=10) as messages:
                seen = await read(messages, 15)
                server.kill()
                server.restart()
                seen += await read(messages, 35)
                assert seen == list(range(1, 51))
                await eventually(published, jet, name)
                assert await read(messages, 1) == [51]


async def published(jet, name):
    try:
        return await jet.publish(f"{name}.x", msg_id="once")
    except (js.ConnectionLost, js.RequestTimeout, js.NoResponders):
        # The connection or the stream is not restored yet.
        return None


async def test_a_read_of_new_messages_begins_with_its_block(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 2)
        async with stream.ordered(deliver_policy="new") as messages:
            assert messages.consumer_name is not None
            await jet.publish(f"{name}.x")
            assert (await messages.next(timeout=60)).seq == 3
        with pytest.raises(js.StreamNotFound):
            async with jet.bind_stream(f"{name}-no").ordered(deliver_policy="new"):
                pass


async def test_idle_reads_do_not_reset(opened, name):
    # Two heartbeats are missed if the program stands still for a second.
    for number, attempt in enumerate(attempts(1)):
        with attempt:
            async with opened() as jet:
                stream = await filled(jet, f"{name}-{number}", 1)
                async with stream.ordered(expires=1, heartbeat=0.5) as messages:
                    assert await read(messages, 1) == [1]
                    assert await messages.next(timeout=timedelta(seconds=2.5)) is None
                    await jet.publish(f"{stream.name}.x")
                    assert await read(messages, 1) == [2]
                    assert messages.resets == 0


async def test_read_closed_while_its_consumer_is_created_leaves_none(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 3)

        async def close():
            await messages.close()

        disturbed = Disturbed(api_of(jet).transport, r"CONSUMER\.CREATE", after=close)
        messages = disturbed.jetstream(timeout=60).bind_stream(name).ordered()
        assert [each async for each in messages] == []
        assert [each async for each in stream.consumer_names()] == []


async def test_a_stream_may_bound_how_long_its_consumers_are_idle(opened, name):
    async with opened() as jet:
        limits = ConsumerLimits(inactive_threshold=timedelta(seconds=20))
        config = StreamConfig(name=name, subjects=[f"{name}.>"], consumer_limits=limits)
        stream = await jet.create_stream(config)
        for number in range(2):
            await jet.publish(f"{name}.{number}")
        async with stream.ordered() as messages:
            assert await read(messages, 2) == [1, 2]
        assert [message.seq async for message in stream.read(via="consumer")] == [1, 2]


async def test_read_without_a_consumer_in_time_explains_why(opened, name):
    refusal = "maximum consumers limit reached"
    async with opened() as jet:
        config = StreamConfig(name=name, subjects=[f"{name}.>"], max_consumers=1)
        stream = await jet.create_stream(config)
        await jet.publish(f"{name}.x")
        reports = []
        async with stream.ordered(on_report=reports.append) as messages:
            assert await read(messages, 1) == [1]
            await stream.delete_consumer(messages.consumer_name)
            await stream.create_consumer(ConsumerConfig(durable_name="other"))

            async def late():
                with pytest.raises(js.RequestTimeout, match="no message in time") as caught:
                    await messages.next(timeout=0.2)
                return caught.value.__cause__

            async def refused():
                await late()
                return any(refusal in str(each) for each in reports)

            await eventually(refused)
            # Whether or not there is time for another attempt now.
            assert refusal in str(await late())
            assert refusal in str(reports[-1])


# ---- callers that share a read


async def test_callers_that_share_a_read_leave_no_consumer(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 40)
        async with stream.ordered() as messages:
            got = await together(*(partial(messages.next, timeout=20) for _ in range(20)))
            assert sorted(each.metadata.stream_seq for each in got) == list(range(1, 21))
            assert messages.resets == 0
            assert len([each async for each in stream.consumer_names()]) == 1
            assert await read(messages, 20) == list(range(21, 41))
        assert [each async for each in stream.consumer_names()] == []


async def test_a_read_may_be_closed_while_others_wait_for_it(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        messages = stream.ordered()

        async def wait():
            return [message async for message in messages]

        async def close():
            await eventually(made)
            await messages.close()

        async def made():
            return messages.consumer_name is not None

        assert (await together(*[wait] * 5, close))[:5] == [[]] * 5
        assert [each async for each in stream.consumer_names()] == []


# ---- streams that keep few messages of each subject


async def test_messages_that_are_removed_before_they_come_cause_no_pause(opened, name):
    """Without its heartbeats, the read would wait for longer than the test runs."""
    async with opened() as jet:
        stream = await keeping(jet, name, 5, 600)
        options = {"deliver_policy": "last_per_subject", "expires": 120, "heartbeat": 30}
        async with stream.ordered(**options) as messages:
            assert await read(messages, 10) == list(range(1, 11))
            for number in (*range(580, 590), 595, 599):
                await stream.purge(subject=f"{name}.{number}")
            rest = [*range(11, 581), *range(591, 596), *range(597, 600)]
            assert await read(messages, len(rest)) == rest
            # The last one of all was removed, too: this is seen without a message.
            batch = await messages.fetch(5, wait="none")
            assert (list(batch), batch.reason) == ([], js.BatchEnd.NO_MESSAGES)
            assert messages.is_current
            assert messages.resets == 0
            await jet.publish(f"{name}.599")
            assert await read(messages, 1) == [601]


async def test_a_snapshot_by_bytes_is_whole(opened, name):
    """Servers up to 2.15 drop a message from the list if it does not fit into a request."""
    async with opened() as jet:
        stream = await keeping(jet, name, 2, 200, b"x" * 1000)
        options = {"deliver_policy": "last_per_subject", "max_bytes": 3500}
        async with stream.ordered(**options) as messages:
            assert await read(messages, 200) == list(range(1, 201))
            await jet.publish(f"{name}.0")
            await jet.publish(f"{name}.0")
            assert await read(messages, 2) == [201, 202]
            assert messages.resets == 0


async def test_after_a_snapshot_nothing_is_skipped_however_it_was_compacted(opened, name):
    """Messages that were overwritten while the snapshot was read are not missing afterwards."""
    async with opened() as jet:
        stream = await keeping(jet, name, 1, 30)
        async with stream.ordered(deliver_policy="last_per_subject", max_messages=2) as messages:
            assert await read(messages, 3) == [1, 2, 3]
            for number in range(10, 20):
                await jet.publish(f"{name}.{number}")
            assert await read(messages, 27) == [*range(4, 11), *range(21, 41)]
            await stream.change(lambda config: evolve(config, max_msgs_per_subject=5))
            await stream.delete_consumer(messages.consumer_name)
            for _ in range(3):
                await jet.publish(f"{name}.0")
            assert await read(messages, 3) == [41, 42, 43]


async def test_interrupted_snapshot_skips_no_later_message(opened, name):
    async with opened() as jet:
        stream = await keeping(jet, name, 3, 30)
        async with stream.ordered(deliver_policy="last_per_subject", max_messages=2) as messages:
            assert await read(messages, 10) == list(range(1, 11))
            for _ in range(3):
                await jet.publish(f"{name}.5")
            await stream.delete_consumer(messages.consumer_name)
            # The last message of the subject is the third; the two before it are there, too.
            assert await read(messages, 23) == list(range(11, 34))
            assert messages.resets == 1


async def test_end_of_filtered_messages_is_known(opened, name):
    """The last message of the stream does not match the filter."""
    async with opened() as jet:
        stream = await filled(jet, name, 40)
        async with stream.ordered(subjects=f"{name}.3") as messages:
            assert await read(messages, 1) == [4]
            batch = await messages.fetch(5, wait="none")
            assert (list(batch), batch.reason) == ([], js.BatchEnd.NO_MESSAGES)
            assert (messages.position, messages.scanned) == (4, 40)
            assert messages.is_current


# ---- fetching, ending


def seqs(batch):
    return [message.metadata.stream_seq for message in batch]


async def test_fetching_and_iterating_alternate(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 12)
        async with stream.ordered() as messages:
            batch = await messages.fetch(4, timeout=20)
            assert (seqs(batch), batch.reason) == ([1, 2, 3, 4], js.BatchEnd.FILLED)
            assert await read(messages, 2) == [5, 6]
            batch = await messages.fetch(4, timeout=20, wait="first")
            assert (seqs(batch), batch.reason) == ([7, 8, 9, 10], js.BatchEnd.FILLED)
            batch = await messages.fetch(4, timeout=0.2)
            assert (seqs(batch), batch.reason) == ([11, 12], js.BatchEnd.EXPIRED)
            batch = await messages.fetch(4, timeout=0)
            assert (seqs(batch), batch.reason) == ([], js.BatchEnd.EXPIRED)
            assert len([each async for each in stream.consumer_names()]) == 1
            assert messages.resets == 0


async def test_fetch_without_waiting_returns_all_stored_messages(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        async with stream.ordered() as messages:
            for number in range(30):
                await jet.publish(f"{name}.x")
                batch = await messages.fetch(5, wait="none")
                assert (seqs(batch), batch.reason) == ([number + 1], js.BatchEnd.NO_MESSAGES)
            batch = await messages.fetch(5, wait="none")
            assert (seqs(batch), batch.reason) == ([], js.BatchEnd.NO_MESSAGES)
            for _ in range(3):
                await jet.publish(f"{name}.x")
            batch = await messages.fetch(5, timeout=20, wait="first")
            assert (seqs(batch), batch.reason) == ([31, 32, 33], js.BatchEnd.NO_MESSAGES)


async def test_a_fetch_that_does_not_wait_passes_what_was_removed(opened, name):
    async with opened() as jet:
        stream = await keeping(jet, name, 5, 100)
        options = {"deliver_policy": "last_per_subject", "expires": 120, "heartbeat": 30}
        async with stream.ordered(max_messages=20, **options) as messages:
            assert seqs(await messages.fetch(3, timeout=20)) == [1, 2, 3]
            for number in range(80, 90):
                await stream.purge(subject=f"{name}.{number}")
            batch = await messages.fetch(200, wait="none")
            assert seqs(batch) == [*range(4, 81), *range(91, 101)]
            assert batch.reason is js.BatchEnd.NO_MESSAGES


async def test_a_fetch_may_be_bounded_in_bytes(opened, name):
    async with opened() as jet:
        stream = await keeping(jet, name, -1, 5, b"x" * 1000)
        async with stream.ordered() as messages:
            batch = await messages.fetch(max_bytes=2500, timeout=20)
            assert (seqs(batch), batch.reason) == ([1, 2], js.BatchEnd.BYTES_FILLED)
            assert messages.position == 2
            with pytest.raises(PullError, match="bigger than the 500 bytes"):
                await messages.fetch(max_bytes=500, timeout=20)
            assert await read(messages, 1) == [3]
            batch = await messages.fetch(2, max_bytes=9000, timeout=20)
            assert (seqs(batch), batch.reason) == ([4, 5], js.BatchEnd.FILLED)


async def test_a_read_may_end_by_itself(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 12)
        async with stream.ordered(stop_after=5) as messages:
            assert [each.metadata.stream_seq async for each in messages] == [1, 2, 3, 4, 5]
            assert messages.is_ended
            # The read's consumer is deleted already.
            assert [each async for each in stream.consumer_names()] == []
        async with stream.ordered(stop_after=5) as messages:
            assert await read(messages, 3) == [1, 2, 3]
            await stream.delete_consumer(messages.consumer_name)
            await messages.fetch(1, timeout=20)
            batch = await messages.fetch(9, timeout=20)
            assert (seqs(batch), batch.reason) == ([5], js.BatchEnd.NO_MESSAGES)
            with pytest.raises(js.TwinstreamError, match="ended"):
                await messages.fetch(1)


async def test_a_drained_read_hands_over_what_is_buffered(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 20)
        async with stream.ordered(max_messages=20) as messages:
            assert await read(messages, 1) == [1]
            await messages.drain()
            rest = [each.metadata.stream_seq async for each in messages]
            assert rest == list(range(2, len(rest) + 2))
            assert messages.is_ended
            assert [each async for each in stream.consumer_names()] == []
        async with stream.ordered() as messages:
            await messages.drain()
            assert [each async for each in messages] == []
        assert [each async for each in stream.consumer_names()] == []


async def test_consumer_has_the_requested_configuration(opened, name):
    async with opened() as jet:
        await filled(jet, name, 3)
        options = {"metadata": {"app": "test"}, "inactive_threshold": timedelta(seconds=70)}
        async with jet.bind_stream(name).ordered(name_prefix="reader", **options) as messages:
            assert messages.consumer_name is None
            with pytest.raises(js.BadArgument, match="no consumer now"):
                await messages.info()
            assert await read(messages, 3) == [1, 2, 3]
            info = await messages.info()
            assert info.name == messages.consumer_name
            assert info.name.startswith("reader_")
            assert info.config.metadata["app"] == "test"
            assert info.config.inactive_threshold == timedelta(seconds=70)
            assert info.delivered.stream_seq == 3
            # Another read with the same prefix is not in the way.
            async with jet.bind_stream(name).ordered(name_prefix="reader") as other:
                assert await read(other, 3) == [1, 2, 3]
                assert other.consumer_name != messages.consumer_name


async def test_arguments_that_make_no_sense(opened, name):
    async with opened() as jet:
        for options, text in (
            ({"name_prefix": "a.b"}, "name_prefix name 'a.b' contains '.'"),
            ({"stop_after": 0}, "stop_after"),
            ({"max_reset_attempts": 0}, "max_reset_attempts"),
            ({"inactive_threshold": 0}, "inactive_threshold"),
            ({"metadata": {"a": 1}}, "metadata"),
        ):
            with pytest.raises(js.BadArgument, match=text):
                jet.bind_stream(name).ordered(**options)


async def test_the_pace_of_the_past_survives_silence(opened, name):
    """The server sends no heartbeats while it waits for a message's time."""
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        await pause(1.5)
        await jet.publish(f"{name}.x")
        options = {"replay_policy": "original", "expires": 1, "heartbeat": 0.5}
        async with stream.ordered(**options) as messages:
            first = await messages.next(timeout=60)
            second = await messages.next(timeout=60)
            assert [first.metadata.stream_seq, second.metadata.stream_seq] == [1, 2]
            assert messages.resets == 0
