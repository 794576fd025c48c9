"""Workers: all messages handled, order, retries, given up once, and a clean shutdown."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import timedelta
from itertools import pairwise

import pytest

import js_async as js
from js_async.consume.delivery import Delivery
from js_async.consume.message import Message
from js_async.workers import DeadLetters, HandlerFailed, Reject, TryLater, Worker
from js_async.workers.job_outcome import Outcomes
from js_async.workers.job_queue import JobQueue
from js_async.workers.jobs import Job, JobsHere
from js_async.workers.redeliveries import Redeliveries
from js_async.workers.settings import WorkSettings
from tests._async.flow import eventually, pause, together
from tests._async.streams import filled, settled
from tests.dropping import let_go
from tests.hooked import starts
from tests.meter import Meter
from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.workers.retry import Retry
from twinstream.models import ConsumerConfig, StreamConfig, evolve
from twinstream.testing import Proxy

PATIENT = ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=30))
QUICK = Retry(attempts=3, first=0.02, factor=1)


async def count_is(log, count):
    return len(log) >= count


async def ignore(message):
    """Do nothing with a message."""


async def test_every_message_is_handled_once(opened, name):
    async with opened() as jet:
        await filled(jet, name, 60)
        meter, done = Meter(), []

        async def all_are_busy():
            return meter.most == 4

        async def handler(message):
            meter.enter(message)
            await eventually(all_are_busy)
            done.append(message.metadata.stream_seq)
            meter.leave(message)

        worker = Worker(jet, name, PATIENT, handler, concurrency=4)
        async with worker:
            await eventually(count_is, done, 60)
        assert Counter(done) == Counter(range(1, 61))
        assert meter.most == 4
        assert (worker.handled, worker.retried, worker.rejected) == (60, 0, 0)
        assert (worker.in_hand, worker.waiting) == (0, 0)
        await eventually(settled, await jet.get_consumer(name, "c"), 60)


@pytest.mark.parametrize("order", ["subject", "key", "total"])
async def test_order_is_kept_though_handlers_fail(opened, name, order):
    """Later messages of a key wait for a failed message of the same key."""
    async with opened() as jet:
        await filled(jet, name, 0)
        for number in range(36):
            await jet.publish(f"{name}.{number % 6}", b"%d" % number)
        done = defaultdict(list)
        tries = Counter()
        running = Counter()
        overlaps = []

        def key_of(message):
            if order == "total":
                return "all"
            return message.subject if order == "subject" else int(message.data) % 3

        async def handler(message):
            seq, key = message.metadata.stream_seq, key_of(message)
            running[key] += 1
            if running[key] > 1:
                overlaps.append(seq)
            try:
                await pause(0.002)
                tries[seq] += 1
                if seq % 5 == 0 and tries[seq] < 3:
                    raise ValueError(seq)
                done[key].append(seq)
            finally:
                running[key] -= 1

        worker = Worker(
            jet,
            name,
            PATIENT,
            handler,
            concurrency=1 if order == "total" else 4,
            order=key_of if order == "key" else order,
            retry=QUICK,
        )
        async with worker:
            await eventually(handled, worker, 36)
        assert not overlaps
        assert all(seqs == sorted(seqs) for seqs in done.values())
        assert sum(map(len, done.values())) == 36
        assert tries == Counter({seq: 3 if seq % 5 == 0 else 1 for seq in range(1, 37)})
        assert worker.retried == 14


async def handled(worker, count):
    return worker.handled + worker.rejected >= count


async def test_one_key_that_fails_does_not_hold_up_others(opened, name):
    async with opened() as jet:
        await filled(jet, name, 0)
        for number in range(20):
            await jet.publish(f"{name}.{'bad' if number < 3 else number}")
        seen = []

        async def handler(message):
            if message.subject.endswith("bad"):
                raise TryLater(60, "not now")
            seen.append(message.metadata.stream_seq)

        async with Worker(jet, name, PATIENT, handler, order="subject") as worker:

            async def all_wait():
                return (worker.retried, worker.waiting) == (1, 3)

            await eventually(count_is, seen, 17)
            await eventually(all_wait)
        # Unprocessed messages return to the server, in order, for the next client.
        consumer = await jet.get_consumer(name, "c")
        batch = await consumer.fetch(3, timeout=10)
        assert [message.metadata.stream_seq for message in batch] == [1, 2, 3]


async def test_failures_are_delivered_again_by_the_server(opened, name):
    reports = []
    async with opened() as jet:
        await filled(jet, name, 2)
        attempts = defaultdict(list)

        async def handler(message):
            attempts[message.metadata.stream_seq].append(message.metadata.num_delivered)
            if len(attempts[message.metadata.stream_seq]) < 3:
                raise OSError("disk")

        worker = Worker(
            jet, name, PATIENT, handler, retry=QUICK, on_report=reports.append, concurrency=2
        )
        async with worker:
            await eventually(handled, worker, 2)
        assert attempts == {1: [1, 2, 3], 2: [1, 2, 3]}
        assert (worker.handled, worker.retried) == (2, 4)
        failed = [each for each in reports if isinstance(each, HandlerFailed)]
        assert sorted(each.attempt for each in failed) == [1, 1, 2, 2]
        assert {each.retry_in for each in failed} == {0.02}
        assert str(failed[0].error) == "disk"


async def test_a_backoff_of_the_consumer_does_not_skew_the_delays(opened, name):
    """With an uncorrected delay, the third delivery would be 0.6 seconds late."""
    async with opened() as jet:
        await filled(jet, name, 1)
        steps = [timedelta(seconds=0.4), timedelta(seconds=1)]
        config = ConsumerConfig(durable_name="c", backoff=steps, max_deliver=10)
        times = []

        async def handler(message):
            times.append(monotonic())
            if len(times) < 4:
                raise ValueError("no")

        retry = Retry(attempts=9, first=0.9, factor=1)
        worker = Worker(jet, name, config, handler, retry=retry)
        async with worker:
            await eventually(handled, worker, 1)
        gaps = [after - before for before, after in pairwise(times)]
        # Never early. (Late ones are the machine's matter; the formula has its own test.)
        assert all(gap > 0.85 for gap in gaps)


@pytest.mark.parametrize("retention", ["limits", "workqueue"])
@pytest.mark.parametrize("order", ["none", "subject"])
async def test_poison_becomes_one_dead_letter_with_its_body(opened, name, retention, order):
    async with opened() as jet:
        config = StreamConfig(name=name, subjects=[f"{name}.>"], retention=retention)
        await jet.create_stream(config)
        for number in range(12):
            await jet.publish(f"{name}.{number % 4}", b"%d" % number)
        tries = Counter()

        async def handler(message):
            number = int(message.data)
            tries[number] += 1
            if number % 6 == 0:
                raise ValueError(f"bad\nnumber {number}")
            if number == 3:
                raise Reject("never a three")

        letters = DeadLetters(jet, name)
        worker = Worker(
            jet,
            name,
            PATIENT,
            handler,
            concurrency=3,
            order=order,
            retry=QUICK,
            dead_letters=letters,
        )
        async with worker:
            await eventually(handled, worker, 12)
            await eventually(skipped, letters, 3)
        assert (worker.handled, worker.rejected) == (9, 3)
        assert {number: count for number, count in tries.items() if count > 1} == {0: 3, 6: 3}
        found = {letter.stream_seq: letter async for letter in letters.letters()}
        assert {seq: letter.data for seq, letter in found.items()} == {1: b"0", 4: b"3", 7: b"6"}
        assert found[1].reason == "ValueError: bad number 0"
        assert found[4].reason == "never a three"
        assert (letters.stored, letters.known) == (3, 0)


async def skipped(letters, count):
    """Return whether `count` advisories of the worker's own terminations were skipped."""
    return letters.skipped >= count


