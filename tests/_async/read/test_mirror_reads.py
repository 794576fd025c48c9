"""Mirrors answer direct gets for their origin with other messages. Reads detect this."""

from __future__ import annotations

import pytest

import js_async as js
from js_async.jetstream import range_reader
from tests._async.flow import eventually
from twinstream.core.read.arrow_page import ArrowPage
from twinstream.models import ConsumerConfig, StreamConfig, StreamSource, SubjectTransform

MESSAGES = 60
ROUNDS = 12
"""Who answers is drawn at random: in so many rounds the mirrors do, all but for one in 10^4."""


async def mirrored(jet, name, **config):
    """Create a stream with a mirror of its second half and one of a third of its subjects."""
    given = {"subjects": [f"{name}.>"], "allow_direct": True, **config}
    stream = await jet.create_stream(StreamConfig(name=name, **given))
    for at in range(MESSAGES):
        await jet.publish(f"{name}.{at % 3}", b"%d" % at)
    late = StreamSource(name=name, opt_start_seq=MESSAGES // 2 + 1)
    renamed = StreamSource(
        name=name,
        subject_transforms=[SubjectTransform(src=f"{name}.1", dest=f"other.{name}")],
    )
    for number, origin in enumerate([late, renamed]):
        mirror = await jet.create_stream(StreamConfig(name=f"{name}-{number}", mirror=origin))

        async def filled(mirror=mirror):
            return (await mirror.info()).state.last_seq >= MESSAGES - 1

        await eventually(filled)
    return stream


@pytest.mark.since("2.11")
@pytest.mark.parametrize("by_leader", [False, True])
async def test_a_read_is_of_the_stream_and_not_of_its_mirrors(opened, name, by_leader):
    async with opened() as jet:
        stream = await mirrored(jet, name, max_consumers=1)
        if by_leader:  # for a reader's consumer there is no room
            await stream.create_consumer(ConsumerConfig(durable_name="own"))
        for filters in (None, f"{name}.*", [f"{name}.0", f"{name}.1"]):
            taken = 2 if isinstance(filters, list) else 3
            wanted = [at for at in range(MESSAGES) if at % 3 < taken]
            for _ in range(ROUNDS):
                async with stream.read(subjects=filters, via="direct", page_messages=7) as found:
                    assert [int(message.data) async for message in found] == wanted


@pytest.mark.since("2.11")
async def test_a_bulk_read_is_of_the_stream_and_not_of_its_mirrors(opened, name):
    async with opened() as jet:
        await mirrored(jet, name)
        for _ in range(ROUNDS):
            reader = range_reader(jet, name, 1, MESSAGES + 1, ahead=True, bulk=True)
            found = []
            while (page := await reader.next_page()) is not None:
                found += ArrowPage.of(page).seqs.to_pylist()
            await reader.close()
            assert found == list(range(1, MESSAGES + 1))


@pytest.mark.since("2.11")
@pytest.mark.parametrize("kept", [-1, 5])
async def test_a_snapshot_is_of_the_stream_and_not_of_its_mirrors(opened, name, kept):
    async with opened() as jet:
        stream = await mirrored(jet, name, max_msgs_per_subject=kept)
        wanted = {f"{name}.{at % 3}": b"%d" % at for at in range(MESSAGES)}
        past = {f"{name}.{at % 3}": b"%d" % at for at in range(MESSAGES - 4)}
        for _ in range(ROUNDS):
            snapshot = await stream.snapshot()
            assert {each.subject: each.data for each in snapshot.values()} == wanted
            snapshot = await stream.snapshot(at_seq=MESSAGES - 4)
            assert {each.subject: each.data for each in snapshot.values()} == past


async def test_a_single_message_names_the_stream_that_answered(opened, name):
    async with opened() as jet:
        stream = await mirrored(jet, name)
        seen = set()

        async def all_answered():
            try:
                found = await stream.get_message(MESSAGES // 2 + 2, direct=True)
            except js.MessageNotFound:
                return False
            seen.add((found.stream_name, found.subject))
            return len(seen) == 3

        await eventually(all_answered)
        subject = f"{name}.{(MESSAGES // 2 + 1) % 3}"
        assert seen == {(name, subject), (f"{name}-0", subject), (f"{name}-1", f"other.{name}")}
