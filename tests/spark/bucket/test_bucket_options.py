"""Reads of a bucket: the options, the columns, and what rows the revisions become."""

from __future__ import annotations

import json
import pickle
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve
from pyspark.sql.types import StructType

from twinstream.core.read.arrow_page import ArrowPage
from twinstream.models import DiscardPolicy, StreamConfig, StreamInfo, decode
from twinstream.spark.bucket.key_range import KeyRange, Keys, ranges_of_history, ranges_of_keys
from twinstream.spark.bucket.reader import BucketReader
from twinstream.spark.data_source import JetStreamDataSource
from twinstream.spark.decode.sql_names import sql_name
from twinstream.spark.errors import DecodeFailure, OptionError
from twinstream.spark.sink.options import SinkOptions
from twinstream.spark.source.batcher import Batcher
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.read_columns import ReadColumns
from twinstream.spark.source.refused_reader import RefusedReader
from twinstream.spark.source.stream_retention import StreamRetention
from twinstream.spark.source.stream_state import StreamState

LEAST = {"nats.servers": "nats://127.0.0.1:4222", "bucket": "prices"}
SCHEMA = json.dumps({"type": "object", "properties": {"id": {"type": "integer"}}})
TYPED = {"valueFormat": "json", "jsonSchema": SCHEMA}


def parse(**given: str) -> SourceOptions:
    return SourceOptions.parse(LEAST | given)


def test_options_have_defaults() -> None:
    options = parse()
    assert options.streams == ("KV_prices",)
    bucket = options.bucket
    assert bucket is not None
    assert (bucket.name, bucket.keys, bucket.history, bucket.deletes) == (
        *("prices", (), False, True),
    )
    assert bucket.subjects("$KV.prices.") == ("$KV.prices.>",)


def test_filters_of_keys_become_filters_of_subjects() -> None:
    options = parse(keys="tea.>, tea.green,coffee.*", history="TRUE", deletes="false")
    bucket = options.bucket
    assert bucket is not None
    assert bucket.keys == ("tea.>", "coffee.*"), "what another filter covers is left out"
    assert bucket.subjects("$KV.prices.") == ("$KV.prices.tea.>", "$KV.prices.coffee.*")
    assert (bucket.history, bucket.deletes) == (True, False)


@pytest.mark.parametrize(
    ("given", "option", "reason"),
    [
        ({"bucket": "a.b"}, "bucket", "one or more of the characters"),
        ({"stream": "S"}, "stream", "cannot be combined with bucket"),
        ({"subscribe": "S"}, "subscribe", "cannot be combined with bucket"),
        ({"subject": "a.>"}, "subject", "give filters of keys by the option keys"),
        ({"keys": "te*"}, "keys", "a wildcard must be a whole token"),
        ({"keys": "a..b"}, "keys", "two dots in a row"),
        ({"keys": "a,a"}, "keys", "'a' twice"),
        ({"history": "2"}, "history", "true or false"),
        ({"deletes": "no"}, "deletes", "true or false"),
        ({"key": "a"}, "key", "did you mean 'keys'"),
        ({"consumer": "c"}, "consumer", "is not known"),
        ({"valueFormat": "advisory"}, "valueFormat", "not for buckets"),
        ({"startingOffsets": '{"KV_prices": 3}'}, "startingOffsets", "is not read|is missing"),
        (
            {"startingOffsets": '{"prices": 9}', "endingOffsets": '{"prices": 3}'},
            "endingOffsets",
            "3 is before startingOffsets",
        ),
    ],
)
def test_each_mistake_names_its_option(given: dict[str, str], option: str, reason: str) -> None:
    with pytest.raises(OptionError, match=reason) as caught:
        parse(**given)
    assert caught.value.option == option


@pytest.mark.parametrize("option", ["keys", "history", "deletes"])
def test_options_of_buckets_need_one(option: str) -> None:
    with pytest.raises(OptionError, match="needs the option bucket"):
        SourceOptions.parse({"nats.servers": "h", "stream": "S", option: "true"})


def test_bounds_call_the_bucket_by_its_name() -> None:
    state = StreamState("KV_prices", first=5, next=9, created="")
    start = parse(startingOffsets='{"prices": 7}').start
    assert start is not None
    assert start.resolve(state, lambda *_: None) == 7
    times = parse(startingOffsetsByTimestamp='{"prices": 1000}').start
    assert times is not None
    assert times.resolve(state, lambda stream, _: 6 if stream == "KV_prices" else None) == 6