async def test_a_long_handler_is_not_disturbed(opened, name):
    async with opened() as jet:
        await filled(jet, name, 8)
        config = ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=2.5))
        seen = []

        async def handler(message):
            await pause(5)
            seen.append((message.metadata.stream_seq, message.metadata.num_delivered))

        async with Worker(jet, name, config, handler, concurrency=8):
            await eventually(count_is, seen, 8)
        assert sorted(seen) == [(seq, 1) for seq in range(1, 9)]


async def test_handler_may_acknowledge_its_message(opened, name):
    async with opened() as jet:
        await filled(jet, name, 3)
        seen = []

        async def handler(message):
            seq = message.metadata.stream_seq
            seen.append(seq)
            if seq == 1:
                await message.term("mine")
            elif seq == 2:
                await message.ack()
                raise ValueError("too late")

        async with Worker(jet, name, PATIENT, handler) as worker:
            await eventually(count_is, seen, 3)
        await eventually(settled, await jet.get_consumer(name, "c"), 3)
        assert (worker.handled, worker.retried, worker.rejected) == (2, 0, 0)


@pytest.mark.parametrize("order", ["none", "subject"])
async def test_an_end_in_the_middle_loses_nothing_and_doubles_nothing(opened, name, order):
    async with opened() as jet:
        await filled(jet, name, 200)
        seen = []

        async def may_end():
            return len(seen) < target or over

        async def handler(message):
            await pause(0.002)
            seen.append(message.metadata.stream_seq)
            # The end is reported late, in the middle of the messages.
            await eventually(may_end)

        async def end():
            over.append(True)

        ends, over = 0, []
        while len(seen) < 200:
            over.clear()
            target = min(len(seen) + 30, 200)
            settings = {"concurrency": 3, "order": order}
            async with Worker(jet, name, PATIENT, handler, **settings) as worker:
                # What the server dropped at the previous end comes after ack_wait.
                await eventually(count_is, seen, target, patience=90)
                await together(worker.stop, end)
            assert (worker.in_hand, worker.waiting) == (0, 0)
            ends += 1
        assert ends > 2
        assert Counter(seen) == Counter(range(1, 201))


