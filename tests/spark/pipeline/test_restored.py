"""Streams that were restored from a backup: the same messages, another time of creation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from attrs import evolve

from js_sync import JetStream, Stream
from js_sync.backup import backup_stream, restore_stream
from tests.spark.pipelines import config_of, counted
from twinstream.spark.pipeline import land
from twinstream.spark.pipeline.maintenance.replay import replay
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.settings.config import PipelineConfig
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[..., Stream]
Fill = Callable[..., None]
Restore = Callable[[Stream], None]


@pytest.fixture
def restore(jet: JetStream, tmp_path: Path) -> Restore:
    """Copies a stream into a backup, deletes it, and brings it back."""

    def run(stream: Stream) -> None:
        created = stream.info().created
        backup_stream(jet, stream.name, tmp_path / "backup", overwrite=True)
        stream.delete()
        assert restore_stream(jet, tmp_path / "backup").info().created != created

    return run


def config_for(stream: Stream, server: NatsServer, folder: Path, more: str = "") -> PipelineConfig:
    text = f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\n{more}'
    return config_of(folder, "parquet", server.url, text)


def problems(config: PipelineConfig) -> list[str]:
    (verdict,) = verify(config)
    return verdict.problems


def test_everything_continues_with_a_restored_stream(
    spark: SparkSession,
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    restore: Restore,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [b""] * 10)
    config = config_for(stream, server, tmp_path, 'commit = "purge"')
    kept = evolve(config, sources=tuple(evolve(each, commit="none") for each in config.sources))
    given = {"servers": server.url, "stream": stream.name, "path": str(tmp_path / "landed")}
    assert run(spark, kept, once=True) == {}
    assert land(spark, **given).messages == 10
    restore(stream)
    assert problems(config) == []
    fill(stream, [b""] * 5)
    assert run(spark, kept, once=True) == {}
    assert land(spark, **given).messages == 5
    assert counted(tmp_path / "lake" / "orders", "parquet", "seq") == (15, 15)
    assert problems(config) == []
    replay(spark, config, config.sources[0], 1, None)
    assert problems(config) == [], "the batches of both are replayed"
    fill(stream, [b""])
    assert run(spark, config, once=True) == {}
    assert stream.info().state.messages == 0, "the batches of both are released"
    assert counted(tmp_path / "lake" / "orders", "parquet", "seq") == (16, 16)


def test_a_stream_without_its_mark_is_accepted_once(
    spark: SparkSession,
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    restore: Restore,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [b""] * 10)
    config = config_for(stream, server, tmp_path)
    assert run(spark, config, once=True) == {}
    stream.delete_message(10)
    restore(stream)
    fill(stream, [b""] * 5)
    error = run(spark, config, once=True)["orders"]
    assert "it may be a copy, but it has no message 10 to compare" in error
    assert "pipeline run --accept-stream" in error
    assert "failOnDataLoss" not in error
    assert run(spark, config, once=True, accept_stream=True) == {}
    assert counted(tmp_path / "lake" / "orders", "parquet", "seq") == (15, 15)
    fill(stream, [b""])
    assert run(spark, config, once=True) == {}
    assert counted(tmp_path / "lake" / "orders", "parquet", "seq") == (16, 16)
    assert problems(config) == []


def test_verify_reports_messages_landed_twice(
    spark: SparkSession,
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    restore: Restore,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [b""] * 10)
    config = config_for(stream, server, tmp_path, "options = { failOnDataLoss = false }")
    assert run(spark, config, once=True) == {}
    stream.delete_message(10)
    restore(stream)
    assert run(spark, config, once=True) == {}
    assert counted(tmp_path / "lake" / "orders", "parquet", "seq") == (19, 10)
    (problem,) = problems(config)
    assert problem.startswith("messages that batches of an earlier stream of this name also have")
    assert problem.endswith(": 1, 2, 3, 4, 5")
