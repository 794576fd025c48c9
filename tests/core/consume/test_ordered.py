"""Ordered reads: the next consumer, the returned messages, and what a heartbeat proves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.consume.ordered_model import ModelConsumer, ModelStream, info_of
from twinstream.core.consume.metadata import Metadata
from twinstream.core.consume.ordered import OrderedRead
from twinstream.core.consume.ordered_config import ordered_config
from twinstream.core.wire.status import Kind, Status
from twinstream.errors import BadArgument
from twinstream.models import ConsumerConfig, DeliverPolicy


def read_all(stream: ModelStream, config: ConsumerConfig, losses: list[int]) -> list[int]:
    """Read with one consumer after another. Each loses the message at its index in `losses`."""
    read = OrderedRead(config, "x")
    seen: list[int] = []
    places = iter(losses)
    for _ in range(len(losses) + 1):
        consumer = begun(read, stream)
        lost_at = next(places, None)
        number = 0
        while (metadata := consumer.step()) is not None:
            number += 1
            if number - 1 == lost_at:
                continue
            if not read.is_in_order(metadata):
                break
            if read.take(metadata):
                seen.append(metadata.stream_seq)
    return seen


def begun(read: OrderedRead, stream: ModelStream) -> ModelConsumer:
    """Create the next consumer of a read."""
    read.found_stream(stream.info())
    consumer = ModelConsumer(stream, read.next_config())
    read.made(consumer.info)
    return consumer


def wants(policy: DeliverPolicy | None = None, **more: Any) -> ConsumerConfig:
    arguments: dict[str, Any] = {
        "subjects": None,
        "deliver_policy": policy,
        "start_seq": None,
        "start_time": None,
        "headers_only": False,
    }
    return ordered_config(**(arguments | more))


def beat(sent: int, looked: int) -> Status:
    return Status(
        Kind.HEARTBEAT, 100, "Idle Heartbeat", b"t", last_consumer=sent, last_stream=looked
    )


def at(consumer_seq: int, stream_seq: int) -> Metadata:
    return Metadata("S", "x_1", 1, stream_seq, consumer_seq, 0, 0)


SUBJECTS = st.text("abc", max_size=20)
# A loss of the last message shows only with the next one, so the last consumer loses nothing.
LOSSES = st.lists(st.integers(0, 15), max_size=6)


@given(SUBJECTS, LOSSES)
def test_all_messages_once_and_in_order(subjects: str, losses: list[int]) -> None:
    stream = ModelStream(0, subjects)
    assert read_all(stream, wants(), losses) == list(stream.messages)


@given(SUBJECTS, LOSSES, st.integers(1, 25))
def test_from_a_sequence(subjects: str, losses: list[int], start: int) -> None:
    stream = ModelStream(0, subjects)
    found = read_all(stream, wants(start_seq=start), losses)
    assert found == [seq for seq in stream.messages if seq >= start]


@given(SUBJECTS, st.lists(st.integers(0, 2), max_size=6), st.integers(0, 2))
def test_the_snapshot_of_last_messages_is_whole(
    subjects: str, losses: list[int], keeps: int
) -> None:
    stream = ModelStream(keeps, subjects)
    found = read_all(stream, wants(DeliverPolicy.LAST_PER_SUBJECT), losses)
    last = stream.last_per_subject(stream.last_seq)
    assert found[: len(last)] == last
    assert found == sorted(set(found))


def test_new_is_remembered_as_a_position() -> None:
    stream = ModelStream(0, "ab")
    read = OrderedRead(wants(DeliverPolicy.NEW), "x")
    first = begun(read, stream).config
    assert first.deliver_policy == DeliverPolicy.NEW
    stream.store("c")
    second = begun(read, stream)
    assert second.config.deliver_policy == DeliverPolicy.BY_START_SEQUENCE
    assert second.config.opt_start_seq == 3
    found = second.step()
    assert found is not None
    assert found.stream_seq == 3
    assert (first.name, second.config.name) == ("x_1", "x_2")


def test_the_consumers_config() -> None:
    config = OrderedRead(wants(subjects="a.*", headers_only=True), "x").next_config()
    assert (config.ack_policy, config.mem_storage, config.num_replicas) == ("none", True, 1)
    assert (config.filter_subject, config.headers_only, config.max_deliver) == ("a.*", True, 1)
    assert config.replay_policy == "instant"
    assert config.inactive_threshold is not None
    assert config.inactive_threshold.total_seconds() == 300
    assert wants(subjects=["a", "b"]).filter_subjects == ["a", "b"]
    assert wants(DeliverPolicy.LAST_PER_SUBJECT).filter_subject == ">"
    time = datetime(2024, 1, 1, tzinfo=UTC)
    timed = OrderedRead(wants(start_time=time), "x")
    first = timed.next_config()
    assert first.deliver_policy == DeliverPolicy.BY_START_TIME
    late = wants(start_time=datetime.max.replace(tzinfo=UTC)).opt_start_time
    assert late is not None
    assert late.year == 2262
    timed.made(info_of(first))
    assert timed.next_config().opt_start_time is None


def test_settings_that_are_given_are_those_of_each_consumer() -> None:
    config = wants(
        replay_policy="original", inactive_threshold=timedelta(minutes=1), metadata={"app": "x"}
    )
    read = OrderedRead(config, "x")
    first = read.next_config()
    read.made(info_of(first))
    for each in (first, read.next_config()):
        assert (each.replay_policy, each.metadata) == ("original", {"app": "x"})
        assert each.inactive_threshold is not None
        assert each.inactive_threshold.total_seconds() == 60


def test_arguments_that_make_no_sense() -> None:
    with pytest.raises(BadArgument, match="not both"):
        wants(start_seq=1, start_time=datetime(2024, 1, 1, tzinfo=UTC))
    with pytest.raises(BadArgument, match=r"so deliver_policy .* does not apply"):
        wants(DeliverPolicy.NEW, start_seq=1)
    with pytest.raises(BadArgument, match="deliver_policy by_start_time needs start_time="):
        wants(DeliverPolicy.BY_START_TIME)
    assert wants(DeliverPolicy.BY_START_SEQUENCE, start_seq=7).opt_start_seq == 7
    with pytest.raises(BadArgument, match="subject"):
        wants(subjects=["a..b"])
    with pytest.raises(BadArgument, match="inactive_threshold must be at least 1 s"):
        wants(inactive_threshold=0.5)
    with pytest.raises(BadArgument, match="inactive_threshold must be finite"):
        wants(inactive_threshold=float("inf"))
    with pytest.raises(BadArgument, match="metadata"):
        wants(metadata={"a": 1})


def test_another_stream_of_the_same_name_is_read_from_its_beginning() -> None:
    read = OrderedRead(wants(), "x")
    old, new = ModelStream(0, "a", day=1), ModelStream(0, "a", day=2)
    assert not read.found_stream(old.info())
    read.made(info_of(read.next_config()))
    read.take(at(1, 7))
    assert not read.found_stream(old.info())
    assert read.next_config().opt_start_seq == 8
    assert read.found_stream(new.info())
    assert read.next_config().opt_start_seq == 1


def test_another_stream_of_the_same_name_has_its_own_snapshot() -> None:
    read = OrderedRead(wants(DeliverPolicy.LAST_PER_SUBJECT), "x")
    consumer = begun(read, ModelStream(2, "ab"))
    while (metadata := consumer.step()) is not None:
        read.take(metadata)
    assert read.is_current
    consumer = begun(read, ModelStream(2, "aaaa", day=2))
    assert consumer.config.deliver_policy == DeliverPolicy.LAST_PER_SUBJECT
    assert not read.is_current


def test_consumer_that_was_not_created_is_requested_again_by_name() -> None:
    read = OrderedRead(wants(), "x")
    assert (read.next_config().name, read.next_config().name) == ("x_1", "x_1")
    read.made(info_of(read.next_config()))
    assert (read.next_config().name, read.next_config().name) == ("x_2", "x_2")
    read.rename()
    assert read.next_config().name == "x_3"


def test_a_read_may_go_back_to_a_mark() -> None:
    stream = ModelStream(0, "abcde")
    read = OrderedRead(wants(), "x")
    start = read.mark()
    consumer = begun(read, stream)
    for _ in range(3):
        metadata = consumer.step()
        assert metadata is not None
        read.take(metadata)
    middle = read.mark()
    assert read.note_heartbeat(beat(3, 900), 0) is None
    read.go_back(middle)
    assert read.is_outdated
    assert begun(read, stream).config.opt_start_seq == 4
    read.go_back(start)
    assert (read.position, begun(read, stream).config.opt_start_seq) == (0, 1)
    read.take(at(1, 1))
    another = ModelStream(0, "a", day=2)
    middle = read.mark()
    begun(read, another)
    read.go_back(middle)
    assert (read.position, read.scanned) == (0, 0)


def test_going_back_stops_where_the_read_began() -> None:
    stream = ModelStream(0, "abcde")
    read = OrderedRead(wants(DeliverPolicy.NEW), "x")
    start = read.mark()
    begun(read, stream)
    read.go_back(start)
    assert read.position == 5
    assert begun(read, stream).config.opt_start_seq == 6


# ---- heartbeats


def test_a_heartbeat_moves_the_start_of_the_next_consumer() -> None:
    stream = ModelStream(0, "ab")
    read = OrderedRead(wants(subjects="a"), "x")
    begun(read, stream)
    assert read.take(at(1, 1))
    assert read.note_heartbeat(beat(1, 900), 0) is None
    assert (read.position, read.scanned) == (1, 900)
    assert begun(read, stream).config.opt_start_seq == 901


def test_heartbeat_counts_when_earlier_messages_were_handed_over() -> None:
    stream = ModelStream(0, "ab")
    read = OrderedRead(wants(subjects="a"), "x")
    begun(read, stream)
    assert read.note_heartbeat(beat(2, 900), 2) is None
    assert read.take(at(1, 1))
    assert read.scanned == 1
    assert read.take(at(2, 5))
    assert (read.position, read.scanned) == (5, 900)


@pytest.mark.parametrize(("sent", "buffered"), [(3, 1), (1, 0), (1, 3), (0, 0)])
def test_a_heartbeat_shows_that_messages_were_lost(sent: int, buffered: int) -> None:
    read = OrderedRead(wants(), "x")
    begun(read, ModelStream(0, "ab"))
    if sent != 1 or buffered:
        assert read.take(at(1, 1))
    came = (sent != 1 or buffered > 0) + buffered
    wrong = read.note_heartbeat(beat(sent, 900), buffered)
    assert wrong == f"the server has sent {sent} messages with the consumer, {came} arrived"
    assert read.scanned < 900


def test_a_heartbeat_without_positions_proves_nothing() -> None:
    read = OrderedRead(wants(), "x")
    begun(read, ModelStream(0, "ab"))
    assert read.note_heartbeat(Status(Kind.HEARTBEAT, 100, "Idle Heartbeat", b"t"), 3) is None
    assert read.scanned == 0


def test_heartbeat_ends_a_snapshot_if_its_last_messages_were_removed() -> None:
    stream = ModelStream(3, "abc")
    read = OrderedRead(wants(DeliverPolicy.LAST_PER_SUBJECT), "x")
    consumer = begun(read, stream)
    stream.purge("b")
    stream.purge("c")
    metadata = consumer.step()
    assert metadata is not None
    assert read.take(metadata)
    assert consumer.step() is None
    assert read.note_heartbeat(consumer.heartbeat(), 0) is None
    assert read.has_list
    assert not read.is_current
    assert consumer.step() is None
    assert read.note_heartbeat(consumer.heartbeat(), 0) is None
    assert not read.has_list
    assert read.is_current


# ---- snapshots that are cut short


def test_after_the_snapshot_every_message_is_due() -> None:
    """This holds even if messages of the snapshot were overwritten before their delivery."""
    stream = ModelStream(1, "aabbcc")
    read = OrderedRead(wants(DeliverPolicy.LAST_PER_SUBJECT), "x")
    consumer = begun(read, stream)
    for subject in "abc":
        stream.store(subject)
    while (metadata := consumer.step()) is not None:
        read.take(metadata)
    assert read.position == 9
    stream.keeps = 3
    for subject in "aabb":
        stream.store(subject)
    assert begun(read, stream).config.opt_start_seq == 10


def test_snapshot_of_a_stream_with_one_message_per_subject_continues_at_the_position() -> None:
    stream = ModelStream(1, "abc")
    read = OrderedRead(wants(DeliverPolicy.LAST_PER_SUBJECT), "x")
    begun(read, stream)
    assert read.take(at(1, 1))
    assert not read.has_list
    again = begun(read, stream).config
    assert (again.deliver_policy, again.opt_start_seq) == (DeliverPolicy.BY_START_SEQUENCE, 2)
    assert not read.is_bounded


def test_repeated_snapshot_is_valid_for_the_snapshot_only() -> None:
    """A message that was stored and overwritten since the read began is in neither snapshot."""
    stream = ModelStream(2, "abc")
    read = OrderedRead(wants(DeliverPolicy.LAST_PER_SUBJECT), "x")
    begun(read, stream)
    assert read.take(at(1, 1))
    stream.store("d")
    stream.store("d")
    consumer = begun(read, stream)
    assert consumer.config.deliver_policy == DeliverPolicy.LAST_PER_SUBJECT
    seen = []
    while not read.is_outdated:
        metadata = consumer.step()
        assert metadata is not None
        if read.take(metadata):
            seen.append(metadata.stream_seq)
    assert seen == [2, 3]
    after = begun(read, stream).config
    assert (after.deliver_policy, after.opt_start_seq) == (DeliverPolicy.BY_START_SEQUENCE, 4)


def test_heartbeat_after_a_repeated_snapshot_proves_the_snapshot_only() -> None:
    stream = ModelStream(3, "ab")
    read = OrderedRead(wants(DeliverPolicy.LAST_PER_SUBJECT), "x")
    begun(read, stream)
    stream.store("c")
    stream.store("c")
    consumer = begun(read, stream)
    # The newest of c alone is gone: the one before it is in no snapshot, and is due.
    stream.delete(4)
    stream.purge("b")
    while not read.is_outdated:
        metadata = consumer.step()
        if metadata is not None:
            read.take(metadata)
        else:
            assert read.note_heartbeat(consumer.heartbeat(), 0) is None
    assert begun(read, stream).config.opt_start_seq == 3


def test_a_snapshot_read_by_bytes_is_good_for_the_snapshot_only() -> None:
    stream = ModelStream(2, "abc")
    for by_bytes, keeps, bounded in ((True, 2, True), (False, 2, False), (True, 1, False)):
        stream.keeps = keeps
        config = wants(DeliverPolicy.LAST_PER_SUBJECT)
        read = OrderedRead(config, "x", by_bytes=by_bytes)
        begun(read, stream)
        assert read.is_bounded == bounded
    all_of_them = OrderedRead(wants(), "x", by_bytes=True)
    begun(all_of_them, stream)
    assert not all_of_them.is_bounded


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=12),
    st.integers(0, 12),
    st.integers(0, 30),
)
def test_a_run_counts_as_its_messages(gaps: list[int], heard_after: int, looked: int) -> None:
    stream = ModelStream()
    one, several = (OrderedRead(wants(), name) for name in "ab")
    for read in (one, several):
        begun(read, stream)
    seqs = [sum(gaps[: at + 1]) + at + 1 for at in range(len(gaps))]
    # A heartbeat that came behind some of the messages, none of which is handed over yet.
    sent = min(heard_after, len(seqs))
    for read in (one, several):
        read.note_heartbeat(beat(sent, max(looked, seqs[-1])), sent)
    for number, seq in enumerate(seqs, 1):
        assert one.take(Metadata("S", "c", 1, seq, number, 0, 0))
    assert several.takes_runs
    several.take_run(several.next_consumer_seq + len(seqs) - 1, seqs[-1])
    assert (one.mark(), one.scanned, one.progress) == (
        several.mark(),
        several.scanned,
        several.progress,
    )
    assert one.next_consumer_seq == several.next_consumer_seq == len(seqs) + 1
