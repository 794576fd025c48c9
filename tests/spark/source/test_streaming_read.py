"""Streaming reads through Spark: exact over restarts, within limits, and clear when broken."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

from js_sync import JetStream, Stream
from tests.spark.patience import begun, finished
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[..., Stream]
Fill = Callable[..., None]


@pytest.fixture
def stream_to(spark: SparkSession, server: NatsServer, tmp_path: Path) -> Callable[..., Any]:
    """Runs a query to the end of what is there; returns its progress, batch by batch."""

    def run(stream: str, out: str = "out", **options: Any) -> list[Any]:
        reader = spark.readStream.format("jetstream").option("nats.servers", server.url)
        rows = reader.options(stream=stream, startingOffsets="earliest", **options).load()
        writer = (
            rows.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / f"{out}-checkpoint"))
            .trigger(availableNow=True)
        )
        query = finished(lambda: writer.start(str(tmp_path / out)))
        return [each for each in query.recentProgress if each["numInputRows"]]

    return run


def seqs_of(spark: SparkSession, path: Path) -> list[int]:
    return sorted(row["seq"] for row in spark.read.parquet(str(path)).select("seq").collect())


def test_available_now_within_limits_and_over_restarts(
    stream_to: Callable[..., Any],
    spark: SparkSession,
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [b"x"] * 250)
    stream.delete_message(3)
    progress = stream_to(stream.name, maxMessagesPerTrigger="100", minPartitions="2")
    counts = [each["numInputRows"] for each in progress]
    assert sum(counts) == 249
    assert all(90 <= count <= 100 for count in counts[:-1])
    assert len(counts) == 3
    end = json.loads(progress[-1]["sources"][0]["endOffset"])
    position = end["streams"][stream.name]
    assert (end["v"], position["next"], position["parts"]) == (1, 251, 2)
    latest = json.loads(progress[0]["sources"][0]["latestOffset"])
    assert latest["streams"][stream.name]["next"] == 251, "the lag is in the progress"
    fill(stream, [b"y"] * 30)
    again = stream_to(stream.name, maxMessagesPerTrigger="100", minPartitions="3")
    assert [each["numInputRows"] for each in again] == [30]
    assert stream_to(stream.name) == []
    expected = [seq for seq in range(1, 281) if seq != 3]
    assert seqs_of(spark, tmp_path / "out") == expected
    files = (tmp_path / "out").glob("*.parquet")
    assert sum(pq.read_metadata(file).num_rows for file in files) == 279


def test_a_new_stream_joins_and_filters_hold(
    stream_to: Callable[..., Any],
    spark: SparkSession,
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
) -> None:
    one, two = make_stream(), make_stream()
    fill(one, [b""] * 9)
    options = {"subject": "*.a"}
    assert [each["numInputRows"] for each in stream_to(one.name, **options)] == [3]
    fill(two, [b""] * 6)
    both = stream_to(f"{one.name},{two.name}", **options)
    assert [each["numInputRows"] for each in both] == [2]
    rows = spark.read.parquet(str(tmp_path / "out")).groupBy("stream").count().collect()
    assert {row["stream"]: row["count"] for row in rows} == {one.name: 3, two.name: 2}
    with pytest.raises(StreamingQueryException, match="created with the filter"):
        stream_to(f"{one.name},{two.name}", subject="*.b")


def test_refused_read_reports_only_the_reason(
    stream_to: Callable[..., Any], make_stream: Make
) -> None:
    with pytest.raises(StreamingQueryException, match="is for a batch") as caught:
        stream_to(make_stream().name, endingOffsets="latest")
    assert "another exception" not in str(caught.value)


def test_recreated_stream_is_noticed(
    stream_to: Callable[..., Any], jet: JetStream, make_stream: Make, fill: Fill
) -> None:
    stream = make_stream()
    fill(stream, [b""] * 3)
    stream_to(stream.name)
    jet.delete_stream(stream.name)
    fill(jet.create_stream(stream.cached_info.config), [b""] * 5)
    with pytest.raises(StreamingQueryException, match="deleted and re-created"):
        stream_to(stream.name)
    progress = stream_to(stream.name, failOnDataLoss="false")
    assert [each["numInputRows"] for each in progress] == [5]


def test_a_running_query_starts_at_the_latest_and_follows(
    spark: SparkSession, server: NatsServer, make_stream: Make, fill: Fill, tmp_path: Path
) -> None:
    stream = make_stream()
    fill(stream, [b"old"] * 5)
    reader = spark.readStream.format("jetstream").option("nats.servers", server.url)
    rows = reader.option("stream", stream.name).load()
    writer = rows.writeStream.format("memory").queryName("following")
    query = begun(lambda at: writer.option("checkpointLocation", at).start(), tmp_path)
    try:
        fill(stream, [b"new"] * 7)
        query.processAllAvailable()
        found = spark.sql("SELECT seq, data FROM following ORDER BY seq").collect()
        assert [row["seq"] for row in found] == list(range(6, 13))
        assert {bytes(row["data"]) for row in found} == {b"new"}
    finally:
        query.stop()
