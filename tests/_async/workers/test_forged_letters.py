"""Dead letters that a client forged: no replay or reset does what their writer could not do.

The forger may publish dead letters, and nothing else.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

import js_async as js
from js_async.workers import DeadLetters
from tests._async.flow import eventually
from tests._async.streams import filled
from twinstream.models import ConsumerConfig, StreamConfig, StreamSource, SubjectTransform, evolve

HEADERS = {
    "Dead-Consumer": "w",
    "Dead-Sequence": "1",
    "Dead-Cause": "max_deliver",
    "Dead-Reason": "r",
    "Dead-Deliveries": "1",
    "Dead-Failed-At": "2026-01-02T03:04:05Z",
    "Dead-Stored-At": "2026-01-02T03:04:05Z",
}


async def forge(jet, name, number, **members):
    """Publish a dead letter of a stream; `members` without their prefix `Dead-`."""
    given = {f"Dead-{member.replace('_', '-')}": text for member, text in members.items()}
    headers = {"Dead-Stream": name} | HEADERS | given
    await jet.publish(f"dead.{name}.w.x.{number}", b"forged", headers=headers)


async def all_of(letters):
    return [letter async for letter in letters.letters()]


async def count(stream):
    return (await stream.info()).state.messages


SUBJECTS = [
    "$JS.API.STREAM.DELETE.{}-VICTIM",
    "$JS.API.STREAM.PURGE.{}",
    "$SYS.REQ.SERVER.PING",
    "_INBOX.x",
    "{}-VICTIM.a",
    "{}.*",
    "{}.>",
    "{}..a",
    "{}",
    "",
]


async def test_replay_publishes_to_subjects_of_its_stream_only(opened, name):
    async with opened() as jet:
        victim = await filled(jet, f"{name}-VICTIM", 1)
        stream = await filled(jet, name, 0)
        reports = []
        letters = DeadLetters(jet, name, on_report=reports.append)
        await letters.create()
        for number, subject in enumerate(SUBJECTS):
            await forge(jet, name, number, Subject=subject.format(name))
        for letter in await all_of(letters):
            with pytest.raises(js.BadArgument, match=r"subject= \(--subject of the command\)"):
                await letters.replay(letter)
        assert (await count(victim), await count(stream)) == (1, 0)
        # Refused letters stay, are counted and reported; the caller's own subject is published to.
        found = await all_of(letters)
        assert letters.refused == len(reports) == len(found) == len(SUBJECTS)
        ack = await letters.replay(found[0], subject=f"{name}-VICTIM.a")
        assert (ack.stream, ack.seq) == (f"{name}-VICTIM", 2)
        assert len(await all_of(letters)) == len(SUBJECTS) - 1


async def test_reserved_subjects_are_refused_even_if_the_stream_captures_them(opened, name):
    async with opened() as jet:
        config = StreamConfig(name=name, subjects=[f"_INBOX.{name}.>", f"$JS.EVENT.{name}.>"])
        stream = await jet.create_stream(config)
        letters = DeadLetters(jet, name)
        await letters.create()
        for number, subject in enumerate((f"_INBOX.{name}.a", f"$JS.EVENT.{name}.a")):
            await forge(jet, name, number, Subject=subject)
        for letter in await all_of(letters):
            with pytest.raises(js.BadArgument, match="is reserved"):
                await letters.replay(letter)
        assert await count(stream) == 0


async def test_letters_of_other_streams_and_consumers_are_refused(opened, name):
    async with opened() as jet:
        await filled(jet, name, 1)
        await forge_into(jet, name)
        letters = DeadLetters(jet, name, consumer_name="w", letters_stream_name=f"{name}-dead")
        for letter in await all_of(letters):
            with pytest.raises(js.BadArgument, match=r"it names (stream|consumer) '"):
                await letters.replay(letter)
        assert letters.refused == 2


async def forge_into(jet, name):
    await DeadLetters(jet, name).create()
    await forge(jet, name, 1, Subject=f"{name}.0", Stream="SECRET")
    await forge(jet, name, 2, Subject=f"{name}.0", Consumer="v\x1b[2J")


async def test_replay_undoes_the_transform_of_its_stream(opened, name):
    async with opened() as jet:
        config = StreamConfig(
            name=name,
            subjects=[f"{name}.in.>"],
            subject_transform=SubjectTransform(src=f"{name}.in.>", dest=f"{name}.out.>"),
        )
        stream = await jet.create_stream(config)
        await jet.publish(f"{name}.in.a", b"one")
        [letter] = await given_up(jet, stream, name)
        assert letter.subject == f"{name}.out.a"
        await DeadLetters(jet, name).replay(letter)
        again = await stream.get_message(2)
        assert (again.subject, again.data) == (f"{name}.out.a", b"one")


async def given_up(jet, stream, name):
    """Let a consumer terminate the first message, and return the dead letters."""
    letters = DeadLetters(jet, name)
    await letters.create()
    consumer = await stream.create_consumer(ConsumerConfig(durable_name="w"))
    [message] = await consumer.fetch(1, timeout=20)
    await letters.store(message, "bad")
    return await all_of(letters)


async def test_replay_of_a_copy_publishes_to_the_stream_that_it_was_copied_from(opened, name):
    """The stream of an elastic group copies messages with a partition in front of the subject."""
    async with opened() as jet:
        await filled(jet, name, 1)
        by_key = SubjectTransform(src=f"{name}.*", dest=f"{{{{partition(4,1)}}}}.{name}.$1")
        source = StreamSource(name=name, subject_transforms=[by_key])
        copy = await jet.create_stream(StreamConfig(name=f"{name}-copy", sources=[source]))
        [letter] = await given_up(jet, copy, f"{name}-copy")
        assert letter.subject.endswith(f".{name}.0")
        ack = await DeadLetters(jet, f"{name}-copy").replay(letter)
        assert (ack.stream, ack.seq) == (name, 2)

        async def copied():
            return await count(copy) == 2

        await eventually(copied, patience=60)
        assert (await copy.get_message(2)).subject == letter.subject


async def test_forged_letter_removes_no_message_of_a_work_queue(opened, name):
    async with opened() as jet:
        config = StreamConfig(name=name, subjects=[f"{name}.>"], retention="workqueue")
        stream = await jet.create_stream(config)
        await jet.publish(f"{name}.a", b"one")
        original = await stream.get_message(1)
        other = await jet.create_stream(evolve(config, name=f"{name}-O", subjects=[f"{name}-O.>"]))
        await jet.publish(f"{name}-O.a", b"one")
        theirs = await other.get_message(1)
        letters = DeadLetters(jet, name)
        await letters.create()
        known = {"Subject": original.subject, "Stored_At": original.time.rfc3339()}
        await forge(jet, name, 1, Subject=f"{name}.a")
        await forge(jet, name, 2, **known)
        there = {"Subject": theirs.subject, "Stored_At": theirs.time.rfc3339()}
        await forge(jet, name, 3, Stream=f"{name}-O", **there)
        one, two, three = await all_of(letters)
        await letters.replay(one)
        await letters.replay(two)
        await letters.replay(three, subject=f"{name}.b")
        assert (await stream.get_message(1)).data == b"one"
        assert (await other.get_message(1)).data == b"one"
        assert await count(stream) == 4


@pytest.mark.since("2.14")
async def test_forged_letter_does_not_decide_where_a_consumer_restarts(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 3)
        letters = DeadLetters(jet, name)
        await letters.create()
        config = ConsumerConfig(durable_name="w", ack_wait=timedelta(seconds=30))
        consumer = await stream.create_consumer(config)
        for message in await consumer.fetch(3, timeout=10):
            if message.metadata.stream_seq == 3:
                await letters.store(message, "bad")
            await message.double_ack()
        for number, seq in enumerate((1, 2)):
            original = await stream.get_message(seq)
            known = {"Subject": original.subject, "Stored_At": original.time.rfc3339()}
            await forge(jet, name, number, Sequence=str(seq), **known)
        for number, text in enumerate(("0", "-5", "9" * 5000, "x")):
            await forge(jet, name, f"odd{number}", Sequence=text)
        assert await letters.replay_by_reset("w") == 3
        [again] = await consumer.fetch(1, timeout=10)
        assert again.metadata.stream_seq == 3
        assert [letter.stream_seq for letter in await all_of(letters)] == [1, 2]


async def test_damaged_letter_can_be_discarded(opened, name):
    async with opened() as jet:
        await filled(jet, name, 0)
        letters = DeadLetters(jet, name)
        await letters.create()
        await forge(jet, name, 1, Sequence="x")
        with pytest.raises(js.BadArgument, match=r"message 1 of .* is not a dead letter"):
            await letters.get(1)
        await letters.discard(1)
        with pytest.raises(js.MessageNotFound):
            await letters.get(1)
        with pytest.raises(js.BadArgument, match="whole number"):
            await letters.discard(0)


@pytest.mark.parametrize("forged", ["no letter", "another message", "a copy"])
async def test_a_message_on_the_subject_of_a_letter_does_not_replace_it(opened, name, forged):
    """A client that knows the time of the stream's creation can tell the subjects of letters."""
    async with opened() as jet:
        config = StreamConfig(name=name, subjects=[f"{name}.>"], retention="workqueue")
        stream = await jet.create_stream(config)
        await jet.publish(f"{name}.a", b"mine", headers={"A": "1"})
        letters = DeadLetters(jet, name)
        await letters.create()
        place = f"dead.{name}.w.{(await stream.info()).created.ns:x}.1"
        headers = {"Dead-Stream": name} | HEADERS | {"Dead-Subject": f"{name}.a"}
        if forged == "a copy":
            headers["Dead-Stored-At"] = (await stream.get_message(1)).time.rfc3339()
            headers["Dead-Headers"] = '[["A","1"]]'
        data = b"mine" if forged == "a copy" else b"forged"
        await jet.publish(place, data, headers={} if forged == "no letter" else headers)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="w"))
        [message] = await consumer.fetch(1, timeout=10)
        await letters.store(message, "bad")
        await letters.store(message, "bad")
        found = [letter.data for letter in await all_of(letters) if letter.data == b"mine"]
        assert found == [b"mine"]
        assert (letters.stored, letters.known) == ((0, 2) if forged == "a copy" else (1, 1))


