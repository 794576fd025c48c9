# Generated from tests/_async/test_mirror_reads.py by codegen/twin.py. Edit that file instead.
"""Mirrors answer direct gets for their origin, and lack or keep what it does not: reads tell."""

from __future__ import annotations

import pytest

import js_sync as js
from twinstream.core.read.arrow_page import ArrowPage
from twinstream.models import ConsumerConfig, StreamConfig, StreamSource, SubjectTransform
from tests._sync.flow import eventually

MESSAGES = 60
ROUNDS = 12
"""Who answers is drawn at random: in so many rounds the mirrors do, all but for one in 10^4."""


def mirrored(jet, name, **config):
    """Make a stream with a mirror of its second half and one of a third of its subjects."""
    given = {"subjects": [f"{name}.>"], "allow_direct": True, **config}
    stream = jet.create_stream(StreamConfig(name=name, **given))
    for at in range(MESSAGES):
        jet.publish(f"{name}.{at % 3}", b"%d" % at)
    late = StreamSource(name=name, opt_start_seq=MESSAGES // 2 + 1)
    renamed = StreamSource(
        name=name,
        subject_transforms=[SubjectTransform(src=f"{name}.1", dest=f"other.{name}")],
    )
    for number, origin in enumerate([late, renamed]):
        mirror = jet.create_stream(StreamConfig(name=f"{name}-{number}", mirror=origin))

        def filled(mirror=mirror):
            return (mirror.info()).state.last_seq >= MESSAGES - 1

        eventually(filled)
    return stream


@pytest.mark.since("2.11")
@pytest.mark.parametrize("by_leader", [False, True])
def test_a_read_is_of_the_stream_and_not_of_its_mirrors(opened, name, by_leader):
    with opened() as jet:
        stream = mirrored(jet, name, max_consumers=1)
        if by_leader:  # for a reader's consumer there is no room
            stream.create_consumer(ConsumerConfig(durable_name="own"))
        for filters in (None, f"{name}.*", [f"{name}.0", f"{name}.1"]):
            taken = 2 if isinstance(filters, list) else 3
            wanted = [at for at in range(MESSAGES) if at % 3 < taken]
            for _ in range(ROUNDS):
                with stream.read(subjects=filters, via="direct", page_messages=7) as found:
                    assert [int(message.data) for message in found] == wanted


@pytest.mark.since("2.11")
def test_a_bulk_read_is_of_the_stream_and_not_of_its_mirrors(opened, name):
    with opened() as jet:
        mirrored(jet, name)
        for _ in range(ROUNDS):
            reader = jet.range_reader(name, 1, MESSAGES + 1, ahead=True, bulk=True)
            found = []
            while (page := reader.next_page()) is not None:
                found += ArrowPage.of(page).seqs.to_pylist()
            reader.close()
            assert found == list(range(1, MESSAGES + 1))


@pytest.mark.since("2.11")
@pytest.mark.parametrize("kept", [-1, 5])
def test_a_snapshot_is_of_the_stream_and_not_of_its_mirrors(opened, name, kept):
    with opened() as jet:
        stream = mirrored(jet, name, max_msgs_per_subject=kept)
        wanted = {f"{name}.{at % 3}": b"%d" % at for at in range(MESSAGES)}
        past = {f"{name}.{at % 3}": b"%d" % at for at in range(MESSAGES - 4)}
        for _ in range(ROUNDS):
            snapshot = stream.snapshot()
            assert {each.subject: each.data for each in snapshot.values()} == wanted
            snapshot = stream.snapshot(at_seq=MESSAGES - 4)
            assert {each.subject: each.data for each in snapshot.values()} == past


def test_a_single_message_names_the_stream_that_answered(opened, name):
    with opened() as jet:
        stream = mirrored(jet, name)
        seen = set()

        def all_answered():
            try:
                found = stream.get_message(MESSAGES // 2 + 2, direct=True)
            except js.MessageNotFound:
                return False
            seen.add((found.stream, found.subject))
            return len(seen) == 3

        eventually(all_answered)
        subject = f"{name}.{(MESSAGES // 2 + 1) % 3}"
        assert seen == {(name, subject), (f"{name}-0", subject), (f"{name}-1", f"other.{name}")}
