# Generated from tests/_async/test_consume.py by codegen/twin.py. Edit that file instead.
"""Pulling: fetch, next and messages, and the words of acknowledgement."""

from __future__ import annotations

import gc
from datetime import timedelta
from itertools import chain

import pytest
from attrs import evolve

import js_sync as js
from twinstream.core.deadline import Deadline
from twinstream.models import ConsumerConfig, StreamConfig
from js_sync.consume import consume as consuming
from js_sync.consume.messages import Messages
from twinstream.testing import FakePeer, FakeServer
from tests._sync.flow import eventually, together
from tests._sync.streams import filled, settled, waiting
from tests.dropping import let_go


def test_fetch_ends_when_it_is_full(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 10)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        batch = consumer.fetch(4)
        assert batch.reason is js.BatchEnd.FILLED
        assert [message.data for message in batch] == [b"0", b"1", b"2", b"3"]
        assert [message.subject for message in batch[:2]] == [f"{name}.0", f"{name}.1"]
        assert len(consumer.fetch(6)) == 6


def test_long_messages_are_not_asked_for_by_the_hundred(server_factory, name):
    # A server cuts off a client for whom it has to hold back more than 64 MiB.
    count, size = 150, 1_000_000
    with server_factory() as server:
        with js.connect(server.url) as connection:
            jet = connection.jetstream(timeout=30)
            stream = jet.create_stream(StreamConfig(name=name, subjects=[name], storage="memory"))
            request = js.PublishRequest(subject=name, data=b"x" * size)
            for outcome in jet.publish_many((request for _ in range(count)), window=8):
                assert not isinstance(outcome, js.PublishFailure)
            consumer = stream.create_consumer(ConsumerConfig(ack_policy="none"))
            seqs, most = [], 0
            with consumer.messages(stop_after=count) as messages:
                for message in messages:
                    assert len(message.data) == size
                    seqs.append(message.metadata.stream_seq)
                    most = max(most, messages.buffered + messages.outstanding)
        assert seqs == list(range(1, count + 1))
        assert most <= 32
        assert "Slow Consumer" not in server.log


def test_a_consumer_that_lets_one_request_wait_is_sent_one(opened, name):
    # A server drops the others without a word: what is missing shows after two heartbeats.
    with opened() as jet:
        stream = filled(jet, name, 0)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c", max_waiting=1))
        reports = []
        with consumer.messages(on_report=reports.append) as messages:
            for number in range(40):
                jet.publish(f"{name}.{number}")
                (messages.next(30)).ack()
        assert not reports


def leave_at_the_first(messages):
    for _ in messages:
        break
    gc.collect()


def test_an_iteration_that_is_dropped_open_warns(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 10)
        # Each has all messages: what is in the hands of one is not for others.
        left, closed, over = [
            stream.create_consumer(ConsumerConfig(durable_name=each))
            for each in ("left", "closed", "over")
        ]
        with pytest.warns(ResourceWarning, match="left: an iteration .* was not closed"):
            leave_at_the_first(left.messages())
        with closed.messages() as messages:
            leave_at_the_first(messages)
        del messages
        assert len([message for message in over.messages(stop_after=2)]) == 2
        gc.collect()


def test_nothing_is_kept_for_an_iteration_that_is_dropped_open(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 10)
        config = ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=1))
        consumer = stream.create_consumer(config)
        messages = [consumer.messages()]
        held = messages[0]._held
        messages[0].next(20)
        with pytest.warns(ResourceWarning, match="comes again after ack_wait"):
            let_go(messages)
        assert held._keeper.join(Deadline.after(20))


def test_a_consumption_that_is_interrupted_while_it_starts_ends(opened, name, monkeypatch):
    tasks = []

    def interrupted(work, label):
        tasks.append(own(work, label))
        if len(tasks) == 2:
            raise KeyboardInterrupt
        return tasks[-1]

    def handle(message):
        message.ack()

    own = consuming.spawn
    monkeypatch.setattr(consuming, "spawn", interrupted)
    with opened() as jet:
        stream = filled(jet, name, 0)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        with pytest.raises(KeyboardInterrupt):
            consumer.consume(handle).start()
        for task in tasks:
            assert task.join(Deadline.after(20))


