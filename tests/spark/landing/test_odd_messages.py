"""Messages that no client would send: Spark reads them, or keeps them as dead letters."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from js_sync import JetStream, Stream
from tests.odd_messages import ODD_MESSAGES, publish_raw
from twinstream.lake.task_report import files_by_table
from twinstream.spark.landing.land_job import LandJob
from twinstream.spark.landing.split_tables import TableNames
from twinstream.spark.pipeline import land
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import SequenceRange
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Make = Callable[..., Stream]
Read = Callable[..., "DataFrame"]

SCHEMA = json.dumps({"type": "object", "properties": {"id": {"type": "integer"}}})
GOOD = b'{"id": 1}'


@pytest.fixture
def odd(server: NatsServer, jet: JetStream, make_stream: Make) -> Stream:
    """A stream of odd messages, then an ordinary one."""
    stream = make_stream()
    subject = f"{stream.name.lower()}.odd"
    publish_raw(server.port, subject)
    jet.publish(subject, GOOD)
    return stream


@pytest.mark.parametrize("mode", ["direct", "consumer"])
def test_raw_rows_hold_every_payload(odd: Stream, read: Read, mode: str) -> None:
    rows = read(odd.name, includeHeaders="true", readMode=mode).orderBy("seq").collect()
    assert [bytes(row["data"]) for row in rows] == [
        *(each.data for each in ODD_MESSAGES.values()),
        GOOD,
    ]
    kept = dict(zip(ODD_MESSAGES, (row["headers"] for row in rows), strict=False))
    assert kept["none"] is None
    assert kept["ordinary"] == {"A": ["1"]}
    assert kept["another protocol"]["A"] == ["1"]
    assert kept["another protocol"][""][0].startswith("HTTP/1.1 200 OK\r\n")
    assert kept["four bytes that are not text"][""][0].startswith("\\xff\\xfe")


@pytest.mark.parametrize("mode", ["direct", "consumer"])
def test_unreadable_headers_are_a_reason_where_headers_are_wanted(
    server: NatsServer, odd: Stream, tmp_path: Path, mode: str
) -> None:
    names = TableNames(table="rows", dead_letters="dead")
    found: dict[str, dict[int, dict[str, object]]] = {}
    for wanted in ("true", "false"):
        options = {
            "nats.servers": server.url,
            "stream": odd.name,
            "valueFormat": "json",
            "jsonSchema": SCHEMA,
            "includeHeaders": wanted,
        }
        folder = tmp_path / wanted
        folder.mkdir()
        landing = LandJob(SourceOptions.parse(options), names, folder, None)
        last = odd.info().state.last_seq
        files = files_by_table([landing.land(SequenceRange(odd.name, 1, last + 1, mode))])
        rows = {
            table: {row["_seq"]: row for row in pq.read_table(file.path).to_pylist()}
            for table, (file,) in files.items()
        }
        assert len(rows["rows"]) + len(rows["dead"]) == last
        assert rows["rows"][last]["id"] == 1
        found[wanted] = rows["dead"]
    seq = list(ODD_MESSAGES).index("another protocol") + 1
    row = found["true"][seq]
    assert str(row["_error"]).startswith("headers: not a NATS header block: b'HTTP/1.1")
    assert row["_raw"] == b"payload"
    # Without headers, only the payload is judged.
    assert str(found["false"][seq]["_error"]).startswith("not JSON")


def test_a_pipeline_lands_them_all(
    spark: SparkSession, server: NatsServer, odd: Stream, tmp_path: Path
) -> None:
    report = land(spark, servers=server.url, stream=odd.name, path=tmp_path / "lake")
    assert report.messages == len(ODD_MESSAGES) + 1