async def test_a_handler_can_end_the_work(opened, name):
    async with opened() as jet:
        await filled(jet, name, 50)
        seen = []

        async def handler(message):
            seen.append(message.metadata.stream_seq)
            if len(seen) == 10:
                await worker.stop()

        worker = Worker(jet, name, PATIENT, handler)
        await worker.run(signals=False)
        assert 10 <= len(seen) < 50
        with pytest.raises(js.BadArgument, match="started already"):
            await worker.start()


@pytest.mark.parametrize("order", ["none", "subject"])
async def test_a_shorter_ack_wait_doubles_nothing_here(opened, name, order):
    """A message that is redelivered while it is in the worker, or just done, is not handled."""
    async with opened() as jet:
        await filled(jet, name, 6)
        seen = []
        consumer = ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=60))

        async def handler(message):
            seen.append(message.metadata.stream_seq)
            if len(seen) == 1:
                shorter = evolve(consumer, ack_wait=timedelta(seconds=0.5))
                await jet.create_or_update_consumer(name, shorter)
            await pause(0.8)

        worker = Worker(jet, name, consumer, handler, order=order, concurrency=2)
        async with worker:
            await eventually(handled, worker, 6)
            await eventually(settled, await jet.get_consumer(name, "c"), 6)
        assert Counter(seen) == Counter(range(1, 7))
        assert worker.handled == 6


@pytest.mark.parametrize("whose", ["the worker's", "the handler's"])
async def test_lost_acknowledgement_is_repeated(server, name, whose):
    with Proxy(server.url) as proxy:
        async with js.connect(server.url) as direct, js.connect(proxy.url) as connection:
            await filled(direct.jetstream(), name, 1)
            seen = []

            async def handler(message):
                seen.append(message)
                # The word goes nowhere, and the link breaks behind it.
                proxy.black_hole = True
                if whose == "the handler's":
                    await message.ack()

            consumer = ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=1))
            async with Worker(connection.jetstream(), name, consumer, handler) as worker:
                await eventually(handled, worker, 1)
                proxy.cut()
                proxy.black_hole = False
                looked = await direct.jetstream().get_consumer(name, "c")
                await eventually(settled, looked, 1)
            assert len(seen) == 1


async def test_settings_are_requested_after_the_first_redelivery():
    asked = []

    class Known:
        async def info(self):
            asked.append("info")
            raise js.RequestTimeout("by the test")

    class Empty:
        async def earlier(self, _):
            return None, False

    redeliveries = Redeliveries(Known(), None, Empty(), None)
    first, again = (
        Message((b"s.1", b"$JS.ACK.S.C.%d.1.1.1700000000.0" % count, 0, b""), None)
        for count in (1, 2)
    )
    assert not await redeliveries.is_known(first)
    assert not asked
    assert not await redeliveries.is_known(again)
    assert asked


async def test_returned_message_is_not_a_repeat_when_redelivered():
    """It may be redelivered before the worker knows that its nak was sent."""
    here = JobsHere(2)
    repeats = []

    class Quick:
        observers = None

        async def send(self, *_):
            repeats.append(here.claimed(again) is not None or here.is_over(again))

    replies = [b"$JS.ACK.S.C.%d.1.%d.1700000000.0" % (n, n) for n in (1, 2)]
    delivery = Delivery(Quick(), 0, 9, 5.0)
    first, again = (Message((b"s.1", reply, 0, b""), delivery) for reply in replies)
    job = here.add(first)
    assert here.claimed(again) is job
    await first.nak()
    here.done(job)
    assert repeats == [False]
    assert not here.is_over(again)


