"""A source that lands other subjects than before."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from js_sync import Stream
from tests.spark.pipelines import SINKS, config_of, counted
from twinstream.spark.pipeline.maintenance.replay import replay
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.settings.config import PipelineConfig
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[..., Stream]
Fill = Callable[..., None]
Landing = Callable[..., PipelineConfig]


@pytest.fixture
def landing(server: NatsServer, tmp_path: Path) -> Landing:
    """Returns a pipeline that lands some subjects of a stream."""

    def of(stream: Stream, sink: str, *ends: str, more: str = "") -> PipelineConfig:
        subjects = json.dumps([f"{stream.name.lower()}.{end}" for end in ends])
        source = f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\n{more}\n'
        return config_of(tmp_path, sink, server.url, f"{source}subjects = {subjects}")

    return of


@pytest.mark.parametrize("sink", SINKS)
def test_source_continues_with_more_subjects(
    sink: str,
    spark: SparkSession,
    make_stream: Make,
    fill: Fill,
    landing: Landing,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [b"x"] * 30)
    table = tmp_path / "lake" / "orders"
    narrow = landing(stream, sink, "a", more='commit = "bookmark"')
    assert run(spark, narrow, once=True) == {}
    assert counted(table, sink, "seq") == (10, 10)

    wide = landing(stream, sink, "a", "b", more='commit = "bookmark"')
    error = run(spark, wide, once=True)["orders"]
    assert "messages that were skipped would not be landed" in error
    assert "--accept-subjects" in error
    assert counted(table, sink, "seq") == (10, 10)

    assert run(spark, wide, once=True, accept_subjects=True) == {}
    assert run(spark, wide, once=True) == {}, "accepted once and for all, before a batch is landed"
    fill(stream, [b"x"] * 30)
    assert stream.get_consumer("orders-orders").info().num_pending == 20
    assert run(spark, wide, once=True) == {}
    assert counted(table, sink, "seq") == (30, 30)
    assert stream.get_consumer("orders-orders").info().num_pending == 0
    (verdict,) = verify(wide)
    assert verdict.problems == [], "the first batch had fewer subjects"

    replay(spark, wide, wide.sources[0], 1, 30)
    assert counted(table, sink, "seq") == (40, 40)
    (verdict,) = verify(wide)
    assert (verdict.problems, verdict.held) == ([], 40)
    assert run(spark, narrow, once=True, accept_subjects=True) == {}, "and with fewer"


def test_a_purge_removes_no_message_that_was_passed_over(
    spark: SparkSession, make_stream: Make, fill: Fill, landing: Landing, tmp_path: Path
) -> None:
    stream = make_stream()
    fill(stream, [b"x"] * 30)
    assert run(spark, landing(stream, "parquet", "a", more='commit = "purge"'), once=True) == {}
    assert stream.info().state.messages == 20
    wide = landing(stream, "parquet", "a", "b", more='commit = "purge"')
    error = run(spark, wide, once=True, accept_subjects=True)["orders"]
    assert "still has message 2, which the new subjects match" in error
    assert stream.info().state.messages == 20
    stream.purge(subject=f"{stream.name.lower()}.b")
    assert run(spark, wide, once=True, accept_subjects=True) == {}
    fill(stream, [b"x"] * 30)
    assert run(spark, wide, once=True) == {}
    assert stream.info().state.messages == 20
    assert counted(tmp_path / "lake" / "orders", "parquet", "seq") == (30, 30)


def test_a_source_without_a_message_may_change_its_subjects(
    spark: SparkSession, make_stream: Make, fill: Fill, landing: Landing, tmp_path: Path
) -> None:
    stream = make_stream()
    assert run(spark, landing(stream, "parquet", "a"), once=True) == {}
    fill(stream, [b"x"] * 30)
    other = landing(stream, "parquet", "b")
    assert run(spark, other, once=True, accept_subjects=True) == {}
    assert counted(tmp_path / "lake" / "orders", "parquet", "seq") == (10, 10)
    assert [each.problems for each in verify(other)] == [[]]
