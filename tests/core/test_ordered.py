"""Ordered reads: whatever is lost or restarted, each message once and in order."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from js_core.ack_reply import Metadata
from js_core.errors import BadArgument
from js_core.ordered import OrderedRead, ordered_config
from js_models import ConsumerConfig, ConsumerInfo, DeliverPolicy, Timestamp, decode


class Stream:
    """Messages as (sequence, subject), and the consumers that the server would make."""

    def __init__(self, subjects: list[str]) -> None:
        self.messages = list(enumerate(subjects, 1))

    def due(self, config: ConsumerConfig) -> list[int]:
        """Return the sequences that a new consumer delivers."""
        match config.deliver_policy:
            case DeliverPolicy.BY_START_SEQUENCE:
                start = config.opt_start_seq or 1
                return [seq for seq, _ in self.messages if seq >= start]
            case DeliverPolicy.LAST_PER_SUBJECT:
                return sorted({subject: seq for seq, subject in self.messages}.values())
            case DeliverPolicy.NEW:
                return []
            case _:
                return [seq for seq, _ in self.messages]

    def info(self, config: ConsumerConfig) -> ConsumerInfo:
        due = self.due(config)
        before = (min(due) if due else len(self.messages) + 1) - 1
        members: dict[str, Any] = {
            "stream_name": "S",
            "name": config.name,
            "created": "2024-01-01T00:00:00Z",
            "config": {"deliver_policy": "all", "ack_policy": "none"},
            "delivered": {"consumer_seq": 0, "stream_seq": before},
            "ack_floor": {"consumer_seq": 0, "stream_seq": 0},
            "num_ack_pending": 0,
            "num_redelivered": 0,
            "num_waiting": 0,
            "num_pending": len(due),
        }
        return decode(members, ConsumerInfo)


def read_all(stream: Stream, config: ConsumerConfig, losses: list[int]) -> list[int]:
    """Read with a consumer that loses the message at each of these places, then with another."""
    read = OrderedRead(config, "x")
    seen: list[int] = []
    places = iter(losses)
    for _ in range(len(losses) + 1):
        wanted = read.next_config()
        read.made(stream.info(wanted))
        lost_at = next(places, None)
        for number, seq in enumerate(stream.due(wanted), 1):
            if number - 1 == lost_at:
                continue
            metadata = Metadata("S", read.name, 1, seq, number, 0, 0)
            if not read.is_in_order(metadata):
                break
            if read.take(metadata):
                seen.append(seq)
    return seen


def wants(policy: DeliverPolicy = DeliverPolicy.ALL, **more: Any) -> ConsumerConfig:
    arguments: dict[str, Any] = {
        "subjects": None,
        "deliver_policy": policy,
        "start_seq": None,
        "start_time": None,
        "headers_only": False,
    }
    return ordered_config(**(arguments | more))


SUBJECTS = st.lists(st.sampled_from("abc"), max_size=20)
# A loss of the last message shows only with the next one, so the last consumer loses nothing.
LOSSES = st.lists(st.integers(0, 15), max_size=6)


@given(SUBJECTS, LOSSES)
def test_all_messages_once_and_in_order(subjects: list[str], losses: list[int]) -> None:
    stream = Stream(subjects)
    assert read_all(stream, wants(), losses) == [seq for seq, _ in stream.messages]


@given(SUBJECTS, LOSSES, st.integers(1, 25))
def test_from_a_sequence(subjects: list[str], losses: list[int], start: int) -> None:
    stream = Stream(subjects)
    found = read_all(stream, wants(start_seq=start), losses)
    assert found == [seq for seq, _ in stream.messages if seq >= start]


@given(SUBJECTS, st.lists(st.integers(0, 2), max_size=6))
def test_the_snapshot_of_last_messages_is_whole(subjects: list[str], losses: list[int]) -> None:
    stream = Stream(subjects)
    found = read_all(stream, wants(DeliverPolicy.LAST_PER_SUBJECT), losses)
    last = stream.due(wants(DeliverPolicy.LAST_PER_SUBJECT))
    assert found[: len(last)] == last
    assert found == sorted(set(found))


def test_new_is_remembered_as_a_position() -> None:
    stream = Stream(["a", "b"])
    read = OrderedRead(wants(DeliverPolicy.NEW), "x")
    first = read.next_config()
    assert first.deliver_policy == DeliverPolicy.NEW
    read.made(stream.info(first))
    stream.messages.append((3, "c"))
    second = read.next_config()
    assert (second.deliver_policy, second.opt_start_seq) == (DeliverPolicy.BY_START_SEQUENCE, 3)
    assert stream.due(second) == [3]
    assert (first.name, second.name) == ("x_1", "x_2")


def test_the_consumers_config() -> None:
    config = OrderedRead(wants(subjects="a.*", headers_only=True), "x").next_config()
    assert (config.ack_policy, config.mem_storage, config.num_replicas) == ("none", True, 1)
    assert (config.filter_subject, config.headers_only, config.max_deliver) == ("a.*", True, 1)
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
    timed.made(Stream(["a"]).info(first))
    assert timed.next_config().opt_start_time is None


def test_arguments_that_make_no_sense() -> None:
    with pytest.raises(BadArgument, match="not both"):
        wants(start_seq=1, start_time=datetime(2024, 1, 1, tzinfo=UTC))
    with pytest.raises(BadArgument, match="subject"):
        wants(subjects=["a..b"])


def test_another_stream_of_the_same_name_is_read_from_its_beginning() -> None:
    read = OrderedRead(wants(), "x")
    old, new = (Timestamp.parse(f"2024-01-0{day}T00:00:00Z") for day in (1, 2))
    assert not read.found_stream(old)
    read.made(Stream(["a"]).info(read.next_config()))
    read.take(Metadata("S", "x_1", 1, 7, 1, 0, 0))
    assert not read.found_stream(old)
    assert read.next_config().opt_start_seq == 8
    assert read.found_stream(new)
    assert read.next_config().opt_start_seq == 1