def drained(consuming):
    consuming.start()
    consuming.drain(20)


def done(consuming):
    consuming.start()
    consuming.wait(20)


@pytest.mark.parametrize("end", [drained, done])
def test_nothing_runs_on_behind_a_consumption_that_has_ended(opened, name, end):
    def handle(message):
        message.ack()

    with opened() as jet:
        stream = filled(jet, name, 1)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        consuming = consumer.consume(handle, stop_after=1)
        end(consuming)
        assert consuming.messages._held._keeper.join(Deadline.after(20))


def broken(_):
    raise ValueError("out of order")


def begun(works):
    """Start the only one of `works`; return when it has ended by itself."""
    works[0].start()
    for task in works[0]._tasks:
        assert task.join(Deadline.after(30))


@pytest.mark.parametrize("closed", [False, True])
def test_an_error_of_a_handler_that_nobody_waited_for_warns(opened, name, closed, unlogged):
    with opened() as jet:
        stream = filled(jet, name, 3)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        works = [consumer.consume(broken)]
        begun(works)
        if not closed:
            with pytest.warns(RuntimeWarning, match=f"{name}/c: .*ValueError..out of order"):
                let_go(works)
    if closed:
        with pytest.warns(RuntimeWarning, match=f"{name}/c: .*ValueError..out of order"):
            let_go(works)


def test_an_error_of_a_handler_that_was_seen_does_not_warn(opened, name, unlogged):
    with opened() as jet:
        stream = filled(jet, name, 3)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        works = [consumer.consume(broken)]
        begun(works)
        with pytest.raises(ValueError, match="out of order"):
            works[0].wait()
        let_go(works)


def test_a_consumption_that_the_program_ends_by_closing_does_not_warn(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        works = [consumer.consume(broken)]
        works[0].start()
        eventually(lambda: waiting(consumer))
    for task in works[0]._tasks:
        assert task.join(Deadline.after(30))
    let_go(works)


def test_an_iteration_that_was_interrupted_while_it_was_made_ends_quietly():
    made = Messages.__new__(Messages)
    del made
    gc.collect()


def test_fetch_says_why_it_ended(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 3)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        some = consumer.fetch(10, timeout=1.5)
        assert (len(some), some.reason) == (3, js.BatchEnd.EXPIRED)
        none = consumer.fetch(10, timeout=0.2)
        assert (len(none), none.reason) == (0, js.BatchEnd.EXPIRED)
        now = consumer.fetch(10, wait="none")
        assert (len(now), now.reason) == (0, js.BatchEnd.NO_MESSAGES)
        assert consumer.next(timeout=0) is None


def test_fetch_can_end_with_the_first_messages(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 3)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        first = consumer.fetch(10, timeout=20, wait="first")
        assert (len(first), first.reason) == (3, js.BatchEnd.NO_MESSAGES)

        def fetch():
            return consumer.fetch(10, timeout=20, wait="first")

        def publish():
            eventually(waiting)
            jet.publish(f"{name}.x")

        def waiting():
            return (consumer.info()).num_waiting

        batch, _ = together(fetch, publish)
        assert len(batch) == 1


def test_bytes_limit_a_fetch(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        for _ in range(5):
            jet.publish(f"{name}.x", b"x" * 1000)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        batch = consumer.fetch(100, max_bytes=2500, timeout=5)
        assert (len(batch), batch.reason) == (2, js.BatchEnd.BYTES_FILLED)
        batch = consumer.fetch(max_bytes=2500, timeout=5)
        assert (len(batch), batch.reason) == (2, js.BatchEnd.BYTES_FILLED)
        with pytest.raises(js.PullError, match="100 bytes"):
            consumer.fetch(100, max_bytes=100, timeout=5)
        with pytest.raises(js.BadArgument, match="max_messages, max_bytes or both"):
            consumer.fetch()


def test_a_fetch_has_the_heartbeat_that_is_asked_for(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 1)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        assert consumer.next(timeout=5, heartbeat=1) is not None
        batch = consumer.fetch(1, timeout=1.5, heartbeat=0.5)
        assert (len(batch), batch.reason) == (0, js.BatchEnd.EXPIRED)


def test_a_fetched_message_is_late_if_the_server_gave_up_on_it_meanwhile(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 1)
        config = ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=1))
        consumer = stream.create_consumer(config)
        first, second = consumer.fetch(2, timeout=20)
        assert [each.metadata.num_delivered for each in (first, second)] == [1, 2]
        assert first.is_late
        assert not first.double_ack()


