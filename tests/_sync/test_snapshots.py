# Generated from tests/_async/test_snapshots.py by codegen/twin.py. Edit that file instead.
"""The last message of each subject, at one sequence, also while somebody writes."""

from __future__ import annotations

from datetime import timedelta

import pytest

import js_sync as js
from twinstream.models import StreamConfig
from tests._sync.flow import pause, together

FEW, MANY = 40, 1500


def stored(jet, name, subjects, rounds=2, **options):
    options = {"allow_direct": True, **options}
    config = StreamConfig(name=name, subjects=[f"{name}.>"], **options)
    stream = jet.create_stream(config)
    for number in range(rounds):
        write(jet, name, subjects, number)
    return stream


def write(jet, name, subjects, number):
    requests = [
        js.PublishRequest(subject=f"{name}.{each}", data=b"%d" % number, headers={"R": str(number)})
        for each in range(subjects)
    ]
    for outcome in jet.publish_many(requests):
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
def test_the_last_of_each_subject(opened, name, options, subjects):
    with opened() as jet:
        stream = stored(jet, name, subjects, 1 if subjects == MANY else 2, **options)
        jet.publish(f"{name}.0", b"new")
        snapshot = stream.snapshot()
        last_seq = (stream.info()).state.last_seq
        assert (snapshot.stream, snapshot.seq, len(snapshot)) == (name, last_seq, subjects)
        assert set(snapshot) == {f"{name}.{each}" for each in range(subjects)}
        assert [message.seq for message in snapshot.values()] == list(
            range(last_seq - subjects + 1, last_seq + 1)
        )
        for subject in (f"{name}.0", f"{name}.{subjects - 1}"):
            assert snapshot[subject] == stream.get_last_message(subject)
        with pytest.raises(KeyError):
            snapshot["no.such.subject"]
        assert (stream.info()).state.consumer_count == 0


@pytest.mark.parametrize("allowed", [False, True])
def test_filters_choose_subjects(opened, name, allowed):
    with opened() as jet:
        stream = stored(jet, name, MANY, 1, allow_direct=allowed)
        one = stream.snapshot(f"{name}.7")
        assert list(one) == [f"{name}.7"]
        two = stream.snapshot([f"{name}.9", f"{name}.7", f"{name}.nothing"])
        assert list(two) == [f"{name}.7", f"{name}.9"]
        wanted = [f"{name}.{each}" for each in range(MANY - 100)]
        many = stream.snapshot(wanted)
        assert list(many) == wanted
        nothing = stream.snapshot("nothing.>")
        assert dict(nothing) == {}
        assert nothing.seq == MANY
        for wrong in (
            {"subjects": []},
            {"subjects": "a..b"},
            {"at_seq": 0},
            {"at_seq": 1, "at_time": one[f"{name}.7"].time},
        ):
            with pytest.raises(js.BadArgument):
                stream.snapshot(**wrong)


def test_an_empty_stream_has_an_empty_snapshot(opened, name):
    with opened() as jet:
        stream = stored(jet, name, 0)
        empty = stream.snapshot()
        assert (dict(empty), empty.seq) == ({}, 0)
        jet.delete_stream(name)
        with pytest.raises(js.StreamNotFound):
            stream.snapshot()


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("subjects", [FEW, MANY])
def test_the_state_of_a_moment_that_is_past(opened, name, allowed, subjects):
    with opened() as jet:
        stream = stored(jet, name, subjects, 2, allow_direct=allowed)
        # In the middle of the second round: half of the subjects have their second message.
        middle = subjects + subjects // 2
        snapshot = stream.snapshot(at_seq=middle)
        assert (snapshot.seq, len(snapshot)) == (middle, subjects)
        values = [message.data for message in snapshot.values()]
        assert values == [b"0"] * (subjects - subjects // 2) + [b"1"] * (subjects // 2)
        time = (stream.get_message(middle + 1)).time
        assert dict(stream.snapshot(at_time=time)) == dict(snapshot)
        first = (stream.get_message(1)).time
        assert not stream.snapshot(at_time=first - timedelta(hours=1))
        later = stream.snapshot(f"{name}.0", at_seq=10**9)
        assert later[f"{name}.0"].seq == subjects + 1


@pytest.mark.parametrize("keeps", [-1, 1])
@pytest.mark.parametrize("allowed", [False, True])
def test_a_snapshot_under_writes_is_one_moment(opened, name, allowed, keeps):
    """Rounds are written in order, so at each moment all subjects are of two rounds at most.

    And in a snapshot: the subjects of the later round are the first ones, without a gap.
    """
    with opened() as jet:
        options = {"max_msgs_per_subject": keeps, "allow_direct": allowed}
        stream = stored(jet, name, MANY, 1, **options)
        done = []

        def writer():
            number = 0
            while not done:
                number += 1
                write(jet, name, MANY, number)
                if not allowed and keeps == 1:
                    pause(0.1)

        def reader():
            try:
                for _ in range(4):
                    snapshots.append(stream.snapshot())
                    snapshots.append(stream.snapshot(f"{name}.*"))
            finally:
                done.append(True)

        snapshots = []
        together(writer, reader)
        for snapshot in snapshots:
            rounds = [int(snapshot[f"{name}.{each}"].data) for each in range(MANY)]
            assert max(rounds) - min(rounds) <= 1
            assert rounds == sorted(rounds, reverse=True)
            assert max(message.seq for message in snapshot.values()) <= snapshot.seq
        assert [each.seq for each in snapshots] == sorted(each.seq for each in snapshots)


@pytest.mark.parametrize("keeps", [-1, 3, 1])
def test_a_snapshot_of_large_messages_is_whole(opened, name, keeps):
    """Without direct gets: servers forget a message that does not fit into a request by bytes."""
    with opened(timeout=20) as jet:
        options = {"allow_direct": False, "max_msgs_per_subject": keeps}
        stream = stored(jet, name, 0, **options)
        for number in range(40):
            jet.publish(f"{name}.{number}", b"x" * 500_000)
        snapshot = stream.snapshot()
        assert [message.seq for message in snapshot.values()] == list(range(1, 41))
