"""Delta tables without a JAR: Spark's tasks write Parquet files, the driver commits them.

Each batch of a source is one transaction of a table. It carries the identity of the source and
the number of the batch as Delta's application transaction, so that a batch that is landed again
after a crash finds itself and writes nothing.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import TableNotFoundError
from deltalake.transaction import AddAction

from twinstream.spark.landing.durable import synced_below
from twinstream.spark.pipeline.folders import Folders
from twinstream.spark.pipeline.parquet_files import scanned, schema_of
from twinstream.spark.pipeline.sink import Writer
from twinstream.spark.landing.split_tables import BATCH_COLUMN
from twinstream.spark.landing.staging import Staging, Written
from twinstream.spark.landing.table_fit import check_columns, has_all
from js_sync.backup.disk import make_folders, sync

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["DeltaBatch", "DeltaSink", "open_table"]

_DATA: Final = "data"
"""Folder of the files of batches, below the table's."""

#: Columns whose bounds go into the log, so that readers can skip files without opening them.
_BOUNDED: Final = ("seq", "_seq", BATCH_COLUMN)


def open_table(folder: Path) -> DeltaTable | None:
    """Return the newest version of a table, ``None`` where there is none."""
    try:
        return DeltaTable(str(folder))
    except TableNotFoundError:
        return None


class DeltaBatch:
    """Puts a batch into its tables: the files first, then one transaction a table."""

    def __init__(self, folders: Folders, number: int, writer: Writer) -> None:
        self._root: Final = folders.root
        self._staging: Final = Staging(folders.staging, writer.name)
        self._number: Final = number
        self._writer: Final = writer
        self._name: Final = f"{writer.name}-{number:09d}-"
        self._written: list[Written] = []

    @property
    def folder(self) -> Path:
        """Where files of the batch are written before they are put into tables."""
        return self._staging.folder

    def has(self, table: str) -> bool:
        """Tell whether the table has the batch already."""
        delta = open_table(self._root / table)
        return delta is not None and self._is_in(delta)

    def put(self, table: str, files: Sequence[Path], columns: StructType) -> Written:
        """Put the files of a table's rows into it."""
        folder = self._root / table
        delta = open_table(folder)
        if delta is None or not self._is_in(delta):
            for left in (folder / _DATA).glob(f"{self._name}*"):
                shutil.rmtree(left)  # of an attempt that was killed before its transaction
            before = -1 if delta is None else delta.version()
            make_folders(folder)
            delta = _fitting(delta, folder, columns)
            home = folder / _DATA / f"{self._name}{uuid.uuid4().hex[:8]}"
            self._commit(delta, folder, self._staging.put(files, home))
            _sync_log(folder, before + 1, delta.version())
        written = Written(table, self._files(delta, folder))
        self._written.append(written)
        return written

    @property
    def written(self) -> Sequence[Written]:
        """What the batch has in the tables that were put to."""
        return self._written

    def close(self) -> None:
        """Remove what was written and not put anywhere.

        Files that no transaction took are removed with the next attempt or a vacuum.
        """
        self._staging.close()

    def _is_in(self, delta: DeltaTable) -> bool:
        last = delta.transaction_version(self._writer.id)
        return last is not None and last >= self._number

    def _commit(self, delta: DeltaTable, folder: Path, files: Sequence[Path]) -> None:
        delta.create_write_transaction(
            [_added(file, folder) for file in files],
            "append",
            delta.schema(),
            commit_properties=CommitProperties(
                custom_metadata={"source": self._writer.name, "batch": str(self._number)},
                app_transactions=[Transaction(self._writer.id, self._number)],
            ),
        )
        delta.update_incremental()

    def _files(self, delta: DeltaTable, folder: Path) -> tuple[Path, ...]:
        paths = pa.table(delta.get_add_actions(flatten=True)).column("path").to_pylist()
        start = f"{_DATA}/{self._name}"
        return tuple(folder / path for path in sorted(paths) if path.startswith(start))


