"""Key-value buckets as tables of Spark: the last revision of each key, or all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from js_sync import JetStream, KeyValue
from twinstream.models import KeyValueConfig, StreamConfig

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from twinstream.testing import NatsServer

Bucket = KeyValue[bytes]
Make = Callable[..., Bucket]
Read = Callable[..., "DataFrame"]

_NUMBERS = count(1)
SCHEMA = json.dumps(
    {"type": "object", "required": ["cents"], "properties": {"cents": {"type": "integer"}}}
)


@pytest.fixture
def make_bucket(jet: JetStream) -> Make:
    def make(**config: Any) -> Bucket:
        return jet.create_key_value(KeyValueConfig(bucket=f"table{next(_NUMBERS)}", **config))

    return make


@pytest.fixture
def table(spark: SparkSession, server: NatsServer) -> Read:
    def load(bucket: Bucket | str, schema: Any = None, **options: Any) -> DataFrame:
        reader = spark.read.format("jetstream").option("nats.servers", server.url)
        name = bucket if isinstance(bucket, str) else bucket.bucket
        reader = reader.options(bucket=name, **options)
        return (reader if schema is None else reader.schema(schema)).load()

    return load


def rows(table: DataFrame) -> list[tuple[Any, ...]]:
    found = table.select("key", "value", "revision", "operation").orderBy("revision").collect()
    return [
        (row["key"], row["value"] and bytes(row["value"]), row["revision"], row["operation"])
        for row in found
    ]


def test_the_last_revision_of_each_key(make_bucket: Make, table: Read) -> None:
    bucket = make_bucket(history=3)
    bucket.put("tea.green", b"350")
    bucket.put("tea.black", b"290")
    bucket.put("tea.green", b"375")
    bucket.put("coffee", b"400")
    bucket.delete("coffee")
    bucket.put("empty", b"")
    found = table(bucket)
    assert found.schema.simpleString() == (
        "struct<key:string,value:binary,revision:bigint,operation:string,time:timestamp>"
    )
    latest = [
        ("tea.black", b"290", 2, "PUT"),
        ("tea.green", b"375", 3, "PUT"),
        ("coffee", None, 5, "DELETE"),
        ("empty", b"", 6, "PUT"),
    ]
    assert rows(found) == latest
    assert rows(table(bucket, minPartitions="3")) == latest
    assert table(bucket, minPartitions="3").rdd.getNumPartitions() == 3
    assert rows(table(bucket, deletes="false")) == [each for each in latest if each[1] is not None]
    assert rows(table(bucket, keys="tea.*")) == latest[:2]
    assert rows(table(bucket, keys="tea.black, empty")) == [latest[0], latest[3]]
    micros = found.where("key = 'empty'").selectExpr("unix_micros(time) t").collect()[0]["t"]
    assert micros == bucket.get("empty").timestamp_ns // 1000


def test_the_whole_history(make_bucket: Make, table: Read) -> None:
    bucket = make_bucket(history=2)
    for value in (b"1", b"2", b"3"):
        bucket.put("a", value)
    bucket.put("b", b"4")
    bucket.delete("b")
    found = rows(table(bucket, history="true", minPartitions="2"))
    assert found == [
        ("a", b"2", 2, "PUT"),
        ("a", b"3", 3, "PUT"),
        ("b", b"4", 4, "PUT"),
        ("b", None, 5, "DELETE"),
    ]
    assert rows(table(bucket, history="true", keys="b", deletes="false")) == [found[2]]
    end = json.dumps({bucket.bucket: 4})
    assert rows(table(bucket, history="true", endingOffsets=end)) == found[:2]
    with pytest.raises(PySparkException, match="needs history=true"):
        table(bucket, endingOffsets=end).collect()


def test_markers_of_purged_and_expired_keys(make_bucket: Make, table: Read) -> None:
    bucket = make_bucket(limit_marker_ttl=timedelta(minutes=5))
    bucket.put("purged", b"1")
    bucket.purge("purged")
    bucket.create("expired", b"2", ttl=1)
    with bucket.watch("expired") as watch:
        for entry in watch:
            if not entry.is_value:
                break
    bucket.put("stays", b"3")
    found = {row["key"]: row["operation"] for row in table(bucket).collect()}
    assert found == {"purged": "PURGE", "expired": "EXPIRED", "stays": "PUT"}
    assert [row[0] for row in rows(table(bucket, deletes="false"))] == ["stays"]


def test_values_with_a_schema(make_bucket: Make, table: Read) -> None:
    bucket = make_bucket()
    bucket.put("tea", b'{"cents": 350, "new": true}')
    bucket.put("milk", b'{"cents": "many"}')
    bucket.put("coffee", b'{"cents": 400}')
    bucket.delete("coffee")
    typed = {"valueFormat": "json", "jsonSchema": SCHEMA}
    found = table(bucket, **typed)
    assert found.columns == [
        *("cents", "_extra", "_key", "_revision", "_operation", "_time", "_error", "_raw")
    ]
    tea, milk, coffee = found.orderBy("_revision").collect()
    assert (tea["cents"], tea["_extra"], tea["_key"], tea["_operation"]) == (
        *(350, '{"new":true}', "tea", "PUT"),
    )
    assert (milk["cents"], bytes(milk["_raw"])) == (None, b'{"cents": "many"}')
    assert milk["_error"] == "cents: expected an integer, got text 'many'"
    assert (coffee["cents"], coffee["_operation"], coffee["_error"]) == (None, "DELETE", None)
    only = table(bucket, schema="cents bigint, _key string", valueFormat="json", mode="FAILFAST")
    with pytest.raises(PySparkException, match="sequence 2: cents"):
        only.collect()
    bucket.put("milk", b'{"cents": 120}')
    again = table(bucket, schema="_key string, cents bigint", deletes="false", **typed)
    assert {tuple(row) for row in again.collect()} == {("tea", 350), ("milk", 120)}


def test_headers_and_chosen_columns(jet: JetStream, make_bucket: Make, table: Read) -> None:
    bucket = make_bucket()
    jet.publish(f"$KV.{bucket.bucket}.a", b"1", headers={"By": "ada"})
    assert table(bucket, includeHeaders="true").collect()[0]["headers"] == {"By": ["ada"]}
    assert [tuple(row) for row in table(bucket, schema="revision bigint").collect()] == [(1,)]
    with pytest.raises(PySparkException, match="there is no column 'subject'"):
        table(bucket, schema="subject string").collect()


def test_a_view_is_read_by_sql(spark: SparkSession, server: NatsServer, make_bucket: Make) -> None:
    bucket = make_bucket()
    bucket.put("a", b"1")
    bucket.delete("b")
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW kv_view USING jetstream OPTIONS"
        f" (`nats.servers` '{server.url}', bucket '{bucket.bucket}', deletes 'false')"
    )
    found = spark.sql("SELECT key, CAST(value AS STRING) value FROM kv_view").collect()
    assert [tuple(row) for row in found] == [("a", "1")]


def test_refused_reads_say_why(jet: JetStream, table: Read) -> None:
    with pytest.raises(PySparkException, match="there is no bucket 'nowhere'"):
        table("nowhere").collect()
    with pytest.raises(PySparkException, match="'stream': cannot be combined with bucket"):
        table("nowhere", stream="S")
    jet.create_stream(StreamConfig(name="KV_nobucket", subjects=["nobucket.>"]))
    with pytest.raises(PySparkException, match="stream KV_nobucket is not a bucket"):
        table("nobucket").collect()


def test_rows_are_written_into_a_bucket_by_its_stream(
    server: NatsServer, make_bucket: Make, table: Read
) -> None:
    """What the refusal of a write to a bucket advises."""
    origin, copy = make_bucket(), make_bucket()
    origin.put("a", b"1")
    columns = [f"concat('$KV.{copy.bucket}.', key) AS subject", "value AS data"]
    options = {"nats.servers": server.url, "stream": f"KV_{copy.bucket}"}
    writer = table(origin).selectExpr(*columns).write.format("jetstream").mode("append")
    writer.options(**options).save()
    assert copy.get("a").value == b"1"
    with pytest.raises(PySparkException, match="'bucket': is for reading"):
        writer.options(bucket=copy.bucket).save()
