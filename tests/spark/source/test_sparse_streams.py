"""Limits of a batch and sequences without a message: few messages far from each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from js_sync import JetStream, PublishRequest, Stream
from twinstream.spark.source.batcher import Batcher
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import SequenceRange
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
        for part in reader.partitions(at, end):
            assert isinstance(part, SequenceRange)
            for batch in read_batches(options, batcher, part):
                rows += [(part.stream, seq) for seq in batch.column("seq").to_pylist()]
        found.append(rows)
        assert len(found) < 200, "no end"
        at = end
    reader.stop()
    return found


@pytest.mark.parametrize("limit", ["maxMessagesPerTrigger", "maxBytesPerTrigger"])
def test_batches_skip_what_the_filter_leaves_out(
    server: NatsServer, make_stream: Callable[..., Stream], publish: Callable[..., None], limit: str
) -> None:
    stream = make_stream()
    publish(stream)
    rare = f"{stream.name.lower()}.rare"
    most = LIMIT if limit == "maxMessagesPerTrigger" else "4000"
    found = read_all(server, stream, subject=rare, **{limit: most})
    # Three clusters, and what is behind the last of them.
    assert [[seq for _, seq in rows] for rows in found] == [[1, 2, 3], [2500, 2501], [4800], []]
    two = f"{rare},{stream.name.lower()}.none.>"
    assert read_all(server, stream, subject=two, **{limit: most}) == found


def test_batches_skip_what_was_removed(
    server: NatsServer, make_stream: Callable[..., Stream], publish: Callable[..., None]
) -> None:
    stream = make_stream()
    publish(stream)
    for at in (1, 2, 3):
        stream.delete_message(at)
    stream.purge(subject=f"{stream.name.lower()}.other")
    found = read_all(server, stream, maxMessagesPerTrigger=LIMIT, failOnDataLoss="false")
    assert [[seq for _, seq in rows] for rows in found] == [[2500, 2501], [4800], []]


def test_each_stream_skips_its_own(
    server: NatsServer, make_stream: Callable[..., Stream], publish: Callable[..., None]
) -> None:
    one, two = make_stream(), make_stream()
    publish(one)
    publish(two)
    found = read_all(
        server, one, two, subject=f"{one.name.lower()}.rare", maxMessagesPerTrigger=LIMIT
    )
    rows = [row for batch in found for row in batch]
    assert rows == [(one.name, seq) for seq in CLUSTERS]
    assert len(found) <= 8
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
    given = {"maxMessagesPerTrigger": "1000", "failOnDataLoss": "false"}
    filtered = read_all(server, stream, subject=f"{prefix}.rare", **given)
    stream.purge(subject=f"{prefix}.other")
    for found in (filtered, read_all(server, stream, **given)):
        assert [seq for rows in found for _, seq in rows] == wanted
        assert all(found), "no batch is empty"
        assert len(found) <= 51
    dense = read_all(server, stream, maxMessagesPerTrigger="30000")
    assert len(dense) == 2