@pytest.mark.parametrize("given", [{"endingOffsets": '{"prices": 3}'}, {"endingTimestamp": "2000"}])
def test_an_end_needs_the_history(given: dict[str, str]) -> None:
    options = parse(**given)
    with pytest.raises(OptionError, match="needs history=true") as caught:
        BucketReader(options, ReadColumns(options).columns)
    assert caught.value.option in given
    for fine in (parse(history="true", **given), parse(endingOffsets="latest")):
        BucketReader(fine, ReadColumns(fine).columns)


@pytest.mark.parametrize("given", [{"history": "true"}, {"endingOffsets": "latest"}])
def test_a_streaming_query_refuses_what_is_for_a_batch(given: dict[str, str]) -> None:
    reader = JetStreamDataSource(LEAST | given).streamReader(StructType())
    assert isinstance(reader, RefusedReader)
    assert "is for a batch" in str(reader.error)


def test_a_write_is_refused() -> None:
    with pytest.raises(OptionError, match=r"is for reading; .* stream=KV_prices") as caught:
        SinkOptions.parse(LEAST)
    assert caught.value.option == "bucket"


def columns(**given: str) -> pa.Schema:
    return ReadColumns(parse(**given)).columns


def test_columns() -> None:
    assert sql_name(pa.struct(columns())) == (
        "struct<key:string,value:binary,revision:bigint,operation:string,time:timestamp>"
    )
    assert columns(includeHeaders="true").names[-1] == "headers"
    assert columns(uint64="decimal").field("revision").type == pa.decimal128(20, 0)
    assert columns(**TYPED).names == [
        *("id", "_extra", "_key", "_revision", "_operation", "_time", "_error", "_raw")
    ]


MESSAGES: list[tuple[bytes, bytes, bytes]] = [
    (b"a", b"", b'{"id": 1}'),
    (b"b", b"KV-Operation: DEL\r\n", b'{"id": 2}'),
    (b"c", b"KV-Operation: PURGE\r\nNats-Rollup: sub\r\n", b""),
    (b"d", b"Nats-Marker-Reason: MaxAge\r\nNats-TTL: 1s\r\n", b""),
    (b"e", b"KV-Operation: PUT\r\n", b"no JSON"),
    (b"f", b"KV-Operation: ANOTHER\r\n", b"x"),
    (b"g", b"Nats-Marker-Reason: Remove\r\n", b""),
    (b"h", b"Note: KV-Operation\r\n", b""),
]
OPERATIONS = ["PUT", "DELETE", "PURGE", "EXPIRED", "PUT", "DELETE", "DELETE", "PUT"]


def rows(prefix: bytes = b"$KV.prices.", **given: str) -> list[dict[str, Any]]:
    """The rows of one message of each kind, whose revisions are from 1 up."""
    page = ArrowPage(
        pa.array(range(1, len(MESSAGES) + 1), pa.int64()),
        pa.array([prefix + key for key, _, _ in MESSAGES], pa.binary()),
        pa.array([10**9] * len(MESSAGES), pa.timestamp("ns", "UTC")),
        pa.array([headers and b"NATS/1.0\r\n" + headers for _, headers, _ in MESSAGES]),
        pa.array([data for _, _, data in MESSAGES], pa.binary()),
    )
    options = parse(**given)
    assert options.bucket is not None
    options = evolve(options, bucket=evolve(options.bucket, prefix="$KV.prices."))
    return Batcher(options, ReadColumns(options).columns).build(page, "KV_prices").to_pylist()


def test_operations_of_revisions() -> None:
    found = rows()
    assert [row["operation"] for row in found] == OPERATIONS
    assert [row["key"] for row in found] == [*"abcdefgh"]
    assert [row["revision"] for row in found] == [*range(1, 9)]
    values = [row["value"] for row in found]
    assert values == [b'{"id": 1}', None, None, None, b"no JSON", None, None, b""]
    assert rows(b"$KV.origin.")[0]["key"] == "$KV.origin.a", "no key of this bucket"