async def test_letter_with_headers_that_cannot_be_sent_is_refused(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        letters = DeadLetters(jet, name)
        await letters.create()
        known = {"Subject": f"{name}.a"}
        for number, pair in enumerate(('["A\\r\\nB","1"]', '["A","\\u0000"]', '["A:","\\ud800"]')):
            await forge(jet, name, number, Headers=f"[{pair}]", **known)
        for letter in await all_of(letters):
            with pytest.raises(
                js.BadArgument, match=f"dead letter {letter.seq} cannot be"
            ) as caught:
                await letters.replay(letter)
            assert str(caught.value).isprintable()
        assert (letters.refused, await count(stream)) == (3, 0)


async def test_log_escapes_names_of_publishers(server, name, caplog):
    """No name of another client reaches a line of the log with control characters."""
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=10)
        stream = await filled(jet, name, 0)
        letters = DeadLetters(jet, name)
        await letters.create()
        await jet.publish(f"{name}.\x1b[2J\u202e", b"x")
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="w"))
        [message] = await consumer.fetch(1, timeout=10)
        caplog.set_level("INFO", "twinstream.dead_letters")
        await letters.store(message, "bad")
        [record] = [each for each in caplog.records if each.name == "twinstream.dead_letters"]
        assert record.getMessage() == (
            f"{name}: message 1 ('{name}.\\x1b[2J\\u202e') was rejected and is stored as a dead"
            " letter"
        )
