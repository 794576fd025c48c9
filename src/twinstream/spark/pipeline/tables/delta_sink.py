"""Delta tables without Delta's JAR: Spark's tasks write Parquet files, the driver commits them.

Each batch of a source is one transaction of a table. The transaction contains the ID of the source
and the number of the batch as Delta's application transaction. If a batch is landed again after a
crash, the sink finds this number in the table and writes nothing.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction

from twinstream.disk.safe_files import make_folders, sync
from twinstream.lake.letters_plan import LettersPlan
from twinstream.spark.landing.durable import synced_below
from twinstream.spark.landing.footers import Footer
from twinstream.spark.landing.split_tables import BATCH_COLUMN
from twinstream.spark.landing.staging import Staging, Written
from twinstream.spark.landing.table_fit import check_columns, has_all
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.tables.parquet_files import scanned, schema_of
from twinstream.spark.pipeline.tables.sink import Writer

__all__ = ["DeltaBatch", "DeltaSink", "open_table"]

# Name of the folder with the files of batches, in the table's folder.
_DATA: Final = "data"

# Attempts to commit. Each fails only if another program has committed in the same moment.
_TRIES: Final = 100

# Columns whose bounds are written to the Delta log. Readers use them to skip files.
_NUMBERS: Final = ("seq", "_seq", BATCH_COLUMN)
_TIMES: Final = ("timestamp", "_timestamp")


def open_table(folder: Path) -> DeltaTable | None:
    """Return the newest version of the Delta table in a folder, or `None` if there is none."""
    try:
        return DeltaTable(str(folder))
    except TableNotFoundError:
        return None


class DeltaBatch:
    """The writer of one batch. Each Delta table gets the files of the batch in one transaction."""

    def __init__(self, folders: Folders, number: int, writer: Writer) -> None:
        self._root: Final = folders.root
        self._staging: Final = Staging(folders.staging, writer.name)
        self._number: Final = number
        self._writer: Final = writer
        self._name: Final = f"{writer.name}-{number:09d}-"
        self._written: list[Written] = []

    @property
    def folder(self) -> Path:
        """The folder for the files of the batch until they are added to tables."""
        return self._staging.folder

    def found(self, table: str) -> Written | None:
        """Return the files of the batch that the table already has, or `None` without the batch."""
        folder = self._root / table
        delta = open_table(folder)
        if delta is None or not self._is_in(delta):
            return None
        return Written(table, self._files(delta, folder), is_earlier=True)

    def put(self, table: str, files: Sequence[Path], columns: pa.Schema) -> Written:
        """Add the files of the batch to a table, unless the table already has the batch.

        Return the files of the batch in the table. Raises `SchemaError` if `columns` do not fit
        the table.
        """
        return self.put_files(table, files, Schema.from_arrow(columns))

    def put_files(self, table: str, files: Sequence[Path], columns: Schema) -> Written:
        """Do the work of `put` for columns as Delta has them."""
        folder = self._root / table
        home = folder / _DATA / f"{self._name}{uuid.uuid4().hex[:8]}"
        moved: tuple[Path, ...] | None = None
        for left in reversed(range(_TRIES)):
            delta = open_table(folder)
            if delta is not None and self._is_in(delta):
                return self._wrote(Written(table, self._files(delta, folder), is_earlier=True))
            before = -1 if delta is None else delta.version()
            make_folders(folder)
            try:
                delta = _fitting(delta, folder, columns)
                if self._is_in(delta):
                    continue  # another driver has added the batch since
                if moved is None:
                    moved = self._staging.put(files, home)
                self._commit(delta, folder, moved)
            except CommitFailedError:
                if not left:
                    raise
                continue  # another program has committed since
            _sync_log(folder, before + 1, delta.version())
            return self._wrote(Written(table, self._files(delta, folder)))
        raise RuntimeError(f"table {table} changes without an end")

    def _wrote(self, written: Written) -> Written:
        self._written.append(written)
        return written

    @property
    def written(self) -> Sequence[Written]:
        """The files of the batch, one item for each call of `put`."""
        return self._written

    def close(self) -> None:
        """Remove the files that are still in the staging folder.

        If files were moved to the folder of a table and the transaction failed, a vacuum removes
        them.
        """
        self._staging.close()

    def _is_in(self, delta: DeltaTable) -> bool:
        last = delta.transaction_version(self._writer.id)
        return last is not None and last >= self._number

    def _commit(self, delta: DeltaTable, folder: Path, files: Sequence[Path]) -> None:
        """Commit the files on exactly the version of the table that `delta` is.

        A commit on a later version, which may have the batch, would add the batch twice. Raises
        `CommitFailedError` if another program has committed since.
        """
        delta.create_write_transaction(
            [_added(file, folder) for file in files],
            "append",
            delta.schema(),
            commit_properties=CommitProperties(
                custom_metadata={"source": self._writer.name, "batch": str(self._number)},
                max_commit_retries=0,
                app_transactions=[Transaction(self._writer.id, self._number)],
            ),
        )
        delta.update_incremental()

    def _files(self, delta: DeltaTable, folder: Path) -> tuple[Path, ...]:
        paths = pa.table(delta.get_add_actions(flatten=True)).column("path").to_pylist()
        start = f"{_DATA}/{self._name}"
        return tuple(folder / path for path in sorted(paths) if path.startswith(start))


class DeltaSink:
    """The Delta tables below a pipeline's folder."""

    def __init__(self, folders: Folders) -> None:
        self.folders: Final = folders

    def batch(self, number: int, writer: Writer) -> DeltaBatch:
        """Return a writer for a batch. It can also finish an interrupted batch."""
        return DeltaBatch(self.folders, number, writer)

    def reaches(self, table: str, number: int) -> bool:
        """Return whether the table has rows of a batch with this number or a higher number."""
        return self._has_files(table, f"{BATCH_COLUMN} >= {number}")

    def holds(self, table: str, number: int) -> bool:
        """Return whether the table has rows of the batch with this number."""
        return self._has_files(table, f"{BATCH_COLUMN} = {number}")

    def _has_files(self, table: str, predicate: str) -> bool:
        delta = open_table(self.folders.root / table)
        return delta is not None and bool(delta.file_uris(file_pruning_predicate=predicate))

    def scan(
        self, table: str, columns: Sequence[str], seq: str, low: int, high: int, since: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield columns of the rows with a sequence in `[low, high)`.

        Only batches numbered `since` or higher are read.
        """
        delta = open_table(self.folders.root / table)
        if delta is not None:
            # The Delta log has the bounds of the columns in each file. So files without matching
            # rows need not be opened.
            bounds = f"{seq} >= {low} AND {seq} < {high} AND {BATCH_COLUMN} >= {since}"
            files = delta.file_uris(file_pruning_predicate=bounds)
            if files:
                yield from scanned(files, columns, seq, low, high, since)

    def files(self, table: str, batches: Collection[int]) -> dict[int, list[Path]]:
        """Return the files that may have rows of batches, by the number of the batch."""
        folder = self.folders.root / table
        delta = open_table(folder)
        found: dict[int, list[Path]] = {number: [] for number in batches}
        for action in [] if delta is None else _actions(delta):
            low, high = (action.get(f"{end}.{BATCH_COLUMN}") for end in ("min", "max"))
            for number, files in found.items():
                if low is None or high is None or low <= number <= high:
                    files.append(folder / action["path"])
        return found

    def check(self, table: str, files: Sequence[Path]) -> None:
        """Raise `SchemaError` if the columns of the files do not fit the table."""
        delta = open_table(self.folders.root / table)
        if delta is not None and files:
            check_columns(Path(table).name, _arrow(delta.schema()), schema_of(files))

    def replace(self, table: str, batches: Mapping[int, Sequence[Path]]) -> None:
        """Replace all rows of batches with the rows of files, in one transaction.

        Without files, the rows of a batch are removed. Raises `SchemaError`, before any change, if
        the columns of the files do not fit the table.
        """
        files = [file for inside in batches.values() for file in inside]
        # Without this check, Delta would cast the rows to the types of the table. A number could
        # lose its fraction without an error.
        self.check(table, files)
        folder = self.folders.root / table
        delta = open_table(folder)
        predicate = f"{BATCH_COLUMN} IN ({', '.join(map(str, sorted(batches)))})"
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

    def add(self, table: str, files: Mapping[int, Path], plan: LettersPlan, writer: Writer) -> None:
        """Add links of files to a table in one transaction, unless the plan has done it already."""
        batch = DeltaBatch(self.folders, plan.number, _LettersWriter(writer))
        try:
            links = [batch.folder / file.name for file in files.values()]
            for file, link in zip(files.values(), links, strict=True):
                os.link(file, link)
            # An object with Arrow's C interface, which deltalake accepts.
            columns: Any = pa.schema([each.remove_metadata() for each in schema_of(links)])
            batch.put_files(table, links, Schema.from_arrow(columns))
        finally:
            batch.close()


class _LettersWriter:
    """The writer of the dead letters of a source. Its transactions have numbers of their own."""

    def __init__(self, source: Writer) -> None:
        # No source has a dot in its name.
        self.name: Final = f"{source.name}.letters"
        self.id: Final = f"{source.id}.letters"


def _actions(delta: DeltaTable) -> list[dict[str, Any]]:
    """Return the files of a table, with their paths and the bounds of their columns."""
    return pa.table(delta.get_add_actions(flatten=True)).to_pylist()


def _sync_log(folder: Path, first: int, last: int) -> None:
    """Sync versions `first` to `last` of a table's log to disk. deltalake does not do this."""
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
    """Return the row count and the column bounds of a file, in the format of the Delta log."""
    footer = Footer.of(file)
    lows: dict[str, int | str] = {}
    highs: dict[str, int | str] = {}
    for name in (*_NUMBERS, *_TIMES):
        bounds = footer.bounds(name)
        if bounds is not None:
            lows[name], highs[name] = map(int, bounds) if name in _NUMBERS else _times(*bounds)
    if not lows:
        return {"numRecords": footer.rows}
    return {
        "numRecords": footer.rows,
        "minValues": lows,
        "maxValues": highs,
        "nullCount": dict.fromkeys(lows, 0),
    }


def _times(low: datetime, high: datetime) -> tuple[str, str]:
    """Return both times in milliseconds, the resolution of the Delta log.

    `low` is rounded down and `high` is rounded up, so that the bounds include all values.
    """
    beyond = high + timedelta(microseconds=-high.microsecond % 1000)
    return _milliseconds(low), _milliseconds(beyond)


def _milliseconds(time: datetime) -> str:
    return time.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _fitting(delta: DeltaTable | None, folder: Path, schema: Schema) -> DeltaTable:
    """Create the table, or add the columns that it lacks, and return it.

    Raises `SchemaError` if the columns of `schema` do not fit the table.
    """
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
    given: Any = schema.to_arrow()  # an object with Arrow's C interface, which pyarrow accepts
    return pa.schema(given)