def test_markers_may_be_left_out() -> None:
    assert [row["key"] for row in rows(deletes="false")] == ["a", "e", "h"]


def test_typed_values() -> None:
    found = rows(**TYPED)
    assert [row["id"] for row in found] == [1, *[None] * 7], "a marker's payload means nothing"
    assert [row["_operation"] for row in found] == OPERATIONS
    bad = [row["_key"] for row in found if row["_error"]]
    assert bad == ["e", "h"], "an empty value is no JSON object"
    assert [row["_raw"] for row in found] == [*[None] * 4, b"no JSON", None, None, b""]
    given = TYPED | {"mode": "DROPMALFORMED"}
    assert [row["_key"] for row in rows(**given)] == ["a", "b", "c", "d", "f", "g"]
    assert [row["_key"] for row in rows(deletes="false", **given)] == ["a"]
    with pytest.raises(DecodeFailure, match="sequence 5"):
        rows(**TYPED | {"mode": "FAILFAST"})
    renamed = rows(columnNameOfCorruptRecord="_value", **TYPED)
    assert [row["_value"] for row in renamed if row["_error"]] == [b"no JSON", b""]


def test_what_a_bucket_removes_by_design() -> None:
    stream = StreamConfig(
        name="KV_b", max_age=timedelta(hours=1), max_msgs_per_subject=1, max_bytes=9, max_msgs=9
    )
    keeping = StreamRetention.of(stream, is_bucket=True)
    assert (keeping.replaces, keeping.expires, keeping.max_age) == (True, True, 0)
    assert (keeping.max_bytes, keeping.max_msgs) == (9, 9), "these remove what keys hold"
    full = evolve(stream, discard=DiscardPolicy.NEW)
    assert StreamRetention.of(full, is_bucket=True).max_bytes == 0


def test_a_stream_that_is_no_bucket_is_refused() -> None:
    info = decode(
        {
            "config": {"name": "KV_prices", "subjects": ["orders.>"]},
            "created": "2026-01-01T00:00:00Z",
            "state": {
                "messages": 0,
                "bytes": 0,
                "first_seq": 0,
                "last_seq": 0,
                "consumer_count": 0,
            },
        },
        StreamInfo,
    )
    with pytest.raises(OptionError, match=r"lack \$KV.prices.>; read it by the option stream"):
        StreamState.of("KV_prices", info, parse().bucket)
    assert StreamState.of("KV_prices", info).key_prefix == ""


STATE = StreamState("KV_prices", first=1, next=1001, created="monday", messages=1000)


def keys(count: int, step: int = 10) -> Keys:
    return Keys.of({b"$KV.prices.%d" % at: at * step for at in range(1, count + 1)}, 1)


def test_tasks_get_equally_many_keys() -> None:
    found = ranges_of_keys(parse(minPartitions="3"), STATE, keys(100), "direct")
    assert [(each.start, each.end) for each in found] == [(10, 331), (340, 661), (670, 1001)]
    assert [len(each.keys) for each in found] == [33, 33, 34]
    assert found[0].keys[10] == b"$KV.prices.1"
    shipped: KeyRange = pickle.loads(pickle.dumps(found[2]))
    assert shipped.keys == found[2].keys
    assert len(ranges_of_keys(parse(minPartitions="30"), STATE, keys(4), "direct")) == 4
    assert ranges_of_keys(parse(), STATE, keys(0), "direct") == []
    assert ranges_of_keys(parse(maxMessagesPerPartition="500"), STATE, keys(100), "direct")[1]


def test_tasks_share_the_history() -> None:
    options = parse(minPartitions="2", history="true")
    found = ranges_of_history(options, STATE, keys(100), 1, 1001, "direct")
    assert [(each.start, each.end) for each in found] == [(1, 501), (501, 1001)]
    assert [len(each.keys) for each in found] == [50, 50]
    sparse = ranges_of_history(options, STATE, keys(1), 1, 1001, "direct")
    assert [each.keys for each in sparse] == [{10: b"$KV.prices.1"}, {}]
    assert ranges_of_history(options, STATE, keys(0), 5, 5, "direct") == []


def test_keys_from_a_revision_on() -> None:
    found = Keys.of({b"a": 3, b"b": 1, b"c": 9}, 3)
    assert (found.revisions, found.subjects) == ([3, 9], [b"a", b"c"])
