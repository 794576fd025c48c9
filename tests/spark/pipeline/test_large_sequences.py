"""Sequences that a bigint cannot hold: the server counts to 2**64 - 1."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from js_sync import Stream
from tests.spark.patience import finished
from tests.spark.pipelines import SCHEMA, SINKS, config_of, counted
from twinstream.spark.errors import OptionError
from twinstream.spark.pipeline import land, summary
from twinstream.spark.pipeline.maintenance.compact import compact
from twinstream.spark.pipeline.maintenance.replay import replay
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.runner import run
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FIRST = 2**63 - 2
"""The read crosses the border between the two types."""
SEQS = [FIRST + at for at in range(5)]

Fill = Callable[..., None]


@pytest.fixture
def large(make_stream: Callable[..., Stream], fill: Fill) -> Stream:
    """A stream with such sequences; file streams lose messages from 2**62 on, so not in a file."""
    stream = make_stream(first_seq=FIRST, storage="memory")
    fill(stream, [{"id": at} for at in range(5)])
    return stream


@pytest.mark.parametrize("mode", ["direct", "consumer"])
def test_decimals_hold_them(large: Stream, read: Callable[..., DataFrame], mode: str) -> None:
    rows = read(large.name, uint64="decimal", readMode=mode)
    assert dict(rows.dtypes)["seq"] == "decimal(20,0)"
    assert sorted(int(row["seq"]) for row in rows.collect()) == SEQS
    start = json.dumps({large.name: SEQS[3]})
    rows = read(
        large.name,
        valueFormat="json",
        jsonSchema=json.dumps(SCHEMA),
        uint64="decimal",
        readMode=mode,
        startingOffsets=start,
    )
    found = {int(row["_seq"]): row["id"] for row in rows.select("_seq", "id").collect()}
    assert found == {SEQS[3]: 3, SEQS[4]: 4}


def test_a_bigint_is_refused_by_the_name_of_the_option(
    large: Stream, read: Callable[..., DataFrame]
) -> None:
    with pytest.raises(PySparkException, match="set uint64=decimal"):
        read(large.name).collect()
    rows = read(large.name, schema="data binary").collect()
    assert len(rows) == 5, "without the sequence nothing is in the way"
    end = json.dumps({large.name: 2**63})
    assert [row["seq"] for row in read(large.name, endingOffsets=end).collect()] == SEQS[:2]


def test_streaming_query_continues_beyond_the_border(
    spark: SparkSession, server: NatsServer, large: Stream, tmp_path: Path
) -> None:
    reader = spark.readStream.format("jetstream").option("nats.servers", server.url)
    rows = reader.options(
        stream=large.name, startingOffsets="earliest", uint64="decimal", maxMessagesPerTrigger="2"
    ).load()
    writer = (
        rows.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
    )
    finished(lambda: writer.start(str(tmp_path / "out")))
    found = spark.read.parquet(str(tmp_path / "out")).select("seq").collect()
    assert sorted(int(row["seq"]) for row in found) == SEQS


def test_a_landing_has_them(
    spark: SparkSession, server: NatsServer, large: Stream, fill: Fill, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"servers": server.url, "stream": large.name, "path": str(tmp_path)}
    with pytest.raises((PySparkException, OptionError), match="set uint64=decimal"):
        land(spark, **given, table="refused")
    given["options"] = {"uint64": "decimal"}
    report = land(spark, **given, table="orders")
    assert (report.messages, report.first_seq, report.last_seq) == (5, SEQS[0], SEQS[-1])
    fill(large, [b""])
    assert land(spark, **given, table="orders").messages == 1
    counts = summary(spark, str(tmp_path / "orders"))
    assert max(each.last_seq for each in counts) == SEQS[-1] + 1


@pytest.mark.parametrize("sink", SINKS)
def test_a_pipeline_lands_and_compares_them(
    spark: SparkSession,
    server: NatsServer,
    large: Stream,
    fill: Fill,
    tmp_path: Path,
    sink: str,
) -> None:
    text = (
        f'stream = "{large.name}"\nname = "orders"\ntable = "orders"\nformat = "json"\n'
        'schema = "order.json"\noptions = { uint64 = "decimal" }'
    )
    config = config_of(tmp_path, sink, server.url, text)
    assert run(spark, config, once=True) == {}
    fill(large, [{"id": 5}, {"id": 6}])
    assert run(spark, config, once=True) == {}
    for _ in range(2):
        (verdict,) = verify(config)
        assert (verdict.problems, verdict.rows, verdict.held) == ([], 7, 7)
        assert counted(tmp_path / "lake" / "orders", sink) == (7, 7)
        replay(spark, config, config.sources[0], SEQS[-1], None)
        list(compact(config))