def test_limits_of_the_consumer_are_named(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 1)
        config = ConsumerConfig(
            durable_name="c", max_batch=2, max_expires=timedelta(seconds=1), max_bytes=100
        )
        consumer = stream.create_consumer(config)
        with pytest.raises(js.PullRefused) as caught:
            consumer.fetch(3, timeout=0.5)
        assert (caught.value.limit, caught.value.asked, caught.value.allowed) == (
            "max_batch",
            3,
            2,
        )
        with pytest.raises(js.PullRefused, match="max_expires"):
            consumer.fetch(1, timeout=5)
        with pytest.raises(js.PullRefused, match="max_bytes"):
            consumer.fetch(1, max_bytes=1000, timeout=0.5)


@pytest.mark.parametrize("options", [{}, {"max_bytes": 100_000}])
def test_a_buffer_grows_no_further_than_the_consumer_allows(opened, name, options):
    with opened() as jet:
        stream = filled(jet, name, 150)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c", max_batch=40))
        seen = []
        with consumer.messages(**options) as messages:
            while len(seen) < 150:
                message = messages.next(20)
                seen.append(message.metadata.stream_seq)
                message.ack()
        assert seen == list(range(1, 151))


def test_pulls_keep_to_the_limits_of_the_consumer(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 9)
        config = ConsumerConfig(durable_name="c", max_batch=2, max_expires=timedelta(seconds=2))
        consumer = stream.create_consumer(config)
        with consumer.messages(stop_after=3) as messages:
            assert [message.double_ack() for message in messages] == [True] * 3
        with consumer.messages(max_bytes=100, stop_after=3) as messages:
            assert [message.double_ack() for message in messages] == [True] * 3
        assert len(consumer.fetch(max_bytes=10_000, timeout=1)) == 2
        with consumer.messages(expires=3) as messages:
            with pytest.raises(js.PullRefused, match="max_expires"):
                messages.next(20)


def test_a_missing_consumer_is_told_at_once(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 1)
        with pytest.raises(js.ConsumerNotFound):
            stream.get_consumer("none")
        with pytest.raises(js.NoResponders):
            jet.bind_consumer(name, "none").fetch(1, timeout=30)


def test_a_deleted_consumer_ends_fetch_and_messages(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))

        def delete():
            eventually(waiting)
            consumer.delete()

        def waiting():
            return (consumer.info()).num_waiting

        def fetch():
            with pytest.raises(js.ConsumerDeleted):
                consumer.fetch(1, timeout=30)

        together(fetch, delete)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))

        def iterate():
            with consumer.messages() as messages:
                with pytest.raises(js.ConsumerDeleted):
                    messages.next(30)

        together(iterate, delete)


def test_messages_refill_their_buffer(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 300)
        for limit in (1, 2, 7, 100, 500):
            consumer = stream.create_consumer(ConsumerConfig(durable_name=f"c{limit}"))
            seen = []
            with consumer.messages(max_messages=limit) as messages:
                for message in messages:
                    seen.append(message.metadata.stream_seq)
                    assert messages.buffered + messages.outstanding <= limit
                    message.ack()
                    if len(seen) == 300:
                        break
            assert seen == list(range(1, 301))
            eventually(settled, consumer, 300)


