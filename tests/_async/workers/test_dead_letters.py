"""Dead letters: one for each failure, even if processes are killed; and operations on letters."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

import js_async as js
from js_async.workers import DeadLetters
from tests._async.broken import BEFORE, BEHIND, Killed, mortal
from tests._async.flow import eventually
from tests._async.streams import filled, run_out
from twinstream.core.workers.dead_letter import Names, stored_reason
from twinstream.errors import SubjectOverlap
from twinstream.models import ConsumerConfig, StreamConfig, evolve
from twinstream.testing import Proxy

FAST = timedelta(milliseconds=200)


async def worker_of(stream, **settings):
    config = ConsumerConfig(durable_name="c", max_deliver=1, ack_wait=timedelta(seconds=30))
    return await stream.create_consumer(evolve(config, **settings))


def names_of(name):
    """Return the default names of the dead letters of a stream."""
    return Names.of(name, None, None, None, None)


async def all_of(letters):
    return [letter async for letter in letters.letters()]


async def dead(letters, count):
    """Return the dead letters once there are `count` of them."""
    found = await all_of(letters)
    return found if len(found) >= count else None


async def collected(letters, count):
    """Collect until `count` advisories are processed."""
    done = 0

    async def enough():
        nonlocal done
        done += await letters.collect(idle_timeout=0.1)
        return done >= count

    await eventually(enough)


async def give_up(consumer, count):
    """Terminate every even message and let the others run out of deliveries."""
    for message in await consumer.fetch(count, timeout=10):
        if message.metadata.stream_seq % 2:
            await message.nak()
        else:
            await message.term(f"bad {message.metadata.stream_seq}")
    await eventually(run_out, consumer)


async def test_each_failure_becomes_a_letter_with_its_cause(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        await jet.publish(f"{name}.a", b"one", headers={"Trace": "7"}, msg_id="m1")
        await jet.publish(f"{name}.b", b"two")
        consumer = await worker_of(stream)
        letters = DeadLetters(jet, name)
        await letters.create()
        await letters.create()
        await give_up(consumer, 2)
        await collected(letters, 2)
        one, two = sorted(await all_of(letters), key=lambda letter: letter.stream_seq)
        assert (one.subject, one.data, one.cause, one.num_delivered) == (
            f"{name}.a", b"one", "max_deliver", 1,
        )  # fmt: skip
        assert dict(one.headers) == {"Trace": "7", "Nats-Msg-Id": "m1"}
        assert (two.subject, two.data, two.cause, two.reason) == (
            f"{name}.b", b"two", "terminated", "bad 2",
        )  # fmt: skip
        assert (two.stream_name, two.consumer_name, two.stream_seq, two.missing) == (
            name,
            "c",
            2,
            "",
        )
        assert one.stored_at == (await stream.get_message(1)).time
        assert (letters.stored, letters.known, letters.skipped) == (2, 0, 0)
        assert await letters.get(one.seq) == one
        failures = await jet.get_stream(f"{name}-failures")
        await eventually(is_empty, failures)


async def is_empty(stream):
    return (await stream.info()).state.messages == 0


async def test_letters_are_created_in_the_background(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 6)
        consumer = await worker_of(stream)
        async with DeadLetters(jet, name, consumer_name="c") as letters:
            await give_up(consumer, 6)
            found = await eventually(dead, letters, 6)
            assert sorted(letter.stream_seq for letter in found) == [1, 2, 3, 4, 5, 6]
            assert letters.letters_stream_name == f"{name}-c-dead"


async def test_removals_by_the_server_are_no_failure(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 6)
        consumer = await worker_of(stream)
        letters = DeadLetters(jet, name)
        await letters.create()
        batch = await consumer.fetch(6)
        await stream.delete_message(1)
        await stream.purge(before_seq=4)
        await stream.change(lambda config: evolve(config, max_msgs=2))
        await batch[4].term("bad")
        await collected(letters, 3)
        [letter] = await all_of(letters)
        assert (letter.stream_seq, letter.reason) == (5, "bad")
        assert letters.skipped >= 2


async def test_missing_message_leaves_a_letter_with_the_reason(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 2)
        consumer = await worker_of(stream)
        letters = DeadLetters(jet, name)
        await letters.create()
        await give_up(consumer, 2)
        await stream.purge()
        await collected(letters, 2)
        found = await all_of(letters)
        assert len(found) == 2
        assert all("limits, a purge or a delete" in letter.missing for letter in found)
        assert {(letter.data, letter.subject) for letter in found} == {(b"", "")}
        with pytest.raises(js.BadArgument, match="cannot be replayed"):
            await letters.replay(found[0])


async def test_a_work_queue_forgets_what_is_terminated(opened, name):
    async with opened() as jet:
        config = StreamConfig(name=name, subjects=[f"{name}.>"], retention="workqueue")
        stream = await jet.create_stream(config)
        for number in range(3):
            await jet.publish(f"{name}.{number}", b"%d" % number)
        consumer = await worker_of(stream, max_deliver=5)
        letters = DeadLetters(jet, name)
        await letters.create()
        one, two, _ = await consumer.fetch(3)
        await one.term("lost")
        # Whoever has the message at hand keeps it first.
        await letters.store(two, "kept")
        await letters.store(two, "kept")
        await two.term(stored_reason("kept"))
        await collected(letters, 2)
        found = {letter.stream_seq: letter for letter in await all_of(letters)}
        assert sorted(found) == [1, 2]
        assert "workqueue" in found[1].missing
        assert (found[2].data, found[2].cause, found[2].missing) == (b"1", "rejected", "")
        assert letters.known == 1


async def test_recreated_stream_is_another_one(opened, name):
    async with opened() as jet:
        letters = DeadLetters(jet, name)
        for round_ in range(2):
            stream = await filled(jet, name, 1)
            await letters.create()
            consumer = await worker_of(stream)
            [message] = await consumer.fetch(1)
            await message.term(f"round {round_}")
            await collected(letters, 1)
            await jet.delete_stream(name)
        assert [letter.reason for letter in await all_of(letters)] == ["round 0", "round 1"]


async def test_stream_may_be_deleted_too(opened, name):
    async with opened() as jet:
        letters = DeadLetters(jet, name)
        stream = await filled(jet, name, 1)
        await letters.create()
        [message] = await (await worker_of(stream)).fetch(1)
        await message.term("bad")
        failures = jet.bind_stream(letters.failures_stream_name)

        async def told():
            return (await failures.info()).state.messages

        # A stream that is deleted takes along what it was about to tell.
        await eventually(told)
        await jet.delete_stream(name)
        await collected(letters, 1)
        [letter] = await all_of(letters)
        assert "with the stream" in letter.missing


@pytest.mark.parametrize("when", [BEFORE, BEHIND])
async def test_killed_at_every_step_each_failure_is_kept_once(opened, name, when):
    """After a process was killed at any operation, the next process completes the work."""
    async with opened() as jet:
        points = 0
        for at in range(1, 60):
            source = f"{name}-{at}"
            stream = await jet.create_stream(StreamConfig(name=source, subjects=[f"{source}.>"]))
            for number in range(2):
                await jet.publish(f"{source}.{number}", b"%d" % number)
            letters = DeadLetters(jet, source)
            await letters.create()
            failures = await jet.get_stream(f"{source}-failures")
            keeper = names_of(source).keeper_config()
            await failures.create_or_update_consumer(evolve(keeper, ack_wait=FAST))
            await give_up(await worker_of(stream), 2)
            finished = await killed_at(jet, source, failures, at, when)
            await eventually(empty, quick(jet, source), failures)
            found = await all_of(letters)
            assert Counter(letter.stream_seq for letter in found) == {1: 1, 2: 1}, at
            assert [letter.data for letter in sorted(found, key=by_seq)] == [b"0", b"1"]
            for each in (source, f"{source}-dead", f"{source}-failures"):
                await jet.delete_stream(each)
            if finished:
                break
            points += 1
        # For each failure: info, message, publish, acknowledgement; before them the consumer.
        assert points >= 9


class Quick(DeadLetters):
    """Dead letters with a short ack_wait, so that advisories of a killed process return soon."""

    async def _keeper(self, deadline):
        config = evolve(self._names.keeper_config(), ack_wait=FAST)
        return await self._jet.create_or_update_consumer(self.failures_stream_name, config)


def quick(jet, source):
    return Quick(jet, source)


def by_seq(letter):
    return letter.stream_seq


async def killed_at(jet, source, failures, at, when):
    """Collect until killed at an operation; return whether all work was done before."""
    victim, killer = mortal(jet, at, when)
    try:
        await eventually(empty, quick(victim, source), failures)
    except Killed:
        return False
    return not killer.is_dead


async def empty(letters, failures):
    await letters.collect(idle_timeout=0.3)
    return (await failures.info()).state.messages == 0


async def test_a_full_stream_of_letters_keeps_the_failures(opened, name):
    reports = []
    async with opened() as jet:
        stream = await filled(jet, name, 2)
        letters = DeadLetters(jet, name, on_report=reports.append)
        config = evolve(names_of(name).letters_config(1), max_msgs=1)
        full = await jet.create_stream(config)
        await letters.create()
        await give_up(await worker_of(stream), 2)
        await collected(letters, 1)

        async def refused():
            assert await letters.collect(idle_timeout=0.1) == 0
            return reports

        await eventually(refused)
        assert "maximum messages exceeded" in reports[0].text
        await full.change(lambda config: evolve(config, max_msgs=10))
        await collected(letters, 1)
        assert len(await all_of(letters)) == 2


async def test_message_too_large_to_copy_leaves_a_letter_with_the_reason(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        await jet.publish(f"{name}.big", b"x" * (1024 * 1024 - 20))
        letters = DeadLetters(jet, name)
        await letters.create()
        [message] = await (await worker_of(stream)).fetch(1)
        await message.term("bad")
        await collected(letters, 1)
        [letter] = await all_of(letters)
        assert "too large" in letter.missing
        assert (letter.subject, letter.data) == (f"{name}.big", b"")


async def test_invalid_letters_are_reported_and_skipped(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        reports = []
        letters = DeadLetters(jet, name, on_report=reports.append)
        await letters.create()
        await jet.publish(f"dead.{name}.foreign", b"junk")
        [message] = await (await worker_of(stream)).fetch(1)
        await letters.store(message, "bad")
        assert [letter.reason for letter in await all_of(letters)] == ["bad"]
        assert [report.text for report in reports] == [
            f"message 1 of {name}-dead is not a dead letter: KeyError('Dead-Stream')"
        ]
        with pytest.raises(js.BadArgument, match="not a dead letter"):
            await letters.get(1)


async def test_a_reason_may_hold_anything(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 2)
        letters = DeadLetters(jet, name)
        await letters.create()
        one, two = await (await worker_of(stream)).fetch(2)
        await one.term("a\udc80\0b")
        await letters.store(two, "c\ud800\0d")
        await two.term(stored_reason("c\ud800\0d"))
        await collected(letters, 2)
        assert {letter.reason for letter in await all_of(letters)} == {"a? b", "c? d"}


async def test_headers_too_large_to_copy_leave_a_letter_with_the_reason(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        letters = DeadLetters(jet, name)
        await letters.create()
        # Quotes take two bytes each in a letter.
        for headers in ({"A": '"' * 40_000}, {"A": "ü" * 20_000, "B": "ö" * 10_000}):
            await jet.publish(f"{name}.big", b"body", headers=headers)
        for message in await (await worker_of(stream)).fetch(2):
            await message.term("bad")
        await collected(letters, 2)
        large, fits = await all_of(letters)
        assert "too large to be copied with its headers" in large.missing
        assert (large.subject, large.data, dict(large.headers)) == (f"{name}.big", b"body", {})
        with pytest.raises(js.BadArgument, match="too large"):
            await letters.replay(large)
        assert (fits.missing, fits.headers["A"]) == ("", "ü" * 20_000)


async def test_streams_that_cannot_serve_are_refused(opened, name):
    async with opened() as jet:
        with pytest.raises(js.StreamNotFound):
            await DeadLetters(jet, name).create()
        await filled(jet, name, 0)
        names = names_of(name)
        good = names.letters_config(1)
        for change, said in (
            ({"discard": "old", "discard_new_per_subject": None}, "discard is old"),
            ({"max_msgs_per_subject": 2}, "max_msgs_per_subject is 2"),
            ({"subjects": [f"dead.{name}.x"]}, f"subject dead.{name}.>"),
        ):
            await jet.create_stream(evolve(good, **change))
            with pytest.raises(js.BadArgument, match=said):
                await DeadLetters(jet, name).create()
            await jet.delete_stream(names.letters)
        await jet.create_stream(StreamConfig(name=names.failures, subjects=[f"{name}-x"]))
        with pytest.raises(js.BadArgument, match="does not capture"):
            await DeadLetters(jet, name).create()
        await jet.delete_stream(names.failures)
        other = evolve(names.failures_config(1), name=f"{name}-other")
        await jet.create_stream(other)
        with pytest.raises(SubjectOverlap, match="failures_stream_name="):
            await DeadLetters(jet, name).create()
        await DeadLetters(jet, name, failures_stream_name=f"{name}-other").create()


async def test_a_letter_is_replayed_once_and_removed(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        await jet.publish(f"{name}.a", b"one", headers={"Trace": "7"}, msg_id="m1", ttl=None)
        letters = DeadLetters(jet, name)
        await letters.create()
        [message] = await (await worker_of(stream)).fetch(1)
        await message.term("bad")
        await collected(letters, 1)
        [letter] = await all_of(letters)
        ack = await letters.replay(letter)
        assert (ack.seq, ack.duplicate) == (2, None)
        # Killed before the letter was removed: the same again changes nothing.
        again = await letters.replay(letter)
        assert (again.seq, again.duplicate) == (2, True)
        assert await all_of(letters) == []
        replayed = await stream.get_message(2)
        assert (replayed.subject, replayed.data) == (f"{name}.a", b"one")
        assert replayed.headers["Trace"] == "7"
        # The message may fail again, which creates a new letter.
        [message] = await (await stream.get_consumer("c")).fetch(1)
        await message.term("still bad")
        await collected(letters, 1)
        [letter] = await all_of(letters)
        assert (letter.stream_seq, letter.reason) == (2, "still bad")
        await letters.discard(letter)
        await letters.discard(letter)


async def test_replay_replaces_the_message_in_a_work_queue(opened, name):
    async with opened() as jet:
        config = StreamConfig(name=name, subjects=[f"{name}.>"], retention="workqueue")
        stream = await jet.create_stream(config)
        await jet.publish(f"{name}.a", b"one")
        letters = DeadLetters(jet, name)
        await letters.create()
        consumer = await worker_of(stream, ack_wait=FAST)
        await give_up(consumer, 1)
        await collected(letters, 1)
        [letter] = await all_of(letters)
        assert letter.cause == "max_deliver"
        assert (await stream.info()).state.messages == 1
        assert (await letters.replay(letter)).seq == 2
        assert (await stream.info()).state.messages == 1
        message = await consumer.next()
        assert (message.data, message.metadata.stream_seq) == (b"one", 2)
        assert (await letters.replay(letter)).duplicate
        assert (await stream.info()).state.messages == 1


@pytest.mark.since("2.14")
async def test_a_consumer_starts_again_at_its_first_dead_letter(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 4)
        consumer = await worker_of(stream)
        letters = DeadLetters(jet, name)
        await letters.create()
        for message in await consumer.fetch(4):
            await (message.term("bad") if message.metadata.stream_seq == 3 else message.ack())
        await collected(letters, 1)
        with pytest.raises(js.BadArgument, match="consumer d"):
            await letters.replay_by_reset("d")
        assert await letters.replay_by_reset("c") == 3
        again = await consumer.fetch(2, timeout=30)
        assert [message.metadata.stream_seq for message in again] == [3, 4]
        assert not await consumer.fetch(2, timeout=0.5)
        assert await all_of(letters) == []


@pytest.mark.since("2.14")
async def test_letters_whose_message_was_removed_survive_a_reset(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 4)
        consumer = await worker_of(stream)
        letters = DeadLetters(jet, name)
        await letters.create()
        for message in await consumer.fetch(4):
            await message.term("bad")
        await collected(letters, 4)
        for seq in (1, 3):
            await stream.delete_message(seq)
        assert await letters.replay_by_reset("c") == 2
        assert sorted(letter.stream_seq for letter in await all_of(letters)) == [1, 3]
        with pytest.raises(js.BadArgument, match="use replay for the 2"):
            await letters.replay_by_reset("c")
        for letter in await all_of(letters):
            await letters.replay(letter)
        assert await all_of(letters) == []


async def test_collecting_again_and_again_leaves_nothing_behind(server, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=10)
        await filled(jet, name, 1)
        letters = DeadLetters(jet, name)
        await letters.create()
        await letters.collect(idle_timeout=0.01)
        before = connection.stats.subscriptions
        for _ in range(3):
            await letters.collect(idle_timeout=0.01)
        assert connection.stats.subscriptions == before


async def test_a_silent_server_ends_the_list_in_time(server, name):
    async with js.connect(server.url) as plain:
        await filled(plain.jetstream(), name, 1)
        await DeadLetters(plain.jetstream(), name).create()
    with Proxy(server.url) as proxy:
        async with js.connect(proxy.url) as connection:
            letters = DeadLetters(connection.jetstream(timeout=0.3), name)
            proxy.mute = True
            with pytest.raises(js.RequestTimeout):
                _ = [letter async for letter in letters.letters(idle_timeout=0.3)]


async def test_every_call_ends_within_its_timeout(server, name):
    async with js.connect(server.url) as plain:
        jet = plain.jetstream(timeout=20)
        stream = await filled(jet, name, 1)
        letters = DeadLetters(jet, name)
        await letters.create()
        [message] = await (await worker_of(stream)).fetch(1)
        await letters.store(message, "bad", timeout=20)
        [letter] = await all_of(letters)
        assert (await letters.get(letter.seq, timeout=20)) == letter
        with Proxy(server.url) as proxy:
            async with js.connect(proxy.url) as connection:
                letters = DeadLetters(connection.jetstream(timeout=600), name)
                proxy.mute = True
                for call in (
                    lambda: letters.create(timeout=0.1),
                    lambda: letters.store(message, "bad", timeout=0.1),
                    lambda: letters.get(letter.seq, timeout=0.1),
                    lambda: letters.replay(letter, timeout=0.1),
                    lambda: letters.replay(letter, subject=f"{name}.0", timeout=0.1),
                    lambda: letters.discard(letter, timeout=0.1),
                    lambda: letters.replay_by_reset("c", timeout=0.1),
                ):
                    with pytest.raises(js.RequestTimeout):
                        await call()
                assert letters.refused == 0


async def test_streams_that_were_not_created_are_noted(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        letters = DeadLetters(jet, name)
        with pytest.raises(js.StreamNotFound) as collecting:
            await letters.collect()
        with pytest.raises(js.StreamNotFound) as listing:
            [letter async for letter in letters.letters()]
        for caught in (collecting, listing):
            assert str(caught.value).endswith("; `create` creates the streams of dead letters")
