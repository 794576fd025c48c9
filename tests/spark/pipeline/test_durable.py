"""What has to outlive a power cut: a file counts once it and each new name above it are synced."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import frozen
from pyspark.sql.types import LongType, StructField, StructType

from tests.huge import huge
from twinstream.lake.local_store import LocalStore
from twinstream.spark.errors import JournalError
from twinstream.spark.landing.journal import Journal, Plan
from twinstream.spark.landing.report import LandReport
from twinstream.spark.landing.staging import Staging, remove_attempts
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.tables import swap
from twinstream.spark.pipeline.tables.parquet_sink import ParquetSink

COLUMNS = StructType([StructField("_seq", LongType()), StructField("_batch_id", LongType())])


@frozen
class Writer:
    name: str = "orders"
    id: str = "identity"


PLAN = Plan(batch_id=0, created="today", start=1, end=3)


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


def report() -> LandReport:
    return LandReport(
        stream="S", path="p", batch_id=0, start=1, end=3, messages=2, rows=2, dead_letters=0,
        distinct_seqs=2, first_seq=1, last_seq=2,
    )  # fmt: skip


def file_in(folder: Path) -> Path:
    file = folder / "rows.parquet"
    pq.write_table(pa.table({"_seq": [1, 2], "_batch_id": [0, 0]}), file)
    return file


def test_an_entry_of_a_journal_and_all_names_above_it(tmp_path: Path, synced: set[Path]) -> None:
    journal = Journal(tmp_path / "new" / "tables", "S")
    journal.begin(PLAN)
    above = {tmp_path, tmp_path / "new", tmp_path / "new/tables", tmp_path / "new/tables/journal"}
    assert above | {tmp_path / "new/tables/journal/S"} <= synced
    synced.clear()
    journal.commit(PLAN, report())
    assert tmp_path / "new/tables/journal/S" in synced
    assert (journal.last(), journal.batch_ids(), journal.report(0)) == (PLAN, [0], report())


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
    batch.put(table, [file_in(batch.folder)], COLUMNS)
    assert {tmp_path, (tmp_path / table).parent, tmp_path / table} <= synced
    synced.clear()
    sink.replace(table, 1, [file_in(tmp_path)])
    # The batch that stays has a new folder with links.
    assert "batch_id=0" in {path.name for path in synced}


def test_the_log_of_a_delta_table_is_synced(tmp_path: Path, synced: set[Path]) -> None:
    from twinstream.spark.pipeline.tables.delta_sink import DeltaSink

    sink = DeltaSink(Folders(tmp_path))
    batch = sink.batch(0, Writer())
    batch.put("orders", [file_in(batch.folder)], COLUMNS)
    log = tmp_path / "orders" / "_delta_log"
    assert {tmp_path, tmp_path / "orders", log, *log.glob("*.json")} <= synced
    for change in (
        lambda: sink.replace("orders", 0, [file_in(tmp_path)]),
        lambda: sink.replace("orders", 0, ()),
    ):
        before, _ = set((tmp_path / "orders").rglob("*")), synced.clear()
        change()
        assert set((tmp_path / "orders").rglob("*")) - before <= synced
        assert log in synced


@pytest.mark.parametrize("name", ["batch_id=0.json.bak", "batch_id=x.json", "batch_id=1.txt"])
def test_a_file_that_is_no_entry_is_named(tmp_path: Path, name: str) -> None:
    journal = Journal(tmp_path, "S")
    journal.commit(PLAN, report())
    (tmp_path / "journal" / "S" / name).touch()
    with pytest.raises(JournalError, match=f"{name} is not the entry of a batch"):
        journal.last()


@pytest.mark.parametrize("number", ["../../x", -1, 2**64, 1.0, None, True])
def test_a_plan_has_a_number(tmp_path: Path, number: object) -> None:
    journal = Journal(tmp_path, "S")
    journal.begin(PLAN)
    file = tmp_path / "journal" / "S" / "_plan.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"batch_id": number}))
    with pytest.raises(JournalError, match=r"_plan\.json cannot be read \(batch_id is"):
        journal.plan()


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


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"plan": []}', '{"plan": {"batch_id": 0}}'])
def test_a_file_that_something_changed_is_named(tmp_path: Path, text: str) -> None:
    journal = Journal(tmp_path, "S")
    journal.commit(PLAN, report())
    (tmp_path / "journal" / "S" / "batch_id=0.json").write_text(text)
    with pytest.raises(JournalError, match=r"batch_id=0\.json cannot be read"):
        journal.last()
    with pytest.raises(JournalError, match=r"batch_id=0\.json cannot be read"):
        journal.report(0)
    huge(tmp_path / "journal" / "S" / "batch_id=0.json")
    with pytest.raises(JournalError, match="more than 64 MiB"):
        journal.last()


@pytest.fixture
def full() -> Iterator[None]:
    """No file of this process may grow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_nothing_is_left_of_a_file_that_could_not_be_written(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "journal" / "S").mkdir(parents=True)
    request.getfixturevalue("full")
    with pytest.raises(OSError, match="File too large"):
        Journal(tmp_path, "S").begin(PLAN)
    assert not list((tmp_path / "journal" / "S").iterdir())