def test_messages_can_be_bounded_by_bytes(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 200)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        seen = []
        with consumer.messages(max_bytes=2000) as messages:
            for message in messages:
                seen.append(message.metadata.stream_seq)
                message.ack()
                if len(seen) == 200:
                    break
        assert seen == list(range(1, 201))


def test_leaving_gives_back_what_was_not_handed_over(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 20)
        config = ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=60))
        consumer = stream.create_consumer(config)
        with consumer.messages(max_messages=20) as messages:
            (messages.next()).ack()
        again = consumer.fetch(19, timeout=10)
        assert sorted(message.metadata.stream_seq for message in again) == list(range(2, 21))


def test_draining_hands_over_what_is_here(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 20)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        seen = []
        with consumer.messages(max_messages=20) as messages:
            for message in messages:
                seen.append(message.metadata.stream_seq)
                message.ack()
                if len(seen) == 3:
                    messages.drain()
        assert seen == list(range(1, len(seen) + 1))
        assert len(seen) >= 3
        eventually(settled, consumer, len(seen))


def test_a_nak_brings_the_message_again(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 1)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        for delivery in range(1, 4):
            message = consumer.next()
            assert message.metadata.num_delivered == delivery
            message.nak(0.05 if delivery == 2 else None)
        message = consumer.next()
        message.term("no use")
        assert consumer.next(timeout=0.2) is None
        eventually(settled, consumer, 1)


def test_a_second_word_is_refused(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 1)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        message = consumer.next()
        message.in_progress()
        assert not message.is_acknowledged
        message.double_ack()
        assert message.is_acknowledged
        for word in (message.ack, message.nak, message.term, message.in_progress):
            with pytest.raises(js.AlreadyAcknowledged):
                word()
        assert (consumer.info()).ack_floor.stream_seq == 1


def test_a_confirmed_word_has_its_effect_when_it_returns(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 2)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        [ended, again] = consumer.fetch(2)
        ended.in_progress(confirm=True)
        ended.term("no tea", confirm=True)
        assert (consumer.info()).ack_floor.stream_seq == 1
        again.nak(confirm=True)
        assert (again.is_acknowledged, again._is_returned) == (True, True)
        [once_more] = consumer.fetch(1)
        assert once_more.metadata.num_delivered == 2


def test_a_batch_is_acknowledged_and_confirmed_at_once(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 100)
        consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
        batch = consumer.fetch(100)
        assert consumer.double_ack(batch) == []
        assert all(message.is_acknowledged for message in batch)
        info = consumer.info()
        assert (info.num_ack_pending, info.ack_floor.stream_seq) == (0, 100)
        assert consumer.double_ack([]) == []
        with pytest.raises(js.AlreadyAcknowledged):
            consumer.double_ack(batch[:1])
        with pytest.raises(js.BadArgument, match="message"):
            consumer.double_ack([b"x"])


def test_two_consumers_of_one_durable_share_the_messages(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 200)
        stream.create_consumer(ConsumerConfig(durable_name="c"))

        def work():
            consumer = stream.get_consumer("c")
            seen = []
            while True:
                batch = consumer.fetch(7, timeout=2)
                for message in batch:
                    message.ack()
                    seen.append(message.metadata.stream_seq)
                if not batch:
                    return seen

        seen = together(work, work, work)
        assert sorted(chain.from_iterable(seen)) == list(range(1, 201))


