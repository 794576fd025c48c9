"""Advisories that a client forged: no dead letter shows another stream, and the collector goes on.

The forger may publish to subjects of advisories, and read the dead letters.
"""

from __future__ import annotations

import json

import js_async as js
from js_async.workers import DeadLetters
from tests._async.flow import eventually
from tests._async.streams import filled
from tests.inside import api_of
from twinstream.models import ConsumerConfig, Terminated, UnknownEvent

FAULTS = "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED"
MEMBERS = {
    "type": "io.nats.jetstream.advisory.v1.terminated",
    "id": "forged",
    "timestamp": "2026-01-02T03:04:05Z",
    "consumer": "w",
    "consumer_seq": 1,
    "stream_seq": 1,
    "deliveries": 1,
    "reason": "r",
}


def advisory(stream, **members):
    return json.dumps(MEMBERS | {"stream": stream} | members).encode()


async def all_processed(letters, count):
    """Collect; return whether `count` advisories are processed and no other is there."""
    await letters.collect(idle_timeout=0.2)
    failures = await api_of(letters).stream_info(letters.failures_stream_name)
    return letters.stored + letters.skipped >= count and failures.state.messages == 0


async def fail(jet, stream, name):
    """Publish a message, and let its consumer terminate it."""
    await jet.publish(f"{name}.last", b"mine")
    consumer = await stream.create_consumer(ConsumerConfig(durable_name="w"))
    [message] = await consumer.fetch(1)
    await message.term("bad")


async def test_forged_advisory_copies_no_message_of_another_stream(opened, name):
    async with opened() as jet:
        secret = f"{name}-SECRET"
        await filled(jet, secret, 1)
        stream = await filled(jet, name, 0)
        reports = []
        letters = DeadLetters(jet, name, on_report=reports.append)
        await letters.create()
        await jet.publish(f"{FAULTS}.{name}.w", advisory(secret))
        await fail(jet, stream, name)
        await eventually(all_processed, letters, 2)
        [letter] = [letter async for letter in letters.letters()]
        assert (letter.stream_name, letter.data) == (name, b"mine")
        assert (letters.stored, letters.skipped) == (1, 1)
        assert [report.text for report in reports] == [
            f"an advisory is skipped: its content belongs on '{FAULTS}.{secret}.w', not on"
            f" '{FAULTS}.{name}.w'"
        ]


async def test_no_content_of_an_advisory_ends_the_collector(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        letters = DeadLetters(jet, name)
        await letters.create()
        bodies = [
            advisory(name, id="a\r\nb"),
            advisory(name, id="\ud800"),
            advisory(name, id="x" * 70_000),
            advisory(name, consumer="w\r\nx"),
            advisory(name, consumer="\udc80"),
            advisory(name, stream_seq=-1),
            advisory(name, stream_seq=2**70),
            advisory(name).replace(b'"stream_seq": 1', b'"stream_seq": ' + b"9" * 5000),
            advisory(name).replace(b'"deliveries": 1', b'"deliveries": 1e999'),
            b"[" * 100_000,
            b"\xff",
            b"",
        ]
        for body in bodies:
            await jet.publish(f"{FAULTS}.{name}.w", body)
        await fail(jet, stream, name)
        await eventually(all_processed, letters, len(bodies) + 1)
        [letter] = [letter async for letter in letters.letters()]
        assert (letter.data, letter.cause) == (b"mine", "terminated")
        assert (letters.stored, letters.skipped) == (1, len(bodies))


async def test_names_with_nul_end_no_collector(server, name):
    """A server accepts NUL in the subject of a message and in the name of a consumer."""
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=10)
        stream = await filled(jet, name, 0)
        letters = DeadLetters(jet, name)
        await letters.create()
        await jet.publish(f"{FAULTS}.{name}.\0", advisory(name, consumer="\0"))
        await jet.publish(f"{name}.a\0b", b"odd")
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="w"))
        [message] = await consumer.fetch(1)
        await message.term("bad")
        await eventually(all_processed, letters, 2)
        [letter] = [letter async for letter in letters.letters()]
        assert (letter.subject, letter.data, letter.missing) == ("", b"odd", "")
        assert (letters.stored, letters.skipped) == (1, 1)


async def test_skipped_advisory_is_logged_as_a_warning(opened, name, caplog):
    async with opened() as jet:
        await filled(jet, name, 1)
        letters = DeadLetters(jet, name)
        await letters.create()
        await jet.publish(f"{FAULTS}.{name}.w", advisory(name, id="\x1b[31m"))
        await eventually(all_processed, letters, 1)
        [record] = [each for each in caplog.records if each.name == "twinstream.dead_letters"]
        assert record.levelname == "WARNING"
        assert record.getMessage() == (
            f"{name}: an advisory is skipped: the id '\\x1b[31m' is not one of a server"
        )


async def test_forged_event_is_not_of_its_kind(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        letters = DeadLetters(jet, name)
        await letters.create()
        async with jet.events(stream_name=name, kinds=[Terminated]) as events:
            await fail(jet, stream, name)
            event = await events.next(timeout=20)
            assert isinstance(event.record, Terminated)
            assert event.problem == ""
            await jet.publish(f"{FAULTS}.{name}.w", advisory("SECRET"))
            event = await events.next(timeout=20)
            assert isinstance(event.record, UnknownEvent)
            assert f"'{FAULTS}.SECRET.w', not on" in event.problem
