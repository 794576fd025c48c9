"""The last message of each subject, as of one sequence, also during writes."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

import js_async as js
from js_async.read.snapshot import collect
from tests._async.disturbed import Disturbed
from tests._async.flow import eventually, pause, together
from tests._async.streams import has_consumers
from tests.inside import api_of
from twinstream.core.read.read_request import SnapshotRequest
from twinstream.core.read.snapshot import LastSeqs, Latest
from twinstream.models import ConsumerConfig, StreamConfig, evolve

FEW, MANY = 40, 1500


async def stored(jet, name, subjects, rounds=2, **options):
    options = {"allow_direct": True, **options}
    config = StreamConfig(name=name, subjects=[f"{name}.>"], **options)
    stream = await jet.create_stream(config)
    for number in range(rounds):
        await write(jet, name, subjects, number)
    return stream


async def write(jet, name, subjects, number):
    requests = [
        js.PublishRequest(subject=f"{name}.{each}", data=b"%d" % number, headers={"R": str(number)})
        for each in range(subjects)
    ]
    async for outcome in jet.publish_many(requests):
        assert not isinstance(outcome, js.PublishFailure), outcome


KINDS = pytest.mark.parametrize(
    "options",
    [
        {},
        {"allow_direct": False},
        {"storage": "memory"},
        {"retention": "workqueue"},
        {"retention": "workqueue", "allow_direct": False},
        {"max_msgs_per_subject": 1},
    ],
    ids=lambda options: "-".join(f"{name}-{value}" for name, value in options.items()) or "plain",
)


@KINDS
@pytest.mark.parametrize("subjects", [FEW, MANY])
async def test_the_last_of_each_subject(opened, name, options, subjects):
    async with opened() as jet:
        stream = await stored(jet, name, subjects, 1 if subjects == MANY else 2, **options)
        await jet.publish(f"{name}.0", b"new")
        snapshot = await stream.snapshot()
        last_seq = (await stream.info()).state.last_seq
        assert (snapshot.stream_name, snapshot.seq, len(snapshot)) == (name, last_seq, subjects)
        assert set(snapshot) == {f"{name}.{each}" for each in range(subjects)}
        assert [message.seq for message in snapshot.values()] == list(
            range(last_seq - subjects + 1, last_seq + 1)
        )
        for subject in (f"{name}.0", f"{name}.{subjects - 1}"):
            assert snapshot[subject] == await stream.get_last_message(subject)
        with pytest.raises(KeyError):
            snapshot["no.such.subject"]
        await eventually(has_consumers, stream, 0)


@KINDS
@pytest.mark.parametrize("subjects", [FEW, MANY])
async def test_the_last_sequences_are_those_of_a_snapshot(opened, name, options, subjects):
    async with opened() as jet:
        stream = await stored(jet, name, subjects, 1 if subjects == MANY else 2, **options)
        await jet.publish(f"{name}.0", b"new")
        seqs, whole = LastSeqs(), Latest()
        snapshot = await stream.snapshot()
        everything = SnapshotRequest()
        assert await collect(api_of(jet), name, everything, seqs) == snapshot.seq
        assert seqs.by_subject == {each.subject.encode(): each.seq for each in snapshot.values()}
        assert await collect(api_of(jet), name, everything, whole) == snapshot.seq
        page = whole.page(name)
        messages = [page.message(at, name) for at in range(len(page))]
        assert messages == list(snapshot.values())
        one = LastSeqs()
        await collect(api_of(jet), name, SnapshotRequest(subjects=(f"{name}.0",)), one)
        assert one.by_subject == {f"{name}.0".encode(): snapshot.seq}
        await eventually(has_consumers, stream, 0)


@pytest.mark.parametrize("allowed", [False, True])
async def test_sequences_above_those_of_signed_numbers(opened, name, allowed):
    async with opened() as jet:
        first = 2**63 - 5
        options = {"storage": "memory", "first_seq": first, "max_msgs_per_subject": 1}
        stream = await stored(jet, name, MANY, 1, allow_direct=allowed, **options)
        snapshot = await stream.snapshot()
        assert (len(snapshot), snapshot.seq) == (MANY, first + MANY - 1)


async def test_direct_gets_do_where_no_consumer_may_be_made(opened, name):
    async with opened() as jet:
        stream = await stored(jet, name, MANY, 1, max_msgs_per_subject=1, max_consumers=1)
        await jet.publish(f"{name}.0", b"new")
        await stream.create_consumer(ConsumerConfig(durable_name="only"))
        snapshot, seqs = await stream.snapshot(), LastSeqs()
        assert (len(snapshot), snapshot.seq) == (MANY, MANY + 1)
        assert snapshot[f"{name}.0"].data == b"new"
        wanted = SnapshotRequest(subjects=(f"{name}.0", f"{name}.7"))
        assert await collect(api_of(jet), name, wanted, seqs) == MANY + 1
        assert seqs.by_subject == {f"{name}.0".encode(): MANY + 1, f"{name}.7".encode(): 8}
        await stream.change(lambda config: evolve(config, allow_direct=False))
        with pytest.raises(js.JetStreamError, match="maximum consumers limit reached"):
            await stream.snapshot()


@pytest.mark.parametrize("allowed", [False, True])
async def test_filters_choose_subjects(opened, name, allowed):
    async with opened() as jet:
        stream = await stored(jet, name, MANY, 1, allow_direct=allowed)
        one = await stream.snapshot(f"{name}.7")
        assert list(one) == [f"{name}.7"]
        two = await stream.snapshot([f"{name}.9", f"{name}.7", f"{name}.nothing"])
        assert list(two) == [f"{name}.7", f"{name}.9"]
        wanted = [f"{name}.{each}" for each in range(MANY - 100)]
        many = await stream.snapshot(wanted)
        assert list(many) == wanted
        nothing = await stream.snapshot("nothing.>")
        assert dict(nothing) == {}
        assert nothing.seq == MANY
        assert dict(await stream.snapshot([])) == {}
        for wrong in (
            {"subjects": "a..b"},
            {"at_seq": 0},
            {"at_seq": 1, "at_time": one[f"{name}.7"].time},
        ):
            with pytest.raises(js.BadArgument):
                await stream.snapshot(**wrong)


async def test_an_empty_stream_has_an_empty_snapshot(opened, name):
    async with opened() as jet:
        stream = await stored(jet, name, 0)
        empty = await stream.snapshot()
        assert (dict(empty), empty.seq) == ({}, 0)
        await jet.delete_stream(name)
        with pytest.raises(js.StreamNotFound):
            await stream.snapshot()


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("subjects", [FEW, MANY])
async def test_the_state_of_a_moment_that_is_past(opened, name, allowed, subjects):
    async with opened() as jet:
        stream = await stored(jet, name, subjects, 2, allow_direct=allowed)
        # In the middle of the second round: half of the subjects have their second message.
        middle = subjects + subjects // 2
        snapshot = await stream.snapshot(at_seq=middle)
        assert (snapshot.seq, len(snapshot)) == (middle, subjects)
        values = [message.data for message in snapshot.values()]
        assert values == [b"0"] * (subjects - subjects // 2) + [b"1"] * (subjects // 2)
        time = (await stream.get_message(middle + 1)).time
        assert dict(await stream.snapshot(at_time=time)) == dict(snapshot)
        first = (await stream.get_message(1)).time
        assert not await stream.snapshot(at_time=first - timedelta(hours=1))
        later = await stream.snapshot(f"{name}.0", at_seq=10**9)
        assert later[f"{name}.0"].seq == subjects + 1


@pytest.mark.parametrize("keeps", [-1, 1])
@pytest.mark.parametrize("allowed", [False, True])
async def test_a_snapshot_under_writes_is_one_moment(opened, name, allowed, keeps):
    """Rounds are written in order, so at any time all subjects are of at most two rounds.

    The same must hold in a snapshot: the subjects of the later round are the first ones, without a
    gap.
    """
    async with opened() as jet:
        options = {"max_msgs_per_subject": keeps, "allow_direct": allowed}
        stream = await stored(jet, name, MANY, 1, **options)
        done = []

        async def writer():
            number = 0
            while not done:
                number += 1
                await write(jet, name, MANY, number)
                if not allowed and keeps == 1:
                    # Long enough for a request at last, however slow the machine is.
                    await pause(min(2, 0.1 * number))

        async def reader():
            try:
                for _ in range(2):
                    snapshots.append(await stream.snapshot())
                    snapshots.append(await stream.snapshot(f"{name}.*"))
            finally:
                done.append(True)

        snapshots = []
        await together(writer, reader)
        for snapshot in snapshots:
            rounds = [int(snapshot[f"{name}.{each}"].data) for each in range(MANY)]
            assert max(rounds) - min(rounds) <= 1
            assert rounds == sorted(rounds, reverse=True)
            assert max(message.seq for message in snapshot.values()) <= snapshot.seq
        assert [each.seq for each in snapshots] == sorted(each.seq for each in snapshots)


@pytest.mark.parametrize("keeps", [-1, 3, 1])
async def test_a_snapshot_of_large_messages_is_whole(opened, name, keeps):
    """Without direct gets, servers drop a message that does not fit into a request by bytes."""
    async with opened(timeout=20) as jet:
        options = {"allow_direct": False, "max_msgs_per_subject": keeps}
        stream = await stored(jet, name, 0, **options)
        for number in range(40):
            await jet.publish(f"{name}.{number}", b"x" * 500_000)
        snapshot = await stream.snapshot()
        assert [message.seq for message in snapshot.values()] == list(range(1, 41))


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("storage", ["file", "memory"])
async def test_a_snapshot_after_deletions_has_every_subject(opened, name, storage, allowed):
    """Servers before 2.12.5 may then omit subjects from their lists of last messages."""
    chance = random.Random(12)
    async with opened() as jet:
        stream = await stored(jet, name, 0, storage=storage, allow_direct=allowed)
        for _ in range(6):
            await stream.purge()
            for subject in chance.choices("abcd", k=12):
                last = await jet.publish(f"{name}.{subject}")
            held = [message.seq async for message in stream.read()]
            for seq in chance.sample(held, 9):
                await stream.delete_message(seq)
                kept = {message.subject: message.seq async for message in stream.read()}
                for filters in ([], [f"{name}.*"]):
                    snapshot = await stream.snapshot(*filters, idle_timeout=10)
                    assert {each.subject: each.seq for each in snapshot.values()} == kept
            past = await stream.snapshot(at_seq=last.seq - 6)
            kept = [message async for message in stream.read(end=last.seq - 5)]
            assert {each.seq for each in past.values()} == set(
                {message.subject: message.seq for message in kept}.values()
            )


async def test_a_subject_is_kept_that_is_written_before_the_last_message_is_deleted(opened, name):
    """After the deletion, the server does not find the last message of all subjects."""
    async with opened() as jet:
        stream = await stored(jet, name, MANY, 1, max_msgs_per_subject=1)

        async def behind_the_next_look():
            # The snapshot looks up the last sequence then, and reads up to it.
            disturbed.expect(r"STREAM\.INFO", after=late)

        async def late():
            await jet.publish(f"{name}.0", b"new")
            last = await jet.publish(f"{name}.last")
            await stream.delete_message(last.seq)

        created = r"CONSUMER\.CREATE"
        disturbed = Disturbed(api_of(jet).transport, created, after=behind_the_next_look)
        stream = disturbed.jetstream(timeout=20).bind_stream(name)
        snapshot = await stream.snapshot()
        assert len(snapshot) == MANY
        assert snapshot[f"{name}.0"].data == b"new"


@KINDS
@pytest.mark.parametrize("at", [1, 2, 3, 5, 25])
async def test_a_snapshot_is_no_mixture_of_a_stream_and_the_one_that_replaces_it(
    opened, name, options, at
):
    """The stream is re-created, with fewer messages, after the request with the number `at`."""
    async with opened() as jet:
        await stored(jet, name, FEW, 2, **options)

        async def recreate():
            await jet.delete_stream(name)
            await stored(jet, name, FEW + 1, 1, **options)

        async def wait():
            left.pop()
            if left:
                disturbed.expect("", after=wait)
            else:
                await recreate()

        left = list(range(at))
        disturbed = Disturbed(api_of(jet).transport, "", after=wait)
        stream = disturbed.jetstream(timeout=20).bind_stream(name)
        snapshot = await stream.snapshot(idle_timeout=20)
        old = {f"{name}.{each}": b"1" for each in range(FEW)}
        new = {f"{name}.{each}": b"0" for each in range(FEW + 1)}
        found = {subject: message.data for subject, message in snapshot.items()}
        assert found in (old, new)
        assert snapshot.seq == (2 * FEW if found == old else FEW + 1)
