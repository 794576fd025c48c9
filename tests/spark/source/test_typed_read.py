"""Typed reads through Spark: JSON of a known shape, and events that a real server sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from js_sync import JetStream, Stream
from twinstream.models import ConsumerConfig

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Make = Callable[..., Stream]
Fill = Callable[..., None]
Read = Callable[..., "DataFrame"]

SCHEMA = json.dumps(
    {
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"type": "integer"},
            "at": {"type": "string", "format": "date-time"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    }
)
BESIDE = [*("_extra", "_stream", "_subject", "_seq", "_timestamp", "_operation", "_error", "_raw")]


def test_columns_after_a_json_schema(make_stream: Make, fill: Fill, read: Read) -> None:
    stream = make_stream()
    fill(
        stream,
        [
            {"id": 1, "at": "2024-01-02T03:04:05.678901234Z", "labels": {"a": "b"}},
            {"id": 2, "new": True},
            {"id": "three"},
            b"four",
        ],
    )
    rows = read(stream.name, valueFormat="json", jsonSchema=SCHEMA, minPartitions="2")
    assert rows.columns == ["id", "at", "labels", *BESIDE]
    assert rows.schema.simpleString().startswith(
        "struct<id:bigint,at:timestamp,labels:map<string,string>,_extra:string"
    )
    one, two, three, four = rows.orderBy("_seq").collect()
    assert (one["id"], one["labels"], one["_error"], one["_raw"]) == (1, {"a": "b"}, None, None)
    assert rows.filter("id = 1").selectExpr("unix_micros(at) t").collect()[0]["t"] % 10**6 == 678901
    assert (two["id"], two["_extra"]) == (2, '{"new":true}')
    assert three["id"] is None
    assert three["_error"] == "id: expected an integer, got text 'three'"
    assert bytes(three["_raw"]) == b'{"id": "three"}'
    assert four["_error"].startswith("not JSON")
    assert four["_seq"] == 4


def test_each_mode_treats_misfits_its_way(make_stream: Make, fill: Fill, read: Read) -> None:
    stream = make_stream()
    fill(stream, [{"id": 1}, b"broken", {"id": 3}])
    options = {"valueFormat": "json", "jsonSchema": SCHEMA}
    kept = read(stream.name, mode="DROPMALFORMED", **options).select("id").collect()
    assert [row["id"] for row in kept] == [1, 3]
    renamed = read(stream.name, columnNameOfCorruptRecord="_bad", **options)
    assert [bytes(row["_bad"]) for row in renamed.filter("_bad is not null").collect()] == [
        b"broken"
    ]
    with pytest.raises(PySparkException, match=f"stream {stream.name}, sequence 2: not JSON"):
        read(stream.name, mode="FAILFAST", **options).collect()


def test_columns_after_a_spark_schema(make_stream: Make, fill: Fill, read: Read) -> None:
    stream = make_stream()
    fill(stream, [{"id": 1, "deep": {"x": [1]}, "more": 1}, {"id": 2, "deep": "text"}])
    rows = read(stream.name, schema="deep string, id int, _seq bigint", valueFormat="json")
    found = [tuple(row) for row in rows.orderBy("_seq").collect()]
    assert found == [('{"x":[1]}', 1, 1), ("text", 2, 2)]
    with pytest.raises(PySparkException, match="needs a schema"):
        read(stream.name, valueFormat="json")


def test_a_read_without_columns_of_the_payload(make_stream: Make, fill: Fill, read: Read) -> None:
    stream = make_stream()
    fill(stream, [{"id": 1}, b"broken"])
    columns = "_seq bigint, _extra string, _raw binary"
    rows = read(stream.name, schema=columns, valueFormat="json").orderBy("_seq").collect()
    assert [tuple(row) for row in rows] == [(1, '{"id":1}', None), (2, None, b"broken")]


def test_a_projection_has_the_same_misfits(make_stream: Make, fill: Fill, read: Read) -> None:
    stream = make_stream()
    fill(stream, [{"id": "x", "at": "2024-01-01T00:00:00Z"}])
    options = {"valueFormat": "json", "jsonSchema": SCHEMA}
    row = read(stream.name, schema="at timestamp, _error string", **options).collect()[0]
    assert row["at"] is None
    assert row["_error"] == "id: expected an integer, got text 'x'"


def test_events_of_a_real_server(jet: JetStream, make_stream: Make, read: Read) -> None:
    events = make_stream(subjects=["$JS.EVENT.ADVISORY.>", "$JS.EVENT.METRIC.>"])
    stream = make_stream()
    jet.publish(f"{stream.name.lower()}.a", b"1")
    consumer = stream.create_consumer(
        ConsumerConfig(durable_name="w", ack_policy="explicit", max_deliver=2, sample_freq="100")
    )
    for message in consumer.fetch(1, timeout=5):
        message.nak()
    for message in consumer.fetch(1, timeout=5):
        message.term("no use")
    jet.publish(f"{stream.name.lower()}.a", b"2")
    for message in consumer.fetch(1, timeout=5):
        message.double_ack()
    stream.delete_consumer("w")
    rows = read(events.name, valueFormat="advisory").persist()
    misfits = rows.filter("_error is not null").collect()
    assert misfits == []
    assert rows.filter("_extra is not null").collect() == []
    kinds = {row["kind"] for row in rows.select("kind").distinct().collect()}
    wanted = {"api_audit", "stream_action", "consumer_action", "nak", "terminated", "consumer_ack"}
    assert wanted <= kinds
    ours = rows.filter(f"terminated.stream = '{stream.name}'").select("terminated.*").collect()
    assert [(row["consumer"], row["stream_seq"], row["reason"]) for row in ours] == [
        ("w", 1, "no use")
    ]
    acks = rows.filter(f"consumer_ack.stream = '{stream.name}'").select("consumer_ack.ack_time")
    assert acks.collect()[0]["ack_time"] > 0
    filled = rows.filter("kind = 'nak'").selectExpr("nak is not null a", "terminated is null b")
    assert {tuple(row) for row in filled.collect()} == {(True, True)}
    rows.unpersist()
    jet.delete_stream(events.name)


MARKERS = [
    ({"KV-Operation": "DEL"}, "DEL"),
    ({"KV-Operation": "PURGE", "Nats-Rollup": "sub"}, "PURGE"),
    ({"Nats-Marker-Reason": "MaxAge"}, "PURGE"),
    ({"Nats-Marker-Reason": "Purge"}, "PURGE"),
    ({"Nats-Marker-Reason": "Remove"}, "DEL"),
]


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED", "FAILFAST"])
def test_markers_of_deleted_keys_are_rows(
    jet: JetStream, make_stream: Make, read: Read, mode: str
) -> None:
    stream = make_stream(allow_rollup_hdrs=True)
    for at, (headers, _) in enumerate(MARKERS):
        subject = f"{stream.name.lower()}.{at}"
        jet.publish(subject, b'{"id": 1}')
        jet.publish(subject, b"", headers=headers)
    options = {"valueFormat": "json", "jsonSchema": SCHEMA, "mode": mode}
    found = read(stream.name, **options).filter("_operation IS NOT NULL").orderBy("_seq")
    rows = found.select("id", "_subject", "_operation", "_extra", "_error", "_raw").collect()
    assert [row["_operation"] for row in rows] == [operation for _, operation in MARKERS]
    assert [row["_subject"].rpartition(".")[2] for row in rows] == [*"01234"]
    for row in rows:
        assert (row["id"], row["_extra"], row["_error"], row["_raw"]) == (None,) * 4
    assert read(stream.name, schema="id bigint, _seq bigint", valueFormat="json").count() == 9, (
        "the purge of a key removed what the key had"
    )


def test_other_messages_without_a_payload_do_not_fit(
    jet: JetStream, make_stream: Make, read: Read
) -> None:
    stream = make_stream()
    subject = f"{stream.name.lower()}.a"
    for headers in (None, {"KV-Operation": "SOMETHING"}, {"Nats-Marker-Reason": ""}, {"A": "b"}):
        jet.publish(subject, b"", headers=headers)
    jet.publish(subject, b"no JSON", headers={"KV-Operation": "DEL"})
    rows = read(stream.name, valueFormat="json", jsonSchema=SCHEMA).orderBy("_seq").collect()
    assert [row["_operation"] for row in rows] == [None] * 5
    assert all(row["_error"].startswith("not JSON") for row in rows)