def test_consumers_that_are_looked_up_again_and_again_leave_nothing_behind(server, name):
    with js.connect(server.url) as connection:
        stream = filled(connection.jetstream(), name, 6)
        for durable in ("a", "b"):
            stream.create_consumer(ConsumerConfig(durable_name=durable))
        seen, counts = [], set()
        for number in range(12):
            # Of another one each time, through what the last one left.
            jet = connection.jetstream()
            consumer = jet.get_consumer(name, "ab"[number % 2])
            message = consumer.next(timeout=5)
            message.ack()
            seen.append((message.metadata.consumer, message.metadata.stream_seq))
            counts.add(connection.stats.subscriptions)
        assert seen == [(durable, seq) for seq in range(1, 7) for durable in "ab"]
        assert len(counts) == 1


def test_consumers_are_listed_changed_and_deleted(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        made = stream.create_consumer(ConsumerConfig(filter_subject=f"{name}.a"))
        assert made.cached_info.config.ack_policy == "explicit"
        assert made.cached_info.config.filter_subject == f"{name}.a"
        stream.create_consumer(ConsumerConfig(durable_name="d"))
        with pytest.raises(js.ConsumerExists):
            stream.create_consumer(ConsumerConfig(durable_name="d", max_deliver=3))
        with pytest.raises(js.ConsumerNotFound):
            stream.update_consumer(ConsumerConfig(durable_name="e"))
        changed = stream.update_consumer(ConsumerConfig(durable_name="d", max_deliver=3))
        assert changed.cached_info.config.max_deliver == 3
        names = [each for each in stream.consumer_names()]
        assert sorted(names) == sorted(["d", made.name])
        assert {each.name for each in stream.consumers()} == set(names)
        stream.delete_consumer("d")
        with pytest.raises(js.ConsumerNotFound):
            jet.get_consumer(name, "d")


def test_a_buffer_is_bounded_by_messages_and_bytes_at_once(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 0)
        sizes = [10] * 60 + [2000] * 60 + [10] * 60
        requests = (js.PublishRequest(subject=f"{name}.x", data=bytes(size)) for size in sizes)
        for outcome in jet.publish_many(requests):
            assert not isinstance(outcome, js.PublishFailure)
        consumer = stream.create_consumer(ConsumerConfig(ack_policy="none"))
        seen, most, most_bytes = [], 0, 0
        with consumer.messages(
            max_messages=20, max_bytes=10_000, stop_after=len(sizes)
        ) as messages:
            for message in messages:
                seen.append(len(message.data))
                most = max(most, messages.buffered + messages.outstanding)
                most_bytes = max(most_bytes, messages._engine.buffered_bytes)
        assert seen == sizes
        assert most <= 20
        assert 2000 < most_bytes <= 10_000


def test_a_refused_first_request_may_be_reported_and_repeated(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 1)
        config = ConsumerConfig(durable_name="c", max_batch=2)
        stream.create_consumer(config)
        reports = []
        consumer = stream.bind_consumer("c")
        with consumer.messages(
            max_messages=10, on_refused="retry", on_report=reports.append
        ) as messages:

            def change():
                def refused():
                    return reports

                eventually(refused)
                assert "Exceeded MaxRequestBatch of 2" in reports[0].text
                stream.update_consumer(evolve(config, max_batch=100))

            message, _ = together(lambda: messages.next(30), change)
            assert message.metadata.stream_seq == 1
        for wrong in ("warn", None, True):
            with pytest.raises(js.BadArgument, match="on_refused must be 'raise' or 'retry'"):
                consumer.messages(on_refused=wrong)


@pytest.mark.parametrize("count", [0, 1])
def test_a_single_message_is_asked_for_in_two_steps(count):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        first = peer.expect_pull()
        assert first.json == {"batch": 1, "no_wait": True}
        if count:
            peer.deliver(first, 1, b"here")
            return
        peer.status(first, 404, "No Messages")
        second = peer.expect_pull()
        assert second.json["expires"] == 5_000_000_000
        peer.deliver(second, 1, b"here")

    with FakeServer(script) as server:
        with js.connect(server.url) as connection:
            consumer = connection.jetstream().bind_consumer("S", "c")
            message = consumer.next(timeout=5, two_step=True)
            assert message.data == b"here"
