"""Delta tables without Spark: a batch is added once, and files are compared with the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import frozen

from twinstream.lake.task_report import TaskFile
from twinstream.spark.errors import SchemaError
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.tables.delta_batch import DeltaBatch
from twinstream.spark.pipeline.tables.delta_place import LocalDelta
from twinstream.spark.pipeline.tables.delta_sink import DeltaSink

COLUMNS = pa.schema([pa.field("_seq", pa.int64()), pa.field("_batch_id", pa.int64())])


@frozen
class Writer:
    name: str = "orders"
    id: str = "identity"
    seq: str = "_seq"


def file_in(folder: Path, kind: pa.DataType | None = None) -> Path:
    file = folder / "rows.parquet"
    seqs = pa.array([1, 2]).cast(kind or pa.int64())
    pq.write_table(pa.table({"_seq": seqs, "_batch_id": [0, 0]}), file)
    return file


def put(sink: DeltaSink) -> bool:
    """Put batch 0 into the table; return whether the table had it."""
    batch = sink.batch(0, Writer())
    assert isinstance(batch.folder, Path)
    file = file_in(batch.folder)
    reported = TaskFile("orders", file, 2, 1, 2, file.stat().st_size, {"_batch_id": (0, 0)})
    return batch.put("orders", [reported], COLUMNS).is_earlier


def test_a_batch_is_added_once(tmp_path: Path) -> None:
    sink = DeltaSink(LocalDelta(Folders(tmp_path)))
    log = tmp_path / "orders/_delta_log"
    assert not put(sink)
    before = sorted(log.glob("*.json"))
    assert put(sink)
    assert sorted(log.glob("*.json")) == before


def test_files_have_to_fit_a_table_that_exists(tmp_path: Path) -> None:
    sink = DeltaSink(LocalDelta(Folders(tmp_path)))
    other = file_in(tmp_path, pa.string())
    sink.check("orders", [other])
    put(sink)
    sink.check("orders", ())
    with pytest.raises(SchemaError, match="_seq"):
        sink.check("orders", [other])


class LockLostError(Exception):
    """What `check` raises for a command whose lock another one has taken over."""


def lost() -> None:
    raise LockLostError


def put_more(
    place: LocalDelta,
    number: int,
    column: str,
    check: Callable[[], None] = lost,
    **bounds: tuple[int, int],
) -> None:
    """Put a batch, whose rows have a further column, into the table."""
    batch = DeltaBatch(place, number, Writer(), check)
    assert isinstance(batch.folder, Path)
    rows = pa.table({"_seq": [3], "_batch_id": [number], column: [3]})
    file = batch.folder / "rows.parquet"
    pq.write_table(rows, file)
    known = {"_batch_id": (number, number), **bounds}
    batch.put(
        "orders", [TaskFile("orders", file, 1, 3, 3, file.stat().st_size, known)], rows.schema
    )


LATE: dict[str, Callable[[LocalDelta, Path], object]] = {
    "a property": lambda place, _: put_more(place, 2, "note", note=(3, 3)),
    "a column": lambda place, _: put_more(place, 2, "other"),
    "rows": lambda place, _: put_more(place, 2, "note"),
    "a version": lambda place, _: DeltaSink(place, lost).renew("orders"),
    "files": lambda place, _: DeltaSink(place, lost).compact("orders", 1000),
    "no rows": lambda place, _: DeltaSink(place, lost).replace("orders", {0: []}),
    "a table": lambda place, folder: DeltaSink(place, lost).replace(
        "others", {0: [TaskFile("others", file_in(folder), 2, 1, 2, 1)]}
    ),
}


@pytest.mark.parametrize("change", LATE)
def test_a_command_that_has_lost_its_lock_commits_nothing(tmp_path: Path, change: str) -> None:
    place = LocalDelta(Folders(tmp_path))
    put(DeltaSink(place))
    put_more(place, 1, "note", lambda: None)
    before = sorted(tmp_path.glob("*/_delta_log/*.json"))
    with pytest.raises(LockLostError):
        LATE[change](place, tmp_path)
    assert sorted(tmp_path.glob("*/_delta_log/*.json")) == before
