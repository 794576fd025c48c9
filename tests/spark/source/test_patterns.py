"""Reads of all streams whose names match a pattern, also of those that are created later."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from js_sync import JetStream, Stream
from twinstream.models import StreamConfig
from twinstream.spark.errors import CheckpointError, DataLossError, OptionError
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.read_columns import ReadColumns
from twinstream.spark.source.reader import JetStreamReader
from twinstream.spark.source.stream_reader import JetStreamStreamReader
from twinstream.testing import NatsServer

_NUMBERS = count(1)


@pytest.fixture
def prefix() -> str:
    return f"PATTERN{next(_NUMBERS)}"


@pytest.fixture
def make(jet: JetStream, prefix: str) -> Callable[..., Stream]:
    """Makes a stream with so many messages, whose name begins with the prefix."""

    def create(name: str, messages: int = 0) -> Stream:
        name = f"{prefix}_{name}"
        stream = jet.create_stream(StreamConfig(name=name, subjects=[name], allow_direct=True))
        for _ in range(messages):
            jet.publish(name)
        return stream

    return create


def options_of(server: NatsServer, pattern: str, **given: str) -> SourceOptions:
    return SourceOptions.parse({"nats.servers": server.url, "subscribePattern": pattern, **given})


class Query:
    """The reader of a query, used as Spark does."""

    def __init__(self, options: SourceOptions) -> None:
        self.reader = JetStreamStreamReader(options, ReadColumns(options).columns)
        self.at: Any = self.reader.initialOffset()

    def batch(self) -> list[tuple[str, int]]:
        end = self.reader.latestOffset(self.at, ReadAllAvailable())
        parts = self.reader.partitions(self.at, end)
        self.at = end
        return rows_of(self.reader, parts)


def rows_of(reader: Any, parts: Any) -> list[tuple[str, int]]:
    batches = [batch for part in parts for batch in reader.read(part)]
    return sorted(
        (row["stream"].rpartition("_")[2], row["seq"])
        for batch in batches
        for row in batch.to_pylist()
    )


@pytest.fixture
def begin() -> Iterator[Callable[..., Query]]:
    begun: list[Query] = []

    def start(options: SourceOptions) -> Query:
        begun.append(Query(options))
        return begun[-1]

    yield start
    for each in begun:
        each.reader.stop()


def test_a_batch_reads_the_streams_that_match(
    server: NatsServer, make: Callable[..., Stream], prefix: str
) -> None:
    for name, messages in (("A", 2), ("B", 1), ("OTHER", 3)):
        make(name, messages)
    options = options_of(server, f"{prefix}_[A-Z]", startingTimestamp="-1h")
    reader = JetStreamReader(options, ReadColumns(options).columns)
    planned = reader.partitions()
    assert rows_of(reader, planned) == [("A", 1), ("A", 2), ("B", 1)]
    make("C", 1)
    assert rows_of(reader, planned) == [("A", 1), ("A", 2), ("B", 1)]
    assert ("C", 1) in rows_of(reader, reader.partitions())


def test_a_stream_that_is_created_later_is_read_from_its_beginning(
    server: NatsServer, make: Callable[..., Stream], prefix: str, begin: Callable[..., Query]
) -> None:
    make("A", 2)
    query = begin(options_of(server, f"{prefix}_.*"))
    assert query.batch() == []
    make("B", 3)
    assert query.batch() == [("B", 1), ("B", 2), ("B", 3)]
    assert query.batch() == []
    assert query.at["streams"].keys() == {f"{prefix}_A", f"{prefix}_B"}


def test_a_query_with_an_end_leaves_later_streams_to_the_next_one(
    server: NatsServer, make: Callable[..., Stream], prefix: str, begin: Callable[..., Query]
) -> None:
    make("A", 2)
    options = options_of(server, f"{prefix}_.*", startingOffsets="earliest")
    query = begin(options)
    query.reader.prepareForTriggerAvailableNow()
    make("B", 3)
    assert query.batch() == [("A", 1), ("A", 2)]
    assert query.batch() == []
    following = begin(options)
    following.at = query.at
    assert following.batch() == [("B", 1), ("B", 2), ("B", 3)]


def test_a_stream_that_is_deleted_ends_a_strict_query(
    server: NatsServer, jet: JetStream, make: Callable[..., Stream], begin: Callable[..., Query]
) -> None:
    kept, gone = make("KEPT", 1), make("GONE", 1)
    pattern = f"{kept.name}|{gone.name}"
    start = {"startingOffsets": "earliest"}
    strict = begin(options_of(server, pattern, **start))
    easy = begin(options_of(server, pattern, failOnDataLoss="false", **start))
    assert strict.batch() == easy.batch() == [("GONE", 1), ("KEPT", 1)]
    unfinished = easy.at
    jet.delete_stream(gone.name)
    jet.publish(kept.name)
    with pytest.raises(CheckpointError, match=f"{gone.name}, which does not exist or does not"):
        strict.batch()
    assert easy.batch() == [("KEPT", 2)]
    begun: Any = easy.reader.initialOffset()
    assert rows_of(easy.reader, easy.reader.partitions(begun, unfinished)) == [("KEPT", 1)]
    with pytest.raises(CheckpointError, match="it must be there until the batch is finished"):
        strict.reader.partitions(begun, unfinished)


def test_a_stream_that_is_created_again_is_noticed(
    server: NatsServer, jet: JetStream, make: Callable[..., Stream], begin: Callable[..., Query]
) -> None:
    stream = make("A", 1)
    query = begin(options_of(server, stream.name, startingOffsets="earliest"))
    assert query.batch() == [("A", 1)]
    jet.delete_stream(stream.name)
    make("A", 2)
    with pytest.raises(DataLossError, match="deleted and re-created"):
        query.batch()


@pytest.mark.parametrize(
    ("given", "option", "reason"),
    [
        ({"stream": "S"}, "subscribePattern", "cannot be combined with stream"),
        ({"subscribe": "S"}, "subscribePattern", "cannot be combined with subscribe"),
        ({"bucket": "b"}, "subscribePattern", "cannot be combined with bucket"),
        ({"subscribePattern": "a("}, "subscribePattern", "is no regular expression"),
        ({"startingOffsets": '{"S": 1}'}, "startingOffsets", "for streams that are named"),
        ({"endingOffsetsByTimestamp": '{"S": 1}'}, "endingOffsetsByTimestamp", "or one time"),
        (
            {"startingTimestamp": "2000", "endingTimestamp": "1999"},
            "endingTimestamp",
            "1970-01-01T00:00:01.999Z is before startingTimestamp",
        ),
    ],
)
def test_each_mistake_names_its_option(given: dict[str, str], option: str, reason: str) -> None:
    with pytest.raises(OptionError, match=reason) as caught:
        SourceOptions.parse({"nats.servers": "h", "subscribePattern": "S.*", **given})
    assert caught.value.option == option


def test_a_pattern_that_matches_nothing_is_refused(server: NatsServer, prefix: str) -> None:
    options = options_of(server, prefix)
    reader = JetStreamReader(options, ReadColumns(options).columns)
    with pytest.raises(OptionError, match=r"matches none of the \d+ streams"):
        reader.partitions()
