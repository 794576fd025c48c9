"""Offsets, admission and continuity: the decisions of a streaming read, as tables."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from twinstream.lake.stream_mark import Mark
from twinstream.spark.errors import CheckpointError, DataLossError, OptionError
from twinstream.spark.landing.resume import start_behind
from twinstream.spark.source.bounds import Bound
from twinstream.spark.source.continuity import Continuity
from twinstream.spark.source.limits.batch_limits import admit, is_too_little
from twinstream.spark.source.offsets import Offset, Position
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import partition_count, split
from twinstream.spark.source.stream_state import StreamState

STATE = StreamState("S", first=11, next=101, created="monday")
HERE = Position(next=50, created="monday", parts=3)


def options(**given: str) -> SourceOptions:
    return SourceOptions.parse({"nats.servers": "h", "stream": "S", **given})


def continuity(times: dict[int, str] | None = None, **given: str) -> Continuity:
    """Checks of a read whose stream has messages stored at `times`."""
    return Continuity(options(**given), lambda stream, seq: (times or {}).get(seq))


def test_offsets_survive_json() -> None:
    mark = Mark(seq=7, time="noon")
    offset = Offset({"B": HERE, "A": Position(1, "x", "a.>", 2, since=1, mark=mark)})
    text = json.dumps(offset.to_json())
    assert Offset.from_json(json.loads(text)) == offset
    assert list(offset.to_json()["streams"]) == ["A", "B"]
    assert not {"since", "mark"} & offset.to_json()["streams"]["B"].keys()


def test_most_parts_of_an_offset() -> None:
    given = {"next": 1, "created": "x"}
    assert Position.from_json({**given, "parts": 10_000_000}).parts == 10_000_000
    with pytest.raises(ValueError, match="parts is 10000001"):
        Position.from_json({**given, "parts": 10_000_001})


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"v": 2, "streams": {}},
        {"v": 1},
        {"v": 1, "streams": {"S": {"nxt": 1}}},
        {"v": 1, "streams": {"S": {"next": 1, "created": "x", "mark": 7}}},
        {"v": 1, "streams": [1]},
        *(
            {"v": 1, "streams": {"S": {"next": 1, "created": "x"} | member}}
            for member in ({"parts": 10**12}, {"parts": -1}, {"next": "1"}, {"since": 2**64})
        ),
    ],
)
def test_offsets_of_others_are_refused(value: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError):
        Offset.from_json(value)


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(1, 50))
def test_ranges_cover_exactly(start: int, size: int, parts: int) -> None:
    ranges = split("S", start, start + size, parts, "direct")
    edges = [start]
    for each in ranges:
        assert each.start == edges[-1]
        assert each.end > each.start
        edges.append(each.end)
    assert edges[-1] == start + size
    sizes = [each.end - each.start for each in ranges]
    assert not sizes or max(sizes) - min(sizes) <= 1 or len(ranges) < parts


@pytest.mark.parametrize(
    ("given_options", "size", "parts"),
    [
        ({"minPartitions": "4"}, 100, 4),
        ({"minPartitions": "4"}, 3, 3),
        ({"maxMessagesPerPartition": "10"}, 95, 10),
        ({"maxMessagesPerPartition": "10", "minPartitions": "2"}, 95, 10),
        ({}, 1, 1),
        ({}, 19_999, 1),
        ({}, 1_000_000, max(8, min(50, os.cpu_count() or 1))),
        ({}, 100_000_000, 800),
        ({"minPartitions": "4"}, 100_000_000, 4),
    ],
)
def test_the_number_of_partitions_follows_size_and_options(
    given_options: dict[str, str], size: int, parts: int
) -> None:
    assert partition_count(options(**given_options), size) == parts


@pytest.mark.parametrize(
    ("given_options", "slots", "size", "parts"),
    [
        ({}, 64, 10_000_000, 64),
        ({}, 64, 40_000, 2),
        ({}, 2, 10_000_000, 10),
        ({}, 8, 140_000, 7),
        ({}, 8, 1_000_000, 8),
        ({"minPartitions": "3"}, 8, 1_000_000, 3),
        ({"minPartitions": "12"}, 8, 1_000, 12),
        ({"maxMessagesPerPartition": "50000"}, 8, 1_000_000, 20),
    ],
)
def test_the_number_of_partitions_follows_the_slots_of_the_session(
    given_options: dict[str, str], slots: int, size: int, parts: int
) -> None:
    assert partition_count(evolve(options(**given_options), slots=slots), size) == parts


def test_a_cluster_may_get_more_slots() -> None:
    growing = evolve(options(), slots=2, more_slots=True)
    assert partition_count(growing, 40_000) == 2
    assert partition_count(growing, 1_000_000) == 8
    assert partition_count(evolve(growing, slots=20), 1_000_000) == 20


@given(st.integers(1, 10**7), st.integers(1, 1000))
def test_no_range_of_several_is_tiny(size: int, slots: int) -> None:
    parts = partition_count(evolve(options(), slots=slots), size)
    assert parts == 1 or size / parts > 10_000
    assert parts >= min(slots, size // 20_000)


def test_limits_are_shared_in_proportion() -> None:
    backlog, sizes = {"A": 900, "B": 100, "C": 0}, {"A": 10.0, "B": 100.0, "C": 0.0}
    assert admit(options(), backlog, sizes) == backlog
    assert admit(options(maxMessagesPerTrigger="100"), backlog, sizes) == {"A": 90, "B": 10, "C": 0}
    assert admit(options(maxBytesPerTrigger="1900"), backlog, sizes) == {"A": 90, "B": 10, "C": 0}
    assert admit(options(maxMessagesPerTrigger="5000"), backlog, sizes) == backlog


@given(
    st.dictionaries(st.sampled_from("ABC"), st.integers(0, 1000), min_size=1),
    st.integers(1, 100),
    st.integers(1, 5000),
)
def test_limits_hold_and_never_stop_a_read(
    backlog: dict[str, int], most: int, most_bytes: int
) -> None:
    limited = options(maxMessagesPerTrigger=str(most), maxBytesPerTrigger=str(most_bytes))
    found = admit(limited, backlog, dict.fromkeys(backlog, 250.0))
    assert sum(found.values()) <= most
    assert sum(found.values()) <= max(1, most_bytes // 250)
    assert all(found[name] <= backlog[name] for name in backlog)
    assert any(found.values()) == any(backlog.values())


def test_a_batch_waits_for_its_minimum_until_the_delay_is_over() -> None:
    least = options(minMessagesPerTrigger="10", maxTriggerDelay="30s")
    assert is_too_little(least, {"A": 4, "B": 5}, waited=29.9)
    assert not is_too_little(least, {"A": 5, "B": 5}, waited=0)
    assert not is_too_little(least, {"A": 1}, waited=30)
    assert not is_too_little(options(), {"A": 0}, waited=0)


@pytest.mark.parametrize(
    ("position", "state", "error", "reason"),
    [
        (evolve(HERE, created="sunday"), STATE, DataLossError, "deleted and re-created"),
        (evolve(HERE, next=102), STATE, DataLossError, "ends at 100 and had sequence 101 before"),
        (
            evolve(HERE, next=5),
            STATE,
            DataLossError,
            "from 5 to 10 were removed before",
        ),
        (evolve(HERE, filter="a.>"), STATE, CheckpointError, "created with the filter 'a.>'"),
    ],
)
def test_breaks_are_distinguished(
    position: Position, state: StreamState, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        continuity().begin(Offset({"S": position}), {"S": state})
    easy = continuity(failOnDataLoss="false")
    begin = easy.begin(Offset({"S": position}), {"S": state})["S"]
    assert begin.created == "monday"


@pytest.mark.parametrize(
    ("before", "now"),
    [("a.x,b.*", "b.*,a.x"), ("a.x,a.*", "a.*"), ("a.*", "a.x, a.*, a.y"), ("", ">"), (">,a", ">")],
)
def test_a_filter_in_other_words_is_the_same(before: str, now: str) -> None:
    begin = continuity(subject=now).begin(Offset({"S": evolve(HERE, filter=before)}), {"S": STATE})
    assert begin["S"].next == HERE.next


@pytest.mark.parametrize(
    ("before", "now", "advice"),
    [
        (
            "a.x,b.*",
            "a.x,b.*,c,d",
            "give subject='a.x,b.*' as before, and read subject='c,d' in a second query with its"
            " own checkpoint and startingOffsets=earliest; both may write to one table",
        ),
        ("a", "b", "give subject='a' as before, and read subject='b' in a second query"),
        (
            "a.x,b.*",
            "a.>",
            "read subject='a.>' in a second query with its own checkpoint and"
            " startingOffsets=earliest, without the rows of this one:"
            r' .where(~col("subject").rlike(r"^(a\.x|b\.[^.]+)$"))',
        ),
        ("a", "", r"""read subject='>' in a second query"""),
        ("a,b", "a", "give subject='a,b' as before, and leave out other rows in the query"),
        ("", "a", "give subject='>' as before, and leave out other rows"),
    ],
)
def test_another_filter_is_no_reason_to_store_rows_twice(
    before: str, now: str, advice: str
) -> None:
    strict = continuity(**({"subject": now} if now else {}))
    position = evolve(HERE, filter=before)
    for act in (
        lambda: strict.begin(Offset({"S": position}), {"S": STATE}),
        lambda: strict.check_filter(position, "S"),
    ):
        with pytest.raises(CheckpointError) as caught:
            act()
        assert advice in str(caught.value)
        assert "before sequence 50 that the old one skipped" in str(caught.value)
        assert "new table" not in str(caught.value)
        assert "failOnDataLoss" not in str(caught.value)


def test_another_filter_of_keys_is_named_as_it_was_given() -> None:
    given = SourceOptions.parse({"nats.servers": "h", "bucket": "b", "valueFormat": "json"})
    assert given.bucket is not None
    bucket = evolve(given.bucket, prefix="$KV.b.")
    strict = Continuity(evolve(given, bucket=bucket, subjects=("$KV.b.>",)), lambda *_: None)
    with pytest.raises(CheckpointError) as caught:
        strict.check_filter(evolve(HERE, filter="$KV.b.tea.*"), "KV_b")
    assert "give keys='tea.*' as before, and read keys='>' in a second query" in str(caught.value)
    assert r'col("_key").rlike(r"^(tea\.[^.]+)$")' in str(caught.value)


@pytest.mark.parametrize("position", [evolve(HERE, created="sunday"), evolve(HERE, next=102)])
def test_another_stream_is_read_from_its_beginning_when_loss_is_fine(position: Position) -> None:
    easy = continuity(failOnDataLoss="false")
    begin = easy.begin(Offset({"S": position}), {"S": STATE})["S"]
    assert (begin.next, begin.since) == (11, 11)
    assert easy.stands_at(position, STATE) == 11
    with pytest.raises(DataLossError):
        continuity().stands_at(position, STATE)
    assert easy.stands_at(evolve(HERE, next=101), STATE) == 101


def test_a_gap_is_passed_in_one_go_when_loss_is_fine() -> None:
    easy = continuity(failOnDataLoss="false")
    begin = easy.begin(Offset({"S": evolve(HERE, next=5)}), {"S": STATE})["S"]
    assert (begin.next, begin.since) == (11, 11)


def test_a_batch_that_was_planned_is_compared_with_the_stream() -> None:
    strict = continuity()
    with pytest.raises(DataLossError, match="was restored to an earlier state"):
        strict.check_batch(50, evolve(HERE, next=102), STATE, "S")
    assert strict.check_batch(50, evolve(HERE, next=101), STATE, "S") is STATE


MARKED = evolve(HERE, mark=Mark(seq=80, time="noon"))
GROWN = evolve(STATE, mark=Mark(seq=100, time="evening"))


def test_a_stream_that_was_put_back_and_has_grown_is_noticed() -> None:
    strict = continuity({80: "evening"})
    reason = "has at 80 a message stored at evening, before it had one stored at noon"
    with pytest.raises(DataLossError, match=reason):
        strict.begin(Offset({"S": MARKED}), {"S": GROWN})
    with pytest.raises(DataLossError, match=reason):
        strict.stands_at(MARKED, GROWN)
    with pytest.raises(DataLossError, match=reason):
        strict.check_batch(40, MARKED, GROWN, "S")
    with pytest.raises(DataLossError, match="ends at 60 and had sequence 80 before"):
        strict.begin(Offset({"S": MARKED}), {"S": evolve(GROWN, next=61)})
    easy = continuity({80: "evening"}, failOnDataLoss="false")
    assert easy.begin(Offset({"S": MARKED}), {"S": GROWN})["S"].next == 11
    assert easy.check_batch(40, MARKED, GROWN, "S") is None


@pytest.mark.parametrize("times", [{80: "noon"}, {}])
def test_present_or_removed_mark_is_no_break(times: dict[int, str]) -> None:
    assert continuity(times).begin(Offset({"S": MARKED}), {"S": GROWN})["S"] == MARKED


def test_mark_is_looked_up_only_after_new_messages() -> None:
    state = evolve(STATE, next=81, mark=MARKED.mark)
    assert continuity({80: "evening"}).stands_at(MARKED, state) == 50


@pytest.mark.parametrize("position", [evolve(HERE, created="sunday"), evolve(HERE, next=102)])
def test_batch_of_a_deleted_stream_reads_nothing_of_its_successor(position: Position) -> None:
    # The next batch reads it from its beginning: these rows would come twice.
    easy = continuity(failOnDataLoss="false")
    assert easy.check_batch(1, position, STATE, "S") is None
    assert easy.check_batch(1, HERE, STATE, "S") is STATE


def test_a_stream_read_does_not_begin_beyond_the_end() -> None:
    strict, easy = continuity(), continuity(failOnDataLoss="false")
    bound = Bound("startingOffsets", by_stream={"S": 102})
    with pytest.raises(OptionError, match="the start is sequence 102, but the stream ends at 100"):
        strict.within(bound, 102, STATE)
    assert strict.within(bound, 101, STATE) == easy.within(bound, 102, STATE) == 101


def test_streams_created_and_deleted_between_batches() -> None:
    strict, easy = continuity(), continuity(failOnDataLoss="false")
    new = strict.begin(Offset({}), {"S": STATE})["S"]
    assert (new.next, new.since) == (11, 11)
    with pytest.raises(CheckpointError, match="also has stream T"):
        strict.begin(Offset({"S": HERE, "T": HERE}), {"S": STATE})
    assert easy.begin(Offset({"S": HERE, "T": HERE}), {"S": STATE})["S"].next == 50


def test_nothing_new_is_no_break() -> None:
    begin = continuity().begin(Offset({"S": evolve(HERE, since=3)}), {"S": STATE})
    assert begin["S"] == HERE


COPY = evolve(STATE, created="tuesday", mark=Mark(seq=100, time="evening"))


def test_copy_of_a_stream_continues_at_its_position() -> None:
    """A backup that was restored, or a promoted mirror, has the messages and their times."""
    strict = continuity({80: "noon"})
    begin = strict.begin(Offset({"S": MARKED}), {"S": COPY})["S"]
    assert (begin.next, begin.since, begin.created) == (50, None, "tuesday")
    assert strict.stands_at(MARKED, COPY) == 50
    assert strict.check_batch(50, evolve(MARKED, next=60), COPY, "S") is COPY
    assert start_behind(COPY, MARKED, lambda *_: "noon", strict=True) == 50
    unchanged = evolve(MARKED, mark=COPY.mark)
    assert continuity().stands_at(unchanged, COPY) == 50, "its last message needs no question"


@pytest.mark.parametrize(
    ("times", "sign"),
    [
        ({80: "evening"}, "with other messages (at 80, one stored at evening instead of noon)"),
        ({}, "(it may be a copy, but it has no message 80 to compare)"),
    ],
)
def test_no_error_advises_what_doubles_rows(times: dict[int, str], sign: str) -> None:
    strict = continuity(times)

    def behind() -> int:
        return start_behind(COPY, MARKED, lambda _, seq: times.get(seq), strict=True)

    for act, advice in (
        (
            lambda: strict.begin(Offset({"S": MARKED}), {"S": COPY}),
            "write to a new table with its own",
        ),
        (lambda: strict.check_batch(50, MARKED, COPY, "S"), "write to a new table with its own"),
        (lambda: strict.stands_at(MARKED, COPY), "pipeline run --accept-stream"),
        (behind, "land it into a new folder"),
    ):
        with pytest.raises(DataLossError) as caught:
            act()
        assert sign in str(caught.value)
        assert advice in str(caught.value)
        assert "failOnDataLoss" not in str(caught.value)
