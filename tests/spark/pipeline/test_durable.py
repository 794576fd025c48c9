"""What has to outlive a power cut: a file counts once it and each new name above it are synced."""

from __future__ import annotations

import os
import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import frozen

from twinstream.lake.local_store import LocalStore
from twinstream.lake.task_report import TaskFile
from twinstream.spark.landing.staging import Staging, remove_attempts
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.tables import swap
from twinstream.spark.pipeline.tables.parquet_sink import ParquetSink

COLUMNS = pa.schema([pa.field("_seq", pa.int64()), pa.field("_batch_id", pa.int64())])


@frozen
class Writer:
    name: str = "orders"
    id: str = "identity"
    seq: str = "_seq"


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> set[Path]:
    """Names of what was synced, as it was called then."""
    found: set[Path] = set()
    real = os.fsync

    def fsync(handle: int) -> None:
        real(handle)
        found.add(Path(os.readlink(f"/proc/self/fd/{handle}")))

    monkeypatch.setattr(os, "fsync", fsync)
    return found


def file_in(folder: Path) -> Path:
    file = folder / "rows.parquet"
    pq.write_table(pa.table({"_seq": [1, 2], "_batch_id": [0, 0]}), file)
    return file


def reported(file: Path, table: str) -> TaskFile:
    return TaskFile(table, file, 2, 1, 2, file.stat().st_size, {"_batch_id": (0, 0)})


def test_an_object_of_a_store_and_its_name(tmp_path: Path, synced: set[Path]) -> None:
    folder = tmp_path / "_pipeline"
    LocalStore(folder).create("S/plan/0.json", b"{}")
    assert {tmp_path, folder, folder / "S", folder / "S/plan"} <= synced
    assert any(path.name.startswith(".0.json.") for path in synced), "before it had its name"


@pytest.mark.parametrize("table", ["orders", "dead_letters/source=orders"])
def test_a_batch_and_the_folders_of_its_new_table_are_synced(
    tmp_path: Path, table: str, synced: set[Path]
) -> None:
    sink = ParquetSink(Folders(tmp_path))
    batch = sink.batch(0, Writer())
    batch.put(table, [reported(file_in(batch.folder), table)], COLUMNS)
    assert {tmp_path, (tmp_path / table).parent, tmp_path / table} <= synced
    synced.clear()
    # An earlier attempt may have ended before it synced the name of the batch's folder.
    again = sink.batch(0, Writer())
    synced.clear()
    again.put(table, [reported(file_in(again.folder), table)], COLUMNS)
    assert tmp_path / table in synced
    synced.clear()
    sink.replace(table, {1: [reported(file_in(tmp_path), table)]})
    # The batch that stays has a new folder with links.
    assert "batch_id=0" in {path.name for path in synced}


def test_the_log_of_a_delta_table_is_synced(tmp_path: Path, synced: set[Path]) -> None:
    from twinstream.spark.pipeline.tables.delta_place import LocalDelta
    from twinstream.spark.pipeline.tables.delta_sink import DeltaSink

    sink = DeltaSink(LocalDelta(Folders(tmp_path)))
    batch = sink.batch(0, Writer())
    assert isinstance(batch.folder, Path)
    batch.put("orders", [reported(file_in(batch.folder), "orders")], COLUMNS)
    log = tmp_path / "orders" / "_delta_log"
    assert {tmp_path, tmp_path / "orders", log, *log.glob("*.json")} <= synced
    for change in (
        lambda: sink.replace("orders", {0: [reported(file_in(tmp_path), "orders")]}),
        lambda: sink.replace("orders", {0: ()}),
    ):
        before, _ = set((tmp_path / "orders").rglob("*")), synced.clear()
        change()
        assert set((tmp_path / "orders").rglob("*")) - before <= synced
        assert log in synced


def test_of_a_link_only_the_link_is_removed(tmp_path: Path) -> None:
    """Neither staging nor an unfinished exchange removes the files behind a link."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    staging, table = tmp_path / "staging", tmp_path / "table"
    for link in (staging / "w.1", tmp_path / "_old.table", tmp_path / "_new.table"):
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(outside)
    table.mkdir()
    swap.finish(table)
    remove_attempts(staging, "w")
    Staging(staging, "w").close()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["outside", "table"]
    assert (outside / "kept").exists()


@contextmanager
def full() -> Generator[None]:
    """Within the block, no file of this process may grow, such as the log of this test."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "S").mkdir()
    with pytest.raises(OSError, match="File too large"), full():
        LocalStore(tmp_path).create("S/0.json", b"{}")
    assert not list((tmp_path / "S").iterdir())
