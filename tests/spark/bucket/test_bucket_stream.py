"""Changes of a key-value bucket as a streaming query: each revision once, over restarts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.datasource import ReadAllAvailable

from js_sync import JetStream, KeyValue
from tests.soak import LONGEST
from tests.spark.patience import begun, finished
from twinstream.core.deadline import Deadline
from twinstream.models import KeyValueConfig, StreamSource, evolve
from twinstream.spark.bucket.location import located
from twinstream.spark.errors import DataLossError
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.read_columns import ReadColumns
from twinstream.spark.source.stream_reader import JetStreamStreamReader
from twinstream.spark.source.stream_state import stream_state
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Bucket = KeyValue[bytes]
Make = Callable[..., Bucket]

_NUMBERS = count(1)


@pytest.fixture
def make_bucket(jet: JetStream) -> Make:
    def make(**config: Any) -> Bucket:
        return jet.create_key_value(KeyValueConfig(bucket=f"changes{next(_NUMBERS)}", **config))

    return make


@pytest.fixture
def follow(
    spark: SparkSession, server: NatsServer, tmp_path: Path
) -> Callable[..., list[tuple[Any, ...]]]:
    """Runs a query to the end of what is there; returns the rows that it added to its table."""
    known: set[tuple[Any, ...]] = set()

    def run(bucket: Bucket, **options: Any) -> list[tuple[Any, ...]]:
        reader = spark.readStream.format("jetstream").option("nats.servers", server.url)
        given = {"bucket": bucket.bucket, "startingOffsets": "earliest", **options}
        writer = (
            reader.options(**given)
            .load()
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
        )
        finished(lambda: writer.start(str(tmp_path / "out")))
        rows = spark.read.parquet(str(tmp_path / "out")).orderBy("revision").collect()
        found = [(row["revision"], row["key"], row["operation"]) for row in rows]
        assert len(set(found)) == len(found), "a revision came twice"
        new = [each for each in found if each not in known]
        known.update(found)
        return new

    return run


def test_each_revision_once_over_restarts(
    make_bucket: Make, follow: Callable[..., list[tuple[Any, ...]]]
) -> None:
    bucket = make_bucket()
    for key in "abc":
        bucket.put(key, b"1")
    bucket.put("a", b"2")
    limits = {"maxMessagesPerTrigger": "2", "minPartitions": "2"}
    assert follow(bucket, **limits) == [(2, "b", "PUT"), (3, "c", "PUT"), (4, "a", "PUT")]
    bucket.delete("b")
    for number in range(5):
        bucket.put("c", b"%d" % number)
    bucket.put("d", b"1")
    assert follow(bucket) == [(5, "b", "DELETE"), (10, "c", "PUT"), (11, "d", "PUT")]
    assert follow(bucket) == []
    for key in "abcd":
        bucket.put(key, b"new")
    for key in "abcd":
        bucket.put(key, b"newer")
    assert [each[0] for each in follow(bucket)] == [16, 17, 18, 19], "the rest was replaced"


def test_filters_and_markers(
    make_bucket: Make, follow: Callable[..., list[tuple[Any, ...]]]
) -> None:
    bucket = make_bucket(history=5)
    for key in ("a.x", "b.x", "a.y"):
        bucket.put(key, b"1")
    assert follow(bucket, keys="a.*", deletes="false") == [(1, "a.x", "PUT"), (3, "a.y", "PUT")]
    bucket.delete("a.x")
    bucket.put("b.x", b"2")
    bucket.put("a.y", b"2")
    assert follow(bucket, keys="a.*", deletes="false") == [(6, "a.y", "PUT")]
    with pytest.raises(StreamingQueryException, match="created with the filter"):
        follow(bucket, keys="b.*")


def test_a_start_at_a_revision(
    make_bucket: Make, follow: Callable[..., list[tuple[Any, ...]]]
) -> None:
    bucket = make_bucket(history=5)
    for number in range(4):
        bucket.put("a", b"%d" % number)
    start = json.dumps({bucket.bucket: 3})
    assert follow(bucket, startingOffsets=start) == [(3, "a", "PUT"), (4, "a", "PUT")]


def test_a_bucket_that_was_made_again_is_noticed(
    jet: JetStream, make_bucket: Make, follow: Callable[..., list[tuple[Any, ...]]]
) -> None:
    bucket = make_bucket()
    bucket.put("a", b"1")
    assert len(follow(bucket)) == 1
    jet.delete_key_value(bucket.bucket)
    again = jet.create_key_value(KeyValueConfig(bucket=bucket.bucket))
    again.put("b", b"1")
    again.put("c", b"1")
    with pytest.raises(StreamingQueryException, match="deleted and re-created"):
        follow(bucket)
    assert [each[1] for each in follow(bucket, failOnDataLoss="false")] == ["b", "c"]


def test_refused_queries_say_why(
    jet: JetStream, make_bucket: Make, follow: Callable[..., list[tuple[Any, ...]]]
) -> None:
    bucket = make_bucket()
    with pytest.raises(StreamingQueryException, match="'history': is for a batch") as caught:
        follow(bucket, history="true")
    assert "another exception" not in str(caught.value)
    jet.delete_key_value(bucket.bucket)
    with pytest.raises(StreamingQueryException, match="there is no bucket") as caught:
        follow(bucket)
    assert "another exception" not in str(caught.value)


def test_a_running_query_follows_the_updates(
    spark: SparkSession, server: NatsServer, make_bucket: Make, tmp_path: Path
) -> None:
    """It begins after what is there, as `updates_only` of a watch."""
    bucket = make_bucket()
    bucket.put("a", b"old")
    reader = spark.readStream.format("jetstream").option("nats.servers", server.url)
    rows = reader.option("bucket", bucket.bucket).load()
    writer = rows.writeStream.format("memory").queryName("updates")
    query = begun(lambda at: writer.option("checkpointLocation", at).start(), tmp_path)
    try:
        bucket.put("b", b"new")
        bucket.delete("a")
        query.processAllAvailable()
        found = spark.sql("SELECT key, operation FROM updates ORDER BY revision").collect()
        assert [tuple(row) for row in found] == [("b", "PUT"), ("a", "DELETE")]
    finally:
        query.stop()


class Query:
    """The reader of a query, used as Spark does."""

    def __init__(self, server: NatsServer, bucket: str, **given: str) -> None:
        options = SourceOptions.parse({"nats.servers": server.url, "bucket": bucket, **given})
        self.reader = JetStreamStreamReader(located(options), ReadColumns(options).columns)
        self.at = self.reader.initialOffset()

    def batch(self) -> list[tuple[int, str]]:
        end = self.reader.latestOffset(self.at, ReadAllAvailable())
        parts = self.reader.partitions(self.at, end)
        self.at = end
        batches = [batch for part in parts for batch in self.reader.read(part)]
        return [
            (row["revision"], row["operation"]) for batch in batches for row in batch.to_pylist()
        ]


@pytest.fixture
def query(server: NatsServer) -> Iterator[Callable[..., Query]]:
    begun: list[Query] = []

    def begin(bucket: Bucket, **given: str) -> Query:
        begun.append(Query(server, bucket.bucket, startingOffsets="earliest", **given))
        return begun[-1]

    yield begin
    for each in begun:
        each.reader.stop()


def wait_until_empty(bucket: Bucket) -> None:
    deadline = Deadline.after(LONGEST)
    while bucket.status().values:
        assert not deadline.expired(), "nothing expires"


def test_what_expires_is_no_loss(make_bucket: Make, query: Callable[..., Query]) -> None:
    """Also where the bucket was idle for longer than its TTL, and then a key written twice."""
    bucket = make_bucket(ttl=timedelta(seconds=1))
    bucket.put("a", b"1")
    changes = query(bucket)
    assert changes.batch() == [(1, "PUT")]
    bucket.put("b", b"2")
    wait_until_empty(bucket)
    assert changes.batch() == []
    bucket.put("a", b"3")
    bucket.put("a", b"4")
    wait_until_empty(bucket)
    bucket.put("c", b"5")
    bucket.put("c", b"6")
    changes.batch()
    position = changes.at["streams"][f"KV_{bucket.bucket}"]
    assert position["next"] == 7


def test_what_is_purged_is_no_loss(make_bucket: Make, query: Callable[..., Query]) -> None:
    bucket = make_bucket()
    bucket.put("a", b"1")
    changes = query(bucket)
    assert changes.batch() == [(1, "PUT")]
    bucket.put("b", b"2")
    bucket.delete("a")
    bucket.delete("b")
    bucket.purge_deletes(older_than=0)
    assert bucket.status().values == 0
    assert changes.batch() == []
    bucket.put("a", b"5")
    assert changes.batch() == [(5, "PUT")]


def test_a_full_bucket_that_forgets_values_is_a_loss(
    jet: JetStream, make_bucket: Make, query: Callable[..., Query]
) -> None:
    """No client makes such a bucket: what it holds is removed for other keys."""
    bucket = make_bucket()
    stream = jet.get_stream(f"KV_{bucket.bucket}")
    stream.change(lambda config: evolve(config, discard="old", max_msgs=3))
    for key in "ab":
        bucket.put(key, b"1")
    changes = query(bucket)
    assert len(changes.batch()) == 2
    for key in "cdefghi":
        bucket.put(key, b"1")
    with pytest.raises(DataLossError, match="its max_msgs of 3 may have removed them"):
        changes.batch()


def test_a_revision_that_is_replaced_after_planning_comes_later(
    make_bucket: Make, query: Callable[..., Query]
) -> None:
    bucket = make_bucket()
    bucket.put("a", b"1")
    bucket.put("b", b"2")
    changes = query(bucket)
    end = changes.reader.latestOffset(changes.at, ReadAllAvailable())
    parts = changes.reader.partitions(changes.at, end)
    bucket.put("a", b"3")
    batches = [batch for part in parts for batch in changes.reader.read(part)]
    assert [row["revision"] for batch in batches for row in batch.to_pylist()] == [2]
    changes.at = end
    assert changes.batch() == [(3, "PUT")]


def test_markers_of_expired_keys_are_changes(
    make_bucket: Make, query: Callable[..., Query]
) -> None:
    bucket = make_bucket(limit_marker_ttl=timedelta(minutes=5))
    bucket.create("a", b"1", ttl=1)
    changes = query(bucket)
    found = changes.batch()
    deadline = Deadline.after(LONGEST)
    while len(found) < 2:
        assert not deadline.expired(), "no marker comes"
        found += changes.batch()
    assert [operation for _, operation in found] == ["PUT", "EXPIRED"]


def test_keys_of_a_mirror_of_a_mirror_are_those_of_the_first_bucket(
    jet: JetStream, make_bucket: Make
) -> None:
    first = make_bucket()
    second = make_bucket(mirror=StreamSource(name=first.bucket))
    third = make_bucket(mirror=StreamSource(name=second.bucket))
    options = SourceOptions.parse({"nats.servers": "nats://127.0.0.1", "bucket": third.bucket})
    state = stream_state(jet, f"KV_{third.bucket}", options.bucket)
    assert state.key_prefix == f"$KV.{first.bucket}."
