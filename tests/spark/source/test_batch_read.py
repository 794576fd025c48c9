"""Batch reads through Spark: exactly the messages of the range, with exact columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import (
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from js_sync import JetStream, Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from twinstream.testing import NatsServer

Make = Callable[..., Stream]
Fill = Callable[..., None]
Read = Callable[..., "DataFrame"]
Seqs = Callable[..., list[int]]


def test_raw_columns_have_exact_types_and_values(
    jet: JetStream, make_stream: Make, read: Read
) -> None:
    stream = make_stream()
    jet.publish(f"{stream.name.lower()}.a", b"\x00\xff", headers={"K": ["1", "ü"], "L": "x"})
    jet.publish(f"{stream.name.lower()}.b", b"")
    rows = read(stream.name, includeHeaders="true")
    assert rows.drop("headers").schema == StructType(
        [
            StructField("subject", StringType()),
            StructField("data", BinaryType()),
            StructField("stream", StringType()),
            StructField("seq", LongType()),
            StructField("timestamp", TimestampType()),
        ]
    )
    assert rows.schema["headers"].dataType.simpleString() == "map<string,array<string>>"
    first, second = rows.orderBy("seq").collect()
    assert first["subject"] == f"{stream.name.lower()}.a"
    assert bytes(first["data"]) == b"\x00\xff"
    assert first["headers"] == {"K": ["1", "ü"], "L": ["x"]}
    assert (first["stream"], first["seq"]) == (stream.name, 1)
    assert bytes(second["data"]) == b""
    assert second["headers"] is None
    stored = stream.get_message(1)
    micros = int(rows.selectExpr("unix_micros(timestamp) t").orderBy("t").collect()[0]["t"])
    assert micros == stored.time.ns // 1000


@pytest.mark.parametrize("mode", ["direct", "consumer"])
@pytest.mark.parametrize("parts", ["1", "3"])
def test_every_message_once(
    make_stream: Make, fill: Fill, read: Read, mode: str, parts: str
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} for at in range(1000)])
    for seq in (1, 2, 500, 334, 1000):
        stream.delete_message(seq)
    rows = read(stream.name, readMode=mode, minPartitions=parts, fetchMessages="70")
    assert rows.rdd.getNumPartitions() == int(parts)
    found = sorted((row["seq"], json.loads(row["data"])["id"]) for row in rows.collect())
    expected = [seq for seq in range(1, 1001) if seq not in {1, 2, 500, 334, 1000}]
    assert found == [(seq, seq - 1) for seq in expected]


@pytest.mark.parametrize("mode", ["direct", "consumer"])
def test_filters_choose_messages_by_subject(
    make_stream: Make, fill: Fill, seqs: Seqs, mode: str
) -> None:
    stream = make_stream()
    prefix = stream.name.lower()
    fill(stream, [b""] * 300, subjects=["a.x", "b.x", "a.y"])
    in_range = range(1, 301)
    assert seqs(stream.name, subject=f"{prefix}.a.*", readMode=mode) == [
        seq for seq in in_range if seq % 3 != 2
    ]
    several = f"{prefix}.b.>, {prefix}.a.y"
    assert seqs(stream.name, subject=several, readMode=mode, minPartitions="4") == [
        seq for seq in in_range if seq % 3 != 1
    ]
    overlapping = f"{prefix}.a.x, {prefix}.a.*, {prefix}.a.y"
    assert seqs(stream.name, subject=overlapping, readMode=mode) == [
        seq for seq in in_range if seq % 3 != 2
    ]
    assert seqs(stream.name, subject=f"{prefix}.none", readMode=mode) == []


def test_offsets_bound_the_read(make_stream: Make, fill: Fill, seqs: Seqs) -> None:
    stream = make_stream()
    fill(stream, [b""] * 20)

    def between(low: int, high: int) -> list[int]:
        start, end = json.dumps({stream.name: low}), json.dumps({stream.name: high})
        return seqs(stream.name, startingOffsets=start, endingOffsets=end, minPartitions="3")

    assert between(5, 9) == [5, 6, 7, 8]
    assert between(-2, 3) == [1, 2]
    assert between(19, -1) == [19, 20]
    assert between(7, 7) == []
    assert between(19, 1000) == [19, 20]
    assert seqs(stream.name, startingOffsets="latest") == []


def test_an_empty_stream_gives_no_rows(make_stream: Make, read: Read) -> None:
    stream = make_stream()
    assert read(stream.name).collect() == []
    assert read(stream.name).count() == 0


def test_several_streams_are_read_together(make_stream: Make, fill: Fill, read: Read) -> None:
    one, two = make_stream(), make_stream()
    fill(one, [b""] * 7)
    fill(two, [b""] * 5)
    rows = read(f"{one.name},{two.name}").groupBy("stream").count().collect()
    assert {row["stream"]: row["count"] for row in rows} == {one.name: 7, two.name: 5}


def test_work_queue_streams_are_read_without_touching_them(
    make_stream: Make, fill: Fill, seqs: Seqs
) -> None:
    stream = make_stream(retention="workqueue")
    fill(stream, [b""] * 10)
    assert seqs(stream.name) == list(range(1, 11))
    assert stream.info().state.messages == 10


def test_without_direct_get_a_consumer_reads_and_is_removed(
    make_stream: Make, fill: Fill, seqs: Seqs
) -> None:
    stream = make_stream(allow_direct=False)
    fill(stream, [b""] * 50)
    assert seqs(stream.name, minPartitions="2") == list(range(1, 51))
    assert list(stream.consumer_names()) == []
    with pytest.raises(PySparkException, match="needs allow_direct"):
        seqs(stream.name, readMode="direct")


def test_a_schema_chooses_columns_that_are_offered(
    make_stream: Make, fill: Fill, read: Read
) -> None:
    stream = make_stream()
    fill(stream, [b"x"])
    row = read(stream.name, schema="seq bigint, subject string").collect()[0]
    assert row.asDict() == {"seq": 1, "subject": f"{stream.name.lower()}.a"}
    with pytest.raises(PySparkException, match="there is no column 'sequence'"):
        read(stream.name, schema="sequence bigint").collect()
    with pytest.raises(PySparkException, match="column 'seq' is bigint, not string"):
        read(stream.name, schema="seq string").collect()


def test_times_are_instants(make_stream: Make, fill: Fill, read: Read) -> None:
    stream = make_stream()
    before = datetime.now(UTC)
    fill(stream, [b""])
    for mode in ("direct", "consumer"):
        seconds = read(stream.name, readMode=mode).selectExpr("unix_seconds(timestamp) t")
        at = seconds.collect()[0]["t"]
        assert int(before.timestamp()) <= at <= int(datetime.now(UTC).timestamp()) + 1


def test_start_below_what_is_left_is_data_loss(make_stream: Make, fill: Fill, seqs: Seqs) -> None:
    stream = make_stream()
    fill(stream, [b""] * 10)
    stream.purge(before_seq=6)
    start = json.dumps({stream.name: 2})
    with pytest.raises(PySparkException, match="is sequence 2, but the first sequence left is 6"):
        seqs(stream.name, startingOffsets=start)
    assert seqs(stream.name, startingOffsets=start, failOnDataLoss="false") == [6, 7, 8, 9, 10]
    assert seqs(stream.name) == [6, 7, 8, 9, 10]


def test_a_start_beyond_the_end_is_refused(make_stream: Make, fill: Fill, seqs: Seqs) -> None:
    """Who kept the sequence may have read a stream that was deleted and made anew since."""
    stream = make_stream()
    fill(stream, [b""] * 10)
    start = json.dumps({stream.name: 12})
    with pytest.raises(PySparkException, match="is sequence 12, but the stream ends at 10"):
        seqs(stream.name, startingOffsets=start)
    assert seqs(stream.name, startingOffsets=start, failOnDataLoss="false") == []
    assert seqs(stream.name, startingOffsets=json.dumps({stream.name: 11})) == []


def test_a_view_is_read_by_sql(
    spark: SparkSession, server: NatsServer, make_stream: Make, fill: Fill
) -> None:
    stream = make_stream()
    fill(stream, [b""] * 6)
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW js_view USING jetstream"
        f" OPTIONS (`nats.servers` '{server.url}', stream '{stream.name}')"
    )
    found = spark.sql("SELECT subject, count(*) n FROM js_view GROUP BY subject").collect()
    assert {row["subject"].rpartition(".")[2]: row["n"] for row in found} == {
        "a": 2,
        "b": 2,
        "c": 2,
    }


def test_a_table_is_read_by_sql_with_its_options(
    spark: SparkSession, server: NatsServer, make_stream: Make, fill: Fill
) -> None:
    stream = make_stream()
    fill(stream, [b""] * 6)
    options = f"`nats.servers` '{server.url}', stream '{stream.name}'"
    spark.sql(f"CREATE TABLE js_table USING jetstream OPTIONS ({options})")
    try:
        given = f"`nats.servers` = '{server.url}', stream = '{stream.name}'"
        assert len(spark.sql(f"SELECT seq FROM js_table WITH ({given})").collect()) == 6
        with pytest.raises(PySparkException, match="Spark does not pass the options of CREATE"):
            spark.sql("SELECT seq FROM js_table").collect()
    finally:
        spark.sql("DROP TABLE js_table")


def test_a_stream_that_is_not_there_is_named(read: Read) -> None:
    with pytest.raises(PySparkException, match="there is no stream 'NOWHERE'"):
        read("NOWHERE").collect()
