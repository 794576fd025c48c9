"""Iceberg tables as other programs see them, in the soak: downloads of 139 MB are part of it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.s3_server import S3Server
from tests.soak import LONG, LONGEST, state
from tests.spark.drivers import SOURCE, FakeEngine, FakeLeader, changed, land_all, with_schema
from tests.spark.iceberg import iceberg_table, landed_in_catalog, on_iceberg
from tests.spark.pipelines import config_of
from tests.spark.referees import duckdb_counts, duckdb_numbers, java_referee
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.maintenance.rewrite import rewrite

pytestmark = pytest.mark.skipif(not LONG, reason="a part of make soak")

BIG = 3_000_000_000
WIDER = (
    '{"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"},'
    ' "item": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}},'
    ' "to": {"type": "object", "properties": {"city": {"type": "string"}}}}}'
)


@pytest.fixture
def config(tmp_path: Path, s3: S3Server, bucket: ObjectFolder) -> PipelineConfig:
    made = config_of(tmp_path, "delta", "nats://127.0.0.1:1", SOURCE)
    return on_iceberg(made, s3, bucket.prefix)


def test_soak_duckdb_reads_the_tables(config: PipelineConfig, s3: S3Server) -> None:
    """Also after columns were added, and in tables of which manifests were merged."""
    land_all(config, FakeLeader(45))
    assert duckdb_counts(s3, iceberg_table(config)) == (41, 41)
    assert duckdb_counts(s3, iceberg_table(config, "dead_letters_orders")) == (4, 4)
    (source,) = config.sources
    wider = changed(config, options={**source.options, "jsonSchema": WIDER})
    land_all(wider, FakeLeader(1200))
    assert duckdb_counts(s3, iceberg_table(config)) == (1080, 1080)


def test_soak_renamed_columns_are_read(config: PipelineConfig, s3: S3Server) -> None:
    """DuckDB reads older files under the new names, and Java finds the columns there by both."""
    assert config.catalog is not None
    old = with_schema(config, a={"type": "integer", "format": "int32"}, b={"type": "integer"})
    new = changed(
        with_schema(config, c={"type": "integer"}, b={"type": "integer"}), renames={"a": "c"}
    )
    engine = FakeEngine(payload=lambda seq: b'{"a": %d, "b": 1}' % seq)
    land_all(old, FakeLeader(20), engine=engine)
    (done,) = rewrite(new)
    assert len(done.changes) == 2
    engine = FakeEngine(payload=lambda seq: b'{"c": %d, "b": 2}' % (seq + BIG))
    land_all(new, FakeLeader(30), engine=engine)
    total = sum(range(1, 31)) + 10 * BIG
    found = duckdb_numbers(s3, iceberg_table(config), "count(*), count(c), sum(c), sum(b)")
    assert found == [30, 30, total, 40]
    out, trace = java_referee(s3, *config.catalog.namespace, "orders", 1, "a", "c").communicate()
    assert [line.split()[1:] for line in out.splitlines()] == [["30", "c", "c"]] * 2, trace[-3000:]
    land_all(new, FakeLeader(40), engine=engine)
    assert duckdb_numbers(s3, iceberg_table(config), "count(c), max(c)") == [40, 40 + BIG]


def test_soak_java_commits_beside_a_pipeline(
    config: PipelineConfig, s3: S3Server, tmp_path: Path
) -> None:
    """A commit of one of them lets that of the other be refused, and both try again."""
    assert config.catalog is not None
    land_all(config, FakeLeader(1))
    last, is_over = 1, threading.Event()
    errors: list[BaseException] = []

    def land() -> None:
        nonlocal last
        try:
            while not is_over.is_set():
                last += 10
                land_all(config, FakeLeader(last))
        except BaseException as error:
            errors.append(error)

    pipeline = threading.Thread(target=land)
    pipeline.start()
    try:
        referee = java_referee(s3, *config.catalog.namespace, "orders", 100)
        out, trace = referee.communicate(timeout=LONGEST)
    finally:
        is_over.set()
        pipeline.join(LONGEST)
    assert errors == []
    seen = [int(line.split()[1]) for line in out.splitlines()]
    assert len(seen) == 101, trace[-3000:]
    assert seen == sorted(seen)
    assert seen[-1] > seen[0], "the pipeline landed meanwhile"
    assert landed_in_catalog(config, tmp_path) == (last, last)
    assert iceberg_table(config).properties["referee.commit"] == "100"
    assert duckdb_counts(s3, iceberg_table(config)) == (last - last // 10, last - last // 10)
    state(f"100 commits of another program beside {last // 10} batches, {last} rows, all distinct")
