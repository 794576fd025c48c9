"""Iceberg tables in a REST catalog: each message is landed exactly once, whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from js_sync import Stream
from tests.s3_server import S3Server
from tests.spark.drivers import (
    SOURCE,
    FakeEngine,
    FakeLeader,
    changed,
    journal_in,
    land_all,
)
from tests.spark.iceberg import iceberg_table, landed_in_catalog, on_iceberg
from tests.spark.pipelines import config_of
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.errors import JournalError
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.runner import run
from twinstream.testing import NatsServer

LAST = 25
BATCHES = [(1, 11), (11, 21), (21, 26)]


@pytest.fixture
def config(tmp_path: Path, s3: S3Server, bucket: ObjectFolder) -> PipelineConfig:
    made = config_of(tmp_path, "delta", "nats://127.0.0.1:1", SOURCE)
    return on_iceberg(made, s3, bucket.prefix)


@pytest.fixture
def leader() -> FakeLeader:
    return FakeLeader(LAST)


def bounds(config: PipelineConfig) -> list[tuple[int, int]]:
    return [(each.start, each.end) for each in journal_in(config).entries().values()]


def check(config: PipelineConfig, folder: Path, last: int = LAST) -> None:
    assert landed_in_catalog(config, folder) == (last, last)
    assert bounds(config)[-1][1] == last + 1


def test_a_stream_is_landed(config: PipelineConfig, leader: FakeLeader, tmp_path: Path) -> None:
    land_all(config, leader)
    assert bounds(config) == BATCHES
    check(config, tmp_path)
    leader.last = 38
    land_all(config, leader)
    check(config, tmp_path, 38)
    entry = journal_in(config).last()
    assert entry is not None
    assert (entry.messages, entry.first_seq, entry.last_seq) == (3, 36, 38)
    assert entry.bytes > 1000


def test_a_driver_that_is_overtaken_adds_nothing(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path
) -> None:
    """While its tasks run, another driver lands everything; then it goes on."""
    todo = [lambda: land_all(config, leader)]
    land_all(config, leader, engine=FakeEngine(lambda _: todo.pop()() if todo else None))
    check(config, tmp_path)
    assert bounds(config) == BATCHES


def test_columns_are_added_as_metadata(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path
) -> None:
    land_all(config, leader)
    schema = (
        '{"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"},'
        ' "item": {"type": "string"}, "price": {"type": "number"},'
        ' "to": {"type": "object", "properties": {"city": {"type": "string"}}}}}'
    )
    (source,) = config.sources
    wider = changed(config, options={**source.options, "jsonSchema": schema})
    leader.last = 38
    land_all(wider, leader)
    check(wider, tmp_path, 38)
    found = iceberg_table(config).scan(selected_fields=("id", "price", "to")).to_arrow()
    assert found.num_rows == 35
    assert (found.column("price").null_count, found.column("to").null_count) == (35, 35)
    land_all(config, FakeLeader(41))
    check(config, tmp_path, 41)


def test_a_table_with_rows_of_another_journal_is_refused(
    s3: S3Server, config: PipelineConfig, leader: FakeLeader
) -> None:
    land_all(config, leader)
    lost = evolve(config, path=s3.folder("lost"))
    with pytest.raises(JournalError, match="table orders has rows of batch 0 or later"):
        land_all(lost, leader)


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_pipeline_of_a_real_stream(
    request: pytest.FixtureRequest,
    engine: str,
    server: NatsServer,
    s3: S3Server,
    bucket: ObjectFolder,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} if at % 10 else b"broken" for at in range(5000)])
    source = (
        f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\nformat = "json"\n'
        'schema = "order.json"\nmax_messages = 3000\ncommit = "purge"\n'
        "options = {minPartitions = 2}\n"
    )
    made = config_of(tmp_path, "delta", server.url, source, engine=engine)
    config = on_iceberg(made, s3, bucket.prefix)
    spark = request.getfixturevalue("spark") if engine == "spark" else None
    assert run(spark, config, once=True) == {}
    fill(stream, [{"id": at} for at in range(100)])
    other = evolve(config, engine="local")
    assert run(None, other, once=True) == {}
    assert landed_in_catalog(config, tmp_path) == (5100, 5100)
    (verdict,) = verify(config)
    assert (verdict.problems, verdict.rows, verdict.dead_letters) == ([], 5100, 500)
    assert stream.info().state.messages == 0
