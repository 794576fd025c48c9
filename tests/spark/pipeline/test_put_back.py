"""Streams whose server was restored to an earlier copy of its files, and that have grown since.

Their time of creation is the same, and the sequences behind the copy are given a second time.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from attrs import evolve
from pyspark.errors import StreamingQueryException

from js_sync import JetStream, Stream
from tests.spark.patience import finished
from tests.spark.pipelines import config_of, counted
from tests.unhurried import connected
from twinstream.spark.client.retry import through
from twinstream.spark.errors import CheckpointError, DataLossError
from twinstream.spark.pipeline import land
from twinstream.spark.pipeline.maintenance.replay import replay
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.release import release_of
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.settings.config import PipelineConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.state.source_state import journal_of
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[..., Stream]
Fill = Callable[..., None]
PutBack = Callable[[], contextlib.AbstractContextManager[None]]


@pytest.fixture
def server(server_factory: Callable[..., NatsServer]) -> NatsServer:
    """A server of the test's own."""
    return server_factory()


@pytest.fixture
def jet(server: NatsServer) -> Iterator[JetStream]:
    with connected(server.url) as nc:
        yield nc.jetstream()


@pytest.fixture
def put_back(server: NatsServer, jet: JetStream, tmp_path: Path) -> PutBack:
    """Puts the server back, behind a block, to what it was before the block."""

    def start() -> None:
        server.restart()
        through(jet.account_info, 60)  # the connection is made anew

    @contextlib.contextmanager
    def back() -> Iterator[None]:
        server.kill()
        shutil.copytree(server.store_dir, tmp_path / "copy")
        start()
        yield
        server.kill()
        shutil.rmtree(server.store_dir)
        shutil.copytree(tmp_path / "copy", server.store_dir)
        start()

    return back


def config_for(stream: Stream, server: NatsServer, folder: Path, more: str) -> PipelineConfig:
    text = f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\ncommit = "{more}"'
    return config_of(folder, "parquet", server.url, text)


def test_continued_query_notices_it(
    spark: SparkSession,
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    put_back: PutBack,
    tmp_path: Path,
) -> None:
    def go_on() -> None:
        reader = spark.readStream.format("jetstream").option("nats.servers", server.url)
        rows = reader.options(stream=stream.name, maxMessagesPerTrigger="4").load()
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c"))
        finished(writer.trigger(availableNow=True).start)

    stream = make_stream()
    fill(stream, [b""] * 3)
    with put_back():
        go_on()
        fill(stream, [b""] * 6)
        go_on()
    fill(stream, [b""] * 9)
    with pytest.raises(StreamingQueryException, match="it was restored to an earlier state"):
        go_on()


def test_continued_landing_notices_it(
    spark: SparkSession,
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    put_back: PutBack,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [b""] * 3)
    given = {"servers": server.url, "stream": stream.name, "path": str(tmp_path / "lake")}
    with put_back():
        fill(stream, [b""] * 3)
        assert land(spark, **given).messages == 6
    fill(stream, [b""] * 6)
    with pytest.raises(DataLossError, match="it was restored to an earlier state"):
        land(spark, **given)


def test_a_pipeline_that_purges_loses_nothing(
    spark: SparkSession,
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    put_back: PutBack,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [b""] * 5)
    config = config_for(stream, server, tmp_path, "purge")
    with put_back():
        fill(stream, [b""] * 5)
        assert run(spark, config, once=True) == {}
        assert stream.info().state.messages == 0
    fill(stream, [b""] * 10)
    assert "was restored to an earlier state" in run(spark, config, once=True)["orders"]
    assert stream.info().state.messages == 15, "nothing was purged"
    (verdict,) = verify(config)
    assert "5 messages of the stream are in no table: 6, 7, 8, 9, 10" in verdict.problems
    with pytest.raises(DataLossError, match="was restored to an earlier state"):
        replay(spark, config, config.sources[0], 1, 11)
    assert counted(tmp_path / "lake" / "orders", "parquet", "seq") == (10, 10)


def test_a_purge_finds_messages_by_their_time_too(
    spark: SparkSession,
    server: NatsServer,
    jet: JetStream,
    make_stream: Make,
    fill: Fill,
    put_back: PutBack,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [b""] * 2)
    config = config_for(stream, server, tmp_path, "none")
    with put_back():
        fill(stream, [b""] * 2)
        assert run(spark, config, once=True) == {}
    fill(stream, [b""] * 4)
    log = journal_of(Folders(config.path), config.sources[0])
    entry = log.entries()[0]
    (source,) = config.sources
    purge = release_of(evolve(source, commit="purge"), open_sink(config), log)
    with pytest.raises(CheckpointError, match=r"nothing was purged: stream .* restored"):
        purge.release(jet, entry)
    # As an older release wrote it.
    with pytest.raises(
        CheckpointError, match="has 2 messages, the first with sequence 3, that no table"
    ):
        purge.release(jet, evolve(entry, mark=None))
    options = {**source.options, "failOnDataLoss": "false"}
    easy = evolve(source, commit="purge", options=options)
    assert release_of(easy, open_sink(config), log).release(jet, entry) == 0
    assert stream.info().state.messages == 6