async def test_either_a_late_message_counts_or_its_redelivery():
    """Another thread may find the late message for the redelivery while a worker drops it."""
    replies = [b"$JS.ACK.S.C.%d.1.%d.1700000000.0" % (n, n) for n in (1, 2)]
    delivery = Delivery(None, monotonic() - 60, 30, 5.0)
    late, again = (Message((b"s.1", reply, 0, b""), delivery) for reply in replies)
    jobs = JobQueue(2, lambda message, number: number)
    await jobs.add(late)
    _, job = await jobs.take()
    assert (await jobs.earlier(again))[0] is job
    assert not await jobs.leaves_late(job)
    job.is_claimed = False
    assert await jobs.leaves_late(job)
    assert await jobs.earlier(again) == (None, False)


async def test_what_somebody_else_gave_up_hides_no_repeat_of_what_was_done():
    here = JobsHere(2)

    class Quick:
        observers = None

        def write_command(self, _):
            return True

    def delivered(count, seq, number):
        reply = b"$JS.ACK.S.C.%d.%d.%d.1700000000.0" % (count, seq, number)
        return Message((b"s.1", reply, 0, b""), Delivery(Quick(), 0, 9, 5.0))

    first, other, again = delivered(1, 1, 1), delivered(2, 2, 2), delivered(2, 1, 3)
    job = here.add(first)
    await first.ack()
    here.done(job)
    assert not here.is_over(other)
    here.add(other)
    assert here.is_over(again)


@pytest.mark.parametrize("late", [True, False])
async def test_what_is_late_is_not_given_back(opened, name, late):
    """The server may have redelivered it to another client, whose delivery a nak would affect."""
    words = []

    class Spy:
        observers = None

        async def send(self, *parts):
            words.append(parts[3])

    def arrived():
        reported_at = monotonic() - 60 * late
        return Message(
            (b"s.1", b"$JS.ACK.S.C.1.1.1.17.0", 0, b""), Delivery(Spy(), reported_at, 30, 5.0)
        )

    async def handler(_):
        raise AssertionError("it is over")

    async with opened() as jet:
        settings = WorkSettings(
            concurrency=1, order="none", retry=Retry(), dead_letters=None, max_messages=None,
            priority=None, on_report=None,
        )  # fmt: skip
        await Outcomes(settings, PATIENT).give_back(Job(arrived()))
        stream = await filled(jet, name, 0)
        consuming = (await stream.create_consumer(PATIENT)).consume(handler)
        await consuming.start()
        await consuming.stop()
        await consuming._handle(arrived())
    assert words == ([] if late else [b"-NAK"] * 2)


@pytest.mark.since("2.14")
async def test_what_a_reset_brings_again_is_worked_on_until_it_is_done(opened, name):
    async with opened() as jet:
        await filled(jet, name, 1)
        seen = []

        async def handler(message):
            seen.append(message.metadata.num_delivered)
            if len(seen) == 2:
                raise TryLater(0)

        async with Worker(jet, name, PATIENT, handler) as worker:
            await eventually(handled, worker, 1)
            consumer = await jet.get_consumer(name, "c")
            await eventually(settled, consumer, 1)
            await consumer.reset(1)
            await eventually(handled, worker, 2)
        assert seen == [1, 1, 2]


async def test_two_workers_share_dead_letters(opened, name):
    """A worker that ends must not close the dead letters of the other worker."""
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        letters = DeadLetters(jet, name)

        async def reject(message):
            raise Reject("no")

        def made(durable):
            consumer = ConsumerConfig(durable_name=durable, filter_subject=f"{name}.{durable}")
            return Worker(jet, name, consumer, reject, dead_letters=letters)

        by_hand = ConsumerConfig(durable_name="c", filter_subject=f"{name}.c")
        consumer = await stream.create_consumer(by_hand)
        for count in (1, 2):
            async with made("a"):
                async with made("b") as second:
                    pass
                await second.stop()
                await jet.publish(f"{name}.c")
                await (await consumer.next()).term("bad")

                async def stored(count=count):
                    return letters.stored == count

                await eventually(stored)


