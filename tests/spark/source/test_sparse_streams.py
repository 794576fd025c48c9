"""Limits of a batch and sequences without a message: few messages far from each other."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from js_sync import JetStream, PublishRequest, Stream
from twinstream.spark.errors import CheckpointError
from twinstream.spark.source.batcher import Batcher
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.range_partition import range_partition
from twinstream.spark.source.range_task import read_batches
from twinstream.spark.source.read_columns import ReadColumns
from twinstream.spark.source.stream_reader import JetStreamStreamReader
from twinstream.testing import NatsServer

CLUSTERS = [1, 2, 3, 2500, 2501, 4800]
SEQUENCES = 6000
LIMIT = "100"


@pytest.fixture
def publish(jet: JetStream) -> Callable[..., None]:
    """Publishes so many messages, those of `CLUSTERS` on one subject and others on another."""

    def run(stream: Stream) -> None:
        prefix = stream.name.lower()
        subjects = [
            f"{prefix}.{'rare' if at in CLUSTERS else 'other'}" for at in range(1, SEQUENCES + 1)
        ]
        requests = [PublishRequest(subject=each, data=b"1234") for each in subjects]
        for outcome in jet.publish_many(requests):
            assert getattr(outcome, "seq", None), outcome

    return run


def read_all(server: NatsServer, *streams: Stream, **given: str) -> list[list[tuple[str, int]]]:
    """Read batch by batch as Spark does, until nothing is left; return what each of them held."""
    names = ",".join(each.name for each in streams)
    least = {"nats.servers": server.url, "stream": names, "startingOffsets": "earliest"}
    options = SourceOptions.parse({**least, **given})
    reader = JetStreamStreamReader(options, ReadColumns(options).columns)
    batcher = Batcher(options, ReadColumns(options).columns)
    at: Any = reader.initialOffset()
    found: list[list[tuple[str, int]]] = []
    while (end := reader.latestOffset(at, reader.getDefaultReadLimit())) != at:
        rows: list[tuple[str, int]] = []
        for partition in reader.partitions(at, end):
            part = range_partition(partition).value
            for batch in read_batches(options, batcher, part):
                rows += [(part.stream, seq) for seq in batch.column("seq").to_pylist()]
        found.append(rows)
        assert len(found) < 200, "no end"
        at = end
    reader.stop()
    return found


@pytest.mark.parametrize("allow_direct", [True, False])
@pytest.mark.parametrize("filters", ["rare", "rare,none.>"])
def test_limits_count_messages_that_the_filter_matches(
    server: NatsServer,
    make_stream: Callable[..., Stream],
    publish: Callable[..., None],
    filters: str,
    allow_direct: bool,
) -> None:
    stream = make_stream(allow_direct=allow_direct)
    publish(stream)
    prefix = stream.name.lower()
    subject = ",".join(f"{prefix}.{each}" for each in filters.split(","))
    found = read_all(server, stream, subject=subject, maxMessagesPerTrigger=LIMIT)
    assert [[seq for _, seq in rows] for rows in found] == [CLUSTERS]
    found = read_all(server, stream, subject=subject, maxBytesPerTrigger="4000")
    assert [[seq for _, seq in rows] for rows in found] == [CLUSTERS]
    found = read_all(server, stream, subject=subject, maxMessagesPerTrigger="4")
    assert [seq for rows in found for _, seq in rows] == CLUSTERS
    assert all(len(rows) <= 4 for rows in found)
    assert len(found) <= 4
    assert list(stream.consumer_names()) == []


@pytest.mark.parametrize("allow_direct", [True, False])
def test_no_limit_is_exceeded_by_overlapping_filters(
    server: NatsServer,
    make_stream: Callable[..., Stream],
    publish: Callable[..., None],
    allow_direct: bool,
) -> None:
    stream = make_stream(allow_direct=allow_direct)
    publish(stream)
    subject = f"{stream.name.lower()}.*,*.rare"
    found = read_all(server, stream, subject=subject, maxMessagesPerTrigger="1000")
    assert sum(len(rows) for rows in found) == SEQUENCES
    assert all(len(rows) <= 1000 for rows in found)
    assert len(found) <= 8


def test_batches_skip_what_was_removed(
    server: NatsServer, make_stream: Callable[..., Stream], publish: Callable[..., None]
) -> None:
    stream = make_stream()
    publish(stream)
    for at in (1, 2, 3):
        stream.delete_message(at)
    stream.purge(subject=f"{stream.name.lower()}.other")
    found = read_all(server, stream, maxMessagesPerTrigger="2", failOnDataLoss="false")
    assert [[seq for _, seq in rows] for rows in found] == [[2500, 2501], [4800]]


def test_streams_share_a_limit_by_their_messages(
    server: NatsServer, make_stream: Callable[..., Stream], publish: Callable[..., None]
) -> None:
    one, two = make_stream(), make_stream()
    publish(one)
    publish(two)
    rare = f"{one.name.lower()}.rare"
    found = read_all(server, one, two, subject=rare, maxMessagesPerTrigger=LIMIT)
    assert found == [[(one.name, seq) for seq in CLUSTERS]]
    both = read_all(server, one, two, subject="*.rare", maxMessagesPerTrigger="6")
    assert [len(rows) for rows in both] == [6, 6]
    assert both[0][:3] == [(one.name, seq) for seq in CLUSTERS[:3]]
    dense = read_all(server, one, maxMessagesPerTrigger="2500")
    assert [len(batch) for batch in dense] == [2500, 2500, 1000]


def test_few_messages_among_many_sequences_take_few_batches(
    server: NatsServer, jet: JetStream, make_stream: Callable[..., Stream]
) -> None:
    stream = make_stream()
    prefix = stream.name.lower()
    wanted = [1, *range(1200, 60_001, 1200)]
    kept = frozenset(wanted)
    requests = [
        PublishRequest(subject=f"{prefix}.{'rare' if at in kept else 'other'}")
        for at in range(1, 60_001)
    ]
    for outcome in jet.publish_many(requests):
        assert getattr(outcome, "seq", None), outcome
    assert len(wanted) == 51
    given = {"failOnDataLoss": "false"}
    rare = {"subject": f"{prefix}.rare", **given}
    assert len(read_all(server, stream, **rare, maxMessagesPerTrigger="51")) == 1
    filtered = read_all(server, stream, **rare, maxMessagesPerTrigger="20")
    stream.purge(subject=f"{prefix}.other")
    for found in (filtered, read_all(server, stream, maxMessagesPerTrigger="20", **given)):
        assert [seq for rows in found for _, seq in rows] == wanted
        assert [18 <= len(rows) <= 20 for rows in found[:-1]] == [True, True]


def test_a_minimum_counts_messages_that_the_filter_matches(
    server: NatsServer, make_stream: Callable[..., Stream], publish: Callable[..., None]
) -> None:
    stream = make_stream()
    publish(stream)
    rare = f"{stream.name.lower()}.rare"
    assert read_all(server, stream, subject=rare, minMessagesPerTrigger="7") == []
    found = read_all(server, stream, subject=rare, minMessagesPerTrigger="6")
    assert [len(rows) for rows in found] == [6]


def test_an_unfinished_batch_keeps_its_filter(
    server: NatsServer, make_stream: Callable[..., Stream], publish: Callable[..., None]
) -> None:
    stream = make_stream()
    publish(stream)
    rare, other = (f"{stream.name.lower()}.{each}" for each in ("rare", "other"))
    least = {"nats.servers": server.url, "stream": stream.name, "startingOffsets": "earliest"}
    first, second = (
        JetStreamStreamReader(options, ReadColumns(options).columns)
        for options in (
            SourceOptions.parse({**least, "subject": rare}),
            SourceOptions.parse({**least, "subject": f"{rare},{other}"}),
        )
    )
    start: Any = first.initialOffset()
    end = first.latestOffset(start, ReadAllAvailable())
    with pytest.raises(CheckpointError, match=r"read subject='.*other' in a second query"):
        second.partitions(start, end)
    first.stop()
    second.stop()


@pytest.mark.parametrize("allow_direct", [True, False])
def test_the_last_messages_are_those_that_the_filter_matches(
    server: NatsServer,
    make_stream: Callable[..., Stream],
    publish: Callable[..., None],
    allow_direct: bool,
) -> None:
    stream = make_stream(allow_direct=allow_direct)
    publish(stream)
    rare = {"subject": f"{stream.name.lower()}.rare"}
    for last in (0, 1, 4, 6, 7):
        found = read_all(server, stream, **rare, startingOffsets=f"last {last}")
        assert [seq for rows in found for _, seq in rows] == CLUSTERS[max(0, 6 - last) :]
    (rows,) = read_all(server, stream, startingOffsets="last 100")
    assert [seq for _, seq in rows] == list(range(SEQUENCES - 99, SEQUENCES + 1))


@pytest.mark.parametrize(
    "start",
    [
        {"startingOffsets": "latest"},
        {"startingOffsets": "last 2"},
        {"startingTimestamp": "-1s", "startingOffsetsByTimestampStrategy": "latest"},
    ],
)
def test_the_first_batch_keeps_its_start(
    server: NatsServer, jet: JetStream, make_stream: Callable[..., Stream], start: dict[str, str]
) -> None:
    """A start that moves is resolved once, although Spark asks for it in each attempt."""
    stream = make_stream()
    subject = f"{stream.name.lower()}.a"
    options = SourceOptions.parse({"nats.servers": server.url, "stream": stream.name, **start})
    reader = JetStreamStreamReader(options, ReadColumns(options).columns)

    def seqs(begin: Any, end: Any) -> list[int]:
        parts = reader.partitions(begin, end)
        batches = [batch for part in parts for batch in reader.read(part)]
        return [seq for batch in batches for seq in batch.column("seq").to_pylist()]

    for _ in range(3):
        jet.publish(subject)
    begin: Any = reader.initialOffset()
    for _ in range(4):
        jet.publish(subject)
    end = reader.latestOffset(begin, ReadAllAvailable())
    first = seqs(begin, end)
    assert first[-4:] == [4, 5, 6, 7]
    jet.publish(subject)
    time.sleep(1.5)
    again: Any = reader.initialOffset()
    assert again != begin
    assert seqs(again, end) == first
    following = reader.latestOffset(end, ReadAllAvailable())
    assert seqs(end, following) == [8]
    assert "since" not in following["streams"][stream.name]
    assert seqs(end, end) == []
    reader.stop()
