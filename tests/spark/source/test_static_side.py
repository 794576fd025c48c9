"""A batch read that is a part of a streaming query: as new as the micro-batch that uses it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from js_sync import JetStream, Stream
from tests.spark.patience import begun
from twinstream.models import KeyValueConfig
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Make = Callable[..., Stream]
Read = Callable[..., "DataFrame"]

FIRST = [f"p{at}" for at in range(10)]


def test_static_sides_of_a_join_have_what_was_stored_since_the_first_batch(
    spark: SparkSession, server: NatsServer, jet: JetStream, make_stream: Make, tmp_path: Path
) -> None:
    sales, prices = make_stream(), make_stream(max_msgs_per_subject=1)
    bucket = jet.create_key_value(KeyValueConfig(bucket="static_prices"))

    def put(key: str, price: int) -> None:
        jet.publish(f"{prices.name.lower()}.{key}", b"%d" % price)
        bucket.put(key, b"%d" % price)

    def sell(*keys: str) -> None:
        for key in keys:
            jet.publish(f"{sales.name.lower()}.sold", key.encode())

    def table(**options: str) -> DataFrame:
        reader = spark.read.format("jetstream").option("nats.servers", server.url)
        return reader.options(minPartitions="3", **options).load()

    of_stream = table(stream=prices.name).selectExpr(
        "split(subject, '[.]')[1] AS key", "CAST(data AS STRING) AS of_stream"
    )
    of_bucket = table(bucket=bucket.bucket).selectExpr("key", "CAST(value AS STRING) AS of_bucket")
    fixed = table(
        stream=prices.name,
        startingOffsets="earliest",
        endingOffsets=json.dumps({prices.name: 11}),
        failOnDataLoss="false",
    ).selectExpr("split(subject, '[.]')[1] AS key", "CAST(data AS STRING) AS fixed")

    for key in FIRST:
        put(key, 100)
    reader = spark.readStream.format("jetstream").option("nats.servers", server.url)
    writer = (
        reader.options(stream=sales.name, startingOffsets="earliest")
        .load()
        .selectExpr("seq", "CAST(data AS STRING) AS key")
        .join(of_stream, "key", "left")
        .join(of_bucket.hint("broadcast"), "key", "left")
        .join(fixed, "key", "left")
        .writeStream.format("memory")
        .queryName("priced")
    )
    query = begun(lambda at: writer.option("checkpointLocation", at).start(), tmp_path)
    try:
        sell("p0", "p1")
        query.processAllAvailable()
        put("p0", 200)
        put("new", 300)
        sell("p0", "p1", "new")
        query.processAllAvailable()
        rows = spark.table("priced").orderBy("seq").collect()
    finally:
        query.stop()
    found = [(row["key"], row["of_stream"], row["of_bucket"], row["fixed"]) for row in rows]
    assert found == [
        ("p0", "100", "100", "100"),
        ("p1", "100", "100", "100"),
        ("p0", "200", "200", None),
        ("p1", "100", "100", "100"),
        ("new", "300", "300", None),
    ]
    # Outside the query, the DataFrame keeps its range.
    assert of_bucket.count() == 10


def test_one_task_of_a_micro_batch_reads_everything(
    read: Read,
    spark: SparkSession,
    server: NatsServer,
    make_stream: Make,
    fill: Callable[..., None],
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [b""] * 5)
    start_and_end = {
        "startingOffsets": json.dumps({stream.name: 1}),
        "endingOffsets": json.dumps({stream.name: 6}),
    }
    cases = {
        "default": {},
        "latest": {"endingOffsets": "latest"},
        "time": {"endingTimestamp": "4102444800000"},
        "fixed": start_and_end,
        "kept": {"refresh": "false"},
    }
    frames = {
        case: read(stream.name, minPartitions="2", **options) for case, options in cases.items()
    }
    found: list[dict[str, list[list[int]]]] = []

    def note(*_: object) -> None:
        found.append({case: tasks_of(rows) for case, rows in frames.items()})

    def tasks_of(rows: DataFrame) -> list[list[int]]:
        """Return the sequences that each task reads."""
        tasks = rows.selectExpr("spark_partition_id() AS task", "seq").collect()
        return [
            sorted(row["seq"] for row in tasks if row["task"] == task)
            for task in range(rows.rdd.getNumPartitions())
        ]

    reader = spark.readStream.format("jetstream").option("nats.servers", server.url)
    rows = reader.options(stream=stream.name, startingOffsets="earliest").load()
    writer = rows.writeStream.foreachBatch(note)
    query = begun(lambda at: writer.option("checkpointLocation", at).start(), tmp_path)
    try:
        fill(stream, [b""] * 4)
        query.processAllAvailable()
    finally:
        query.stop()
    as_planned, refreshed = [[1, 2], [3, 4, 5]], ("default", "latest", "time")
    for tasks, newest in ((found[0], 5), (found[-1], 9)):
        everything = [list(range(1, newest + 1)), []]
        for case in cases:
            assert tasks[case] == (everything if case in refreshed else as_planned), case


def test_a_streaming_query_takes_no_refresh(
    spark: SparkSession, server: NatsServer, make_stream: Make, tmp_path: Path
) -> None:
    reader = spark.readStream.format("jetstream").option("nats.servers", server.url)
    rows = reader.options(stream=make_stream().name, refresh="false").load()
    writer = rows.writeStream.format("noop")
    with pytest.raises(StreamingQueryException, match="query always reads what is new"):
        begun(lambda at: writer.option("checkpointLocation", at).start(), tmp_path)
