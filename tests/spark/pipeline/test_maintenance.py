"""Commands that work on the tables while a pipeline runs, and after it was killed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from js_sync import Stream
from tests.spark.pipelines import SINKS, config_of, counted, files_of
from twinstream.lake.plan import Plan
from twinstream.spark.errors import CheckpointError
from twinstream.spark.pipeline.maintenance.compact import compact
from twinstream.spark.pipeline.maintenance.replay import replay
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.pipeline_events import Happening, Landed
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.settings.config import PipelineConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.state.source_state import journal_of
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[..., Stream]
Fill = Callable[..., None]
Config = Callable[..., PipelineConfig]


@pytest.fixture
def config_for(server: NatsServer, tmp_path: Path) -> Config:
    """Returns a pipeline that lands one stream in batches of five."""

    def of(stream: Stream, sink: str, more: str = "") -> PipelineConfig:
        source = f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\nmax_messages = 5\n'
        return config_of(tmp_path, sink, server.url, source + more)

    return of


@pytest.mark.parametrize("sink", SINKS)
def test_tables_are_looked_after_while_the_pipeline_runs(
    sink: str, spark: SparkSession, make_stream: Make, fill: Fill, config_for: Config
) -> None:
    stream = make_stream()
    fill(stream, [b"x"] * 60)
    config = config_for(stream, sink, 'commit = "bookmark"')
    done: list[str] = []
    errors: list[Exception] = []
    landed: list[int] = []

    def work() -> None:
        try:
            done.extend(each.table for each in compact(config))
            replay(spark, config, config.sources[0], 1, 5)
            done.append("replayed")
            vacuum(config, keep=0)
            done.append("vacuumed")
        except Exception as error:
            errors.append(error)

    commands = threading.Thread(target=work)

    def follow(happening: Happening) -> None:
        if isinstance(happening, Landed):
            landed.append(happening.entry.batch)
            if len(landed) == 3:
                commands.start()

    assert run(spark, config, once=True, tell=follow) == {}
    commands.join()
    assert errors == []
    assert done[0] == "orders"
    assert done[-2:] == ["replayed", "vacuumed"]
    assert landed == list(range(12))
    table = config.path / "orders"
    assert counted(table, sink, "seq") == (60, 60)
    assert len(files_of(table, sink)) < 12
    assert [each.problems for each in verify(config)] == [[]]
    fill(stream, [b"x"] * 5)
    assert run(spark, config, once=True) == {}
    assert counted(table, sink, "seq") == (65, 65)


def test_tables_with_a_part_of_a_batch_are_left_alone(
    spark: SparkSession, make_stream: Make, fill: Fill, config_for: Config
) -> None:
    stream = make_stream()
    fill(stream, [b"x"] * 5)
    config = config_for(stream, "parquet")
    assert run(spark, config, once=True) == {}
    journal_of(Folders(config.path), config.sources[0]).planned(
        Plan(batch=1, start=6, end=7, created="today")
    )
    with pytest.raises(CheckpointError, match="a batch of source orders was interrupted"):
        list(compact(config))
