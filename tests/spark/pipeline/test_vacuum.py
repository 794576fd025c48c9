"""Vacuum: what was replaced is kept as long as was said, and what is of others for good."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from tests.spark.pipelines import config_of
from twinstream.spark.pipeline.maintenance.vacuum import vacuum

SOURCE = 'stream = "ORDERS"'


def test_files_of_other_programs_are_kept(tmp_path: Path) -> None:
    config = config_of(tmp_path, "parquet", "nats://127.0.0.1:1", SOURCE)
    replaced, state = config.path / "_replaced", config.path / "_pipeline" / "ORDERS"
    for folder in (
        replaced / "1",
        replaced / "copy",
        state / "plan",
    ):
        folder.mkdir(parents=True)
    for folder in (replaced, state, state / "plan"):
        (folder / ".DS_Store").touch()
    unfinished = state / "plan" / f".000000000.json.{32 * 'a'}"
    unfinished.touch()
    found = vacuum(config)
    assert [each.path for each in found] == [replaced / "1", unfinished]
    assert sorted(each.name for each in replaced.iterdir()) == [".DS_Store", "copy"]
    assert not unfinished.exists()
    assert (state / "plan" / ".DS_Store").exists()


def test_an_hour_that_was_begun_counts_for_delta(tmp_path: Path) -> None:
    config = config_of(tmp_path, "delta", "nats://127.0.0.1:1", SOURCE)
    table = config.path / "orders"
    rows = pa.table({"seq": [1]})
    write_deltalake(str(table), rows)
    write_deltalake(str(table), rows, mode="overwrite")
    assert len(DeltaTable(str(table)).file_uris()) == 1
    assert vacuum(config, keep=59 * 60.0) == []
    assert len(list(table.glob("*.parquet"))) == 2
    assert len(vacuum(config, keep=0)) == 1