async def test_total_order_prefetches_few_messages(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 20)
        freed = []

        async def handler(message):
            await eventually(count_is, freed, 1)

        async with Worker(jet, name, PATIENT, handler, order="total") as worker:

            async def one_is_worked_on():
                return worker.in_hand

            await eventually(one_is_worked_on)
            consumer = await stream.get_consumer("c")
            # Two in hand, as many on their way.
            assert (await consumer.info()).num_pending >= 16
            freed.append(True)


async def test_prefetch_is_limited_to_what_workers_can_handle(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 100)
        begun, freed = [], []

        async def handler(message):
            begun.append(message)
            await eventually(count_is, freed, 1)

        worker = Worker(jet, name, PATIENT, handler, concurrency=2)
        await worker.start()
        await eventually(count_is, begun, 2)
        consumer = await stream.get_consumer("c")
        # Four in hand, as many on their way; the rest has not been delivered to anybody.
        assert (await consumer.info()).num_pending >= 92
        freed.append(True)
        await worker.stop()


async def test_handler_that_does_not_end_is_reported(opened, name):
    async with opened() as jet:
        await filled(jet, name, 1)
        begun, freed = [], []

        async def handler(message):
            begun.append(message)
            await eventually(count_is, freed, 1)

        worker = Worker(jet, name, PATIENT, handler)
        await worker.start()
        await eventually(count_is, begun, 1)
        with pytest.raises(js.RequestTimeout, match="still running"):
            await worker.stop(timeout=0.05)
        freed.append(True)
        await worker.stop()
        assert worker.handled == 1


async def test_the_loss_of_the_consumer_ends_the_work(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)

        async def handler(message):
            await stream.delete_consumer("c")

        with pytest.raises(js.ConsumerDeleted):
            await Worker(jet, name, PATIENT, handler).run(signals=False)


async def test_settings_that_cannot_be(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        for settings, said in (
            ({"concurrency": 0}, "concurrency"),
            ({"concurrency": 2.5}, "concurrency must be a whole number"),
            ({"retry": 3}, "retry must be a Retry, got 3"),
            ({"order": "subjects"}, "order"),
            ({"concurrency": 3, "max_messages": 2}, "max_messages"),
            ({"priority": "g"}, "priority must be a Priority"),
        ):
            with pytest.raises(js.BadArgument, match=said):
                Worker(jet, name, "c", ignore, **settings)
        for config, said in (
            (ConsumerConfig(durable_name="u", deliver_subject=f"deliver.{name}"), "push consumer"),
            (ConsumerConfig(durable_name="u", ack_policy="none"), "explicit"),
        ):
            with pytest.raises(js.BadArgument, match=said):
                Worker(jet, name, config, ignore)
            await stream.create_consumer(config)
            with pytest.raises(js.BadArgument, match=said):
                await Worker(jet, name, "u", ignore).start()
            await stream.delete_consumer("u")
        with pytest.raises(js.ConsumerNotFound):
            await Worker(jet, name, "c", ignore).start()


async def test_the_error_that_ended_a_worker_is_raised_though_a_handler_runs(opened, name):
    async with opened() as jet:
        await filled(jet, name, 2)
        running, released = [], []

        async def handler(message):
            running.append(None)
            await eventually(count_is, running, 2)
            if message.metadata.stream_seq == 1:
                raise SystemExit(3)
            await eventually(count_is, released, 1)

        async def has_error():
            return worker.error is not None

        worker = Worker(jet, name, PATIENT, handler, concurrency=2)
        await worker.start()
        await eventually(has_error)
        with pytest.raises(SystemExit) as raised:
            await worker.stop(timeout=0.1)
        assert "a handler is still running" in str(raised.value.__context__)
        released.append(None)
        with pytest.raises(SystemExit):
            await worker.wait(timeout=300)


async def test_unseen_error_of_a_worker_causes_a_warning(opened, name, unlogged):
    async def leave(_):
        raise SystemExit(3)

    async with opened() as jet:
        await filled(jet, name, 1)
        works = [Worker(jet, name, PATIENT, leave)]
        with starts() as tasks:
            await works[0].start()
        assert await tasks["twinstream-worker"].join(Deadline.after(30))
    with pytest.warns(
        RuntimeWarning, match=rf"Worker {PATIENT.durable_name} of {name} .*SystemExit\(3\)"
    ):
        let_go(works)
