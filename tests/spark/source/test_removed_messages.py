"""Messages that a stream removed before they were read: replaced by later ones, or lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from attrs import evolve
from pyspark.sql.streaming.datasource import ReadAllAvailable

from js_sync import JetStream, Stream
from twinstream.lake.stream_mark import Mark
from twinstream.models import StreamConfig
from twinstream.spark.errors import DataLossError
from twinstream.spark.landing.land_job import ranges_of
from twinstream.spark.landing.resume import start_behind
from twinstream.spark.source.batcher import Batcher
from twinstream.spark.source.continuity import Continuity
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.offsets import Position
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import SequenceRange
from twinstream.spark.source.range_partition import range_partition
from twinstream.spark.source.range_task import read_batches, read_pages
from twinstream.spark.source.read_columns import ReadColumns
from twinstream.spark.source.reader import JetStreamReader
from twinstream.spark.source.removed_messages import not_before, why_lost
from twinstream.spark.source.stream_reader import JetStreamStreamReader
from twinstream.spark.source.stream_retention import StreamRetention
from twinstream.spark.source.stream_state import StreamState
from twinstream.testing import NatsServer

Make = Callable[..., Stream]
Fill = Callable[..., None]

HOUR = timedelta(hours=1)
STATE = StreamState(
    "S",
    first=51,
    next=101,
    created="2026-01-01T00:00:00Z",
    messages=9,
    first_time="2026-01-01T00:30:00Z",
    now="2026-01-01T01:00:00Z",
)
RECENTLY, LONG_AGO = "2026-01-01T00:00:01Z", "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("config", "since", "reason"),
    [
        ({}, RECENTLY, "its limits or a purge removed them"),
        ({"max_msgs_per_subject": -1}, RECENTLY, "its limits or a purge removed them"),
        ({"max_msgs_per_subject": 1}, None, None),
        ({"allow_rollup_hdrs": True}, None, None),
        ({"allow_msg_ttl": True}, None, None),
        ({"subject_delete_marker_ttl": HOUR}, None, None),
        ({"max_msgs_per_subject": 1, "retention": "interest"}, None, "acknowledgements may have"),
        ({"max_msgs_per_subject": 1, "max_age": HOUR}, RECENTLY, None),
        ({"max_msgs_per_subject": 1, "max_age": HOUR}, LONG_AGO, "its max_age of 3600 s may have"),
        ({"max_msgs_per_subject": 1, "max_age": HOUR}, None, "its max_age of 3600 s may have"),
        ({"max_msgs_per_subject": 1, "max_msgs": 60}, None, None),
        ({"max_msgs_per_subject": 1, "max_msgs": 59}, None, "its max_msgs of 59 may have"),
        ({"max_msgs_per_subject": 1, "max_bytes": 5}, None, "its max_bytes of 5 may have"),
        ({"max_msgs_per_subject": 1, "max_bytes": -1, "max_msgs": -1}, None, None),
        ({"max_msgs_per_subject": 1, "max_bytes": 5, "max_msgs": 1, "discard": "new"}, None, None),
    ],
)
def test_the_configuration_and_the_state_decide(
    config: dict[str, Any], since: str | None, reason: str | None
) -> None:
    """Sequences 41 to 50 were removed."""
    state = evolve(STATE, keeping=StreamRetention.of(StreamConfig(name="S", **config)))
    found = why_lost(state, 41, since)
    assert (found is None) if reason is None else (found is not None and reason in found)


def test_a_stream_that_only_replaces_is_never_empty() -> None:
    empty = evolve(STATE, messages=0, keeping=StreamRetention(replaces=True))
    assert why_lost(empty, 41, None) == "a purge or deletes left it empty"
    assert (
        why_lost(evolve(empty, keeping=StreamRetention(replaces=True, expires=True)), 41, None)
        is None
    )


@pytest.mark.parametrize(
    ("low", "mark", "expected"),
    [
        (41, Mark(40, "mark"), "mark"),
        (41, Mark(41, "mark"), None),
        (41, None, None),
        (51, None, "2026-01-01T00:30:00Z"),
        (60, Mark(70, "mark"), "2026-01-01T00:30:00Z"),
    ],
)
def test_a_message_is_not_older_than_those_before_it(
    low: int, mark: Mark | None, expected: str | None
) -> None:
    assert not_before(low, STATE, mark) == expected


# ---- with a server

LAST_VALUES = {"max_msgs_per_subject": 1}


def options(server: NatsServer, stream: Stream, **given: str) -> SourceOptions:
    return SourceOptions.parse({"nats.servers": server.url, "stream": stream.name, **given})


def put(jet: JetStream, stream: Stream, *subjects: str, **headers: str) -> None:
    for subject in subjects:
        jet.publish(f"{stream.name.lower()}.{subject}", b"", headers=headers or None)


class Reading:
    """A streaming read without Spark: offsets as Spark keeps them."""

    def __init__(self, given: SourceOptions) -> None:
        self.options = given
        self.reader = JetStreamStreamReader(given, ReadColumns(given).columns)
        self.at = self.reader.initialOffset()

    def plan(self) -> list[SequenceRange]:
        end = self.reader.latestOffset(self.at, ReadAllAvailable())
        parts = self.reader.partitions(self.at, end)
        self.at = end
        return [range_partition(part).value for part in parts]

    def read(self, parts: list[SequenceRange]) -> list[int]:
        batcher = Batcher(self.options, ReadColumns(self.options).columns)
        batches = [each for part in parts for each in read_batches(self.options, batcher, part)]
        return [seq for batch in batches for seq in batch.column("seq").to_pylist()]

    def batch(self) -> list[int]:
        return self.read(self.plan())


@pytest.fixture
def reading(server: NatsServer) -> Iterator[Callable[..., Reading]]:
    begun: list[Reading] = []

    def begin(stream: Stream, **given: str) -> Reading:
        begun.append(Reading(options(server, stream, startingOffsets="earliest", **given)))
        return begun[-1]

    yield begin
    for each in begun:
        each.reader.stop()


@pytest.mark.parametrize("kept", ["a", "old"])
def test_replaced_messages_are_no_loss_whichever_subject_is_kept(
    jet: JetStream, make_stream: Make, reading: Callable[..., Reading], kept: str
) -> None:
    """Only where the subject with the lowest sequence is replaced does the first one move."""
    stream = make_stream(**LAST_VALUES)
    put(jet, stream, "a", "b")
    query = reading(stream)
    assert query.batch() == [1, 2]
    put(jet, stream, "old" if kept == "old" else "a", "b", "c")
    put(jet, stream, "a", "b", "c")
    expected = [3, 6, 7, 8] if kept == "old" else [6, 7, 8]
    assert stream.info().state.first_seq == expected[0]
    assert query.batch() == expected
    put(jet, stream, "a", "b", "c", "old")
    put(jet, stream, "a", "b", "c", "old")
    assert query.batch() == [13, 14, 15, 16], "the first sequence is behind what was read"


def test_messages_replaced_between_planning_and_reading_are_no_loss(
    jet: JetStream, make_stream: Make, reading: Callable[..., Reading]
) -> None:
    stream = make_stream(**LAST_VALUES, max_age=HOUR)
    put(jet, stream, "a")
    query = reading(stream)
    assert query.batch() == [1]
    put(jet, stream, "a", "b")
    parts = query.plan()
    put(jet, stream, "a", "b")
    assert query.read(parts) == [], "both were replaced"
    assert query.batch() == [4, 5]


@pytest.mark.parametrize(
    "config",
    [
        {"max_msgs": 3, "discard": "old"},
        {"max_bytes": 400, "discard": "old"},
    ],
)
def test_limits_of_such_a_stream_still_lose_messages(
    jet: JetStream, make_stream: Make, reading: Callable[..., Reading], config: dict[str, Any]
) -> None:
    stream = make_stream(**LAST_VALUES, **config)
    put(jet, stream, "a", "b")
    query = reading(stream)
    assert query.batch() == [1, 2]
    put(jet, stream, *(f"k{at}" for at in range(20)))
    (limit,) = config.keys() - {"discard"}
    with pytest.raises(DataLossError, match=f"its {limit} of .* may have removed them; set fail"):
        query.batch()
    assert reading(stream, failOnDataLoss="false").batch()


def test_a_purge_that_leaves_nothing_is_a_loss(
    jet: JetStream, make_stream: Make, reading: Callable[..., Reading]
) -> None:
    stream = make_stream(**LAST_VALUES)
    put(jet, stream, "a", "b")
    query = reading(stream)
    assert query.batch() == [1, 2]
    put(jet, stream, "a", "b")
    stream.purge()
    with pytest.raises(DataLossError, match="a purge or deletes left it empty"):
        query.batch()


def test_a_rollup_replaces_messages(
    jet: JetStream, make_stream: Make, reading: Callable[..., Reading]
) -> None:
    stream = make_stream(allow_rollup_hdrs=True)
    put(jet, stream, "a", "a")
    query = reading(stream)
    assert query.batch() == [1, 2]
    put(jet, stream, "a", "b")
    put(jet, stream, "a", **{"Nats-Rollup": "all"})
    assert query.batch() == [5]


def test_messages_replaced_while_a_range_is_read_are_no_loss(
    server: NatsServer, jet: JetStream, make_stream: Make
) -> None:
    """With a limit by age the task compares with the time of the message before the gap."""
    subjects = [f"k{at}" for at in range(300)]
    for config, lost in (({}, None), ({"max_age": HOUR}, None), ({"max_msgs": 400}, "max_msgs")):
        stream = make_stream(**LAST_VALUES, **config)
        put(jet, stream, *subjects)
        given = options(server, stream, fetchMessages="50")
        (part,) = JetStreamReader(given, ReadColumns(given).columns).partitions()
        pages = read_pages(given, range_partition(part).value)
        assert len(next(pages)) == 50
        put(jet, stream, *subjects[:250])
        if lost is None:
            assert sum(map(len, pages)) >= 50, "one page was asked for ahead"
        else:
            put(jet, stream, *(f"m{at}" for at in range(400)))
            with pytest.raises(DataLossError, match=f"its {lost} of 400 may have removed them"):
                list(pages)


def test_a_start_at_a_replaced_sequence_is_no_loss(
    server: NatsServer, jet: JetStream, make_stream: Make
) -> None:
    found: list[str] = []
    for config in (LAST_VALUES, {"max_msgs": 1, "discard": "old"}):
        stream = make_stream(**config)
        put(jet, stream, "a", "a", "a")
        given = options(server, stream, startingOffsets=f'{{"{stream.name}": 2}}')
        try:
            (part,) = JetStreamReader(given, ReadColumns(given).columns).partitions()
            planned = range_partition(part).value
            found.append(f"{planned.start} to {planned.end}")
        except DataLossError as error:
            found.append(str(error))
    assert found[0] == "3 to 4"
    assert "left is 3, and its limits or a purge removed them" in found[1]


def test_landing_continues_after_replaced_messages(
    server: NatsServer, jet: JetStream, make_stream: Make
) -> None:
    """With a limit by age it needs the last message of the batch before, from the journal."""
    stream = make_stream(**LAST_VALUES, max_age=HOUR)
    put(jet, stream, "a")
    given = options(server, stream)
    with Leader(given) as leader:
        (state,) = leader.states()
        landed = Position(state.next, state.created, mark=state.mark)
        put(jet, stream, "a", "a")
        (state,) = leader.states()
        assert start_behind(state, landed, leader.time_at, strict=True) == 3
        end = Position(state.next, state.created, mark=state.mark)
        (part,) = ranges_of(leader, given, 2, end, landed.mark)
        assert (part.start, part.end, part.since) == (3, 4, landed.mark and landed.mark.time)
        with pytest.raises(DataLossError, match="its max_age of 3600 s may have removed them"):
            ranges_of(leader, given, 2, end)
        strict = Continuity(given, leader.time_at)
        with pytest.raises(DataLossError, match="its max_age of 3600 s may have removed them"):
            strict.check_batch(2, end, evolve(state, now=None), stream.name, landed.mark)