class DeltaSink:
    """The tables below a pipeline's folder."""

    def __init__(self, folders: Folders) -> None:
        self.folders: Final = folders

    def batch(self, number: int, writer: Writer) -> DeltaBatch:
        """Begin a batch, or begin one again that was interrupted."""
        return DeltaBatch(self.folders, number, writer)

    def reaches(self, table: str, number: int) -> bool:
        """Tell whether the table has a batch with this number or a higher one."""
        delta = open_table(self.folders.root / table)
        return delta is not None and bool(
            delta.file_uris(file_pruning_predicate=f"{BATCH_COLUMN} >= {number}")
        )

    def scan(
        self, table: str, columns: Sequence[str], seq: str, low: int, high: int, since: int
    ) -> Iterator[pa.RecordBatch]:
        """Read columns of the rows whose sequence is in ``[low, high)``, since a batch."""
        delta = open_table(self.folders.root / table)
        if delta is not None:
            # The log has the bounds of each file, so most need not be opened.
            bounds = f"{seq} >= {low} AND {seq} < {high} AND {BATCH_COLUMN} >= {since}"
            files = delta.file_uris(file_pruning_predicate=bounds)
            if files:
                yield from scanned(files, columns, seq, low, high, since)

    def replace(self, table: str, number: int, files: Sequence[Path]) -> None:
        """Put the rows of ``files`` in the place of all rows of a batch, in one transaction."""
        folder = self.folders.root / table
        delta = open_table(folder)
        if delta is not None and files:
            # Delta would cast, and a fraction would lose its digits without a word.
            check_columns(folder.name, _arrow(delta.schema()), schema_of(files))
        predicate = f"{BATCH_COLUMN} = {number}"
        if files:
            make_folders(folder)
        with synced_below(folder):
            if files:
                rows = ds.dataset([str(file) for file in files], schema=schema_of(files))
                if delta is None:
                    write_deltalake(str(folder), rows.scanner().to_reader())
                else:
                    write_deltalake(
                        delta,
                        rows.scanner().to_reader(),
                        mode="overwrite",
                        predicate=predicate,
                        schema_mode="merge",
                    )
            elif delta is not None:
                delta.delete(predicate)


def _sync_log(folder: Path, first: int, last: int) -> None:
    """Return when versions of a table are on the disk, which deltalake does not wait for."""
    log = folder / "_delta_log"
    sync(log / f"{version:020}.json" for version in range(first, last + 1))
    checkpoints = [log / f"{version:020}.checkpoint.parquet" for version in range(first, last + 1)]
    sync(each for each in (*checkpoints, log / "_last_checkpoint") if each.exists())
    sync([log])


def _added(file: Path, table: Path) -> AddAction:
    found = file.stat()
    return AddAction(
        path=file.relative_to(table).as_posix(),
        size=found.st_size,
        partition_values={},
        modification_time=found.st_mtime_ns // 1_000_000,
        data_change=True,
        stats=json.dumps(_statistics(file)),
    )


def _statistics(file: Path) -> Mapping[str, object]:
    """Return what readers may know of a file without opening it."""
    parquet = pq.ParquetFile(file)
    names = [name for name in _BOUNDED if name in parquet.schema_arrow.names]
    rows = parquet.read(columns=names)
    if not rows.num_rows:
        return {"numRecords": 0}
    ends = {name: pc.min_max(rows.column(name)).as_py() for name in names}
    return {
        "numRecords": rows.num_rows,
        "minValues": {name: int(ends[name]["min"]) for name in names},
        "maxValues": {name: int(ends[name]["max"]) for name in names},
        "nullCount": dict.fromkeys(names, 0),
    }


def _fitting(delta: DeltaTable | None, folder: Path, columns: StructType) -> DeltaTable:
    """Return the table with all the columns; makes it, or adds the new ones."""
    schema = Schema.from_json(columns.json())
    if delta is None:
        return DeltaTable.create(str(folder), schema, mode="ignore")
    known, new = _arrow(delta.schema()), _arrow(schema)
    check_columns(folder.name, known, new)
    if not has_all(known, new):
        no_rows = pa.Table.from_batches([], new)
        write_deltalake(delta, no_rows, mode="append", schema_mode="merge")
        delta.update_incremental()
    return delta


def _arrow(schema: Schema) -> pa.Schema:
    given: Any = schema.to_arrow()  # of Arrow's C interface, which pyarrow takes
    return pa.schema(given)
