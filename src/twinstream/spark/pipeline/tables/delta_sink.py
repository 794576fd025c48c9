"""Delta tables without Delta's JAR: Spark's tasks write Parquet files, the driver commits them.

Each batch of a source is one transaction of a table. The transaction contains the ID of the source
and the number of the batch as Delta's application transaction. If a batch is landed again after a
crash, the sink finds this number in the table and writes nothing.
"""

from __future__ import annotations

import json
import os
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction

from twinstream.lake.letters_plan import LettersPlan
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.task_report import TaskFile
from twinstream.spark.landing.footers import Footer
from twinstream.spark.landing.outputs import DATA, LakeOutput
from twinstream.spark.landing.split_tables import BATCH_COLUMN
from twinstream.spark.landing.staging import Written
from twinstream.spark.landing.table_files import task_file
from twinstream.spark.landing.table_fit import check_columns, has_all
from twinstream.spark.pipeline.tables.delta_place import DeltaPlace, table_settings
from twinstream.spark.pipeline.tables.parquet_files import scanned, schema_of
from twinstream.spark.pipeline.tables.sink import LettersWriter, Writer

__all__ = ["DeltaBatch", "DeltaSink"]

# Attempts to commit. Each fails only if another program has committed in the same moment.
_TRIES: Final = 100

# Attempts after commits of which it is unknown whether they were stored.
_DOUBTS: Final = 5

# Columns with numbers. The others whose bounds are in the Delta log are times.
_NUMBERS: Final = ("seq", "_seq", BATCH_COLUMN)


class DeltaBatch:
    """The writer of one batch. Each Delta table gets the files of the batch in one transaction."""

    def __init__(self, place: DeltaPlace, number: int, writer: Writer) -> None:
        self._place: Final = place
        self._number: Final = number
        self._writer: Final = writer
        self._name: Final = f"{writer.name}-{number:09d}-"
        self._attempt: Final = place.files(writer.name, self._name)
        self._written: list[Written] = []

    @property
    def folder(self) -> Path | LakeOutput:
        """Where tasks write the files of the batch."""
        return self._attempt.folder

    def prepared(
        self,
        tables: Sequence[str],
        columns: Callable[[str], pa.Schema],
        earlier: Collection[str] = (),
    ) -> Path | LakeOutput:
        """Return where tasks write the files of the batch."""
        return self.folder

    @property
    def lake(self) -> ObjectFolder | None:
        """The lake of the tables if it is on an object store."""
        return self._place.lake

    def found(self, table: str) -> Written | None:
        """Return the files of the batch that the table already has, or `None` without the batch."""
        delta = self._place.open(table)
        if delta is None or not self._is_in(table, delta):
            return None
        return self._place.written(table, self._files(delta, table), is_earlier=True)

    def put(self, table: str, files: Sequence[TaskFile], columns: pa.Schema) -> Written:
        """Add the files of the batch to a table, unless the table already has the batch.

        Return the files of the batch in the table. Raises `SchemaError` if `columns` do not fit
        the table.
        """
        schema = Schema.from_arrow(columns)
        moved: list[TaskFile] | None = None
        doubts = 0
        for left in reversed(range(_TRIES)):
            # A commit on an older version fails, so the first attempt needs no newer one.
            is_first = left == _TRIES - 1
            delta = self._place.opened(table) if is_first else self._place.open(table)
            if delta is not None and self._is_in(table, delta):
                return self._wrote(table, delta, moved)
            before = -1 if delta is None else delta.version()
            try:
                delta = _fitting(delta, table, schema, self._place)
                if self._is_in(table, delta):
                    continue  # another driver has added the batch since
                if moved is None:
                    moved = self._attempt.into(table, files)
                self._commit(table, delta, moved)
            except CommitFailedError:
                if not left:
                    raise
                continue  # another program has committed since
            except self._place.doubtful as error:
                doubts += 1
                if doubts > _DOUBTS:
                    raise self._place.failed(table, error) from error
                continue
            self._place.settle(table, before + 1, delta.version())
            return self._wrote(table, delta, moved)
        raise RuntimeError(f"table {table} changes without an end")

    def _wrote(self, table: str, delta: DeltaTable, moved: Sequence[TaskFile] | None) -> Written:
        """Note and return the files of the batch in the table.

        They are those of an earlier attempt, or of another driver, if they are not `moved`.
        """
        found = self._files(delta, table)
        own = None if moved is None else {each.path for each in moved}
        is_earlier = own != {each.path for each in found}
        written = self._place.written(table, found, is_earlier=is_earlier)
        self._written.append(written)
        return written

    @property
    def written(self) -> Sequence[Written]:
        """The files of the batch, one item for each call of `put`."""
        return self._written

    def close(self) -> None:
        """Remove the files of the batch that are in no folder of a table.

        If files are in the folder of a table and the transaction failed, a vacuum removes them.
        """
        self._attempt.close()

    def _is_in(self, table: str, delta: DeltaTable) -> bool:
        return self._place.landed(table, delta, self._writer.id) >= self._number

    def _commit(self, table: str, delta: DeltaTable, files: Sequence[TaskFile]) -> None:
        """Commit the files on exactly the version of the table that `delta` is.

        A commit on a later version, which may have the batch, would add the batch twice. Raises
        `CommitFailedError` if another program has committed since.
        """
        version = delta.version() + 1
        delta.create_write_transaction(
            list(map(_added, files)),
            "append",
            delta.schema(),
            commit_properties=CommitProperties(
                custom_metadata={"source": self._writer.name, "batch": str(self._number)},
                max_commit_retries=0,
                app_transactions=[Transaction(self._writer.id, self._number)],
            ),
        )
        delta.update_incremental()
        if delta.version() == version:
            self._place.committed(table, self._writer.id, self._number, version)

    def _files(self, delta: DeltaTable, table: str) -> list[TaskFile]:
        """Return the files of the batch as the log of the table describes them, sorted."""
        added = pa.table(delta.get_add_actions(flatten=True))
        found = added.filter(pc.starts_with(added.column("path"), f"{DATA}/{self._name}"))
        files = [_logged(table, each) for each in found.to_pylist()]
        return sorted(files, key=lambda each: each.path)


class DeltaSink:
    """The Delta tables of a lake."""

    def __init__(self, place: DeltaPlace) -> None:
        self._place: Final = place

    @property
    def lake(self) -> ObjectFolder | None:
        """The lake of the tables if it is on an object store."""
        return self._place.lake

    def batch(self, number: int, writer: Writer) -> DeltaBatch:
        """Return a writer for a batch. It can also finish an interrupted batch."""
        return DeltaBatch(self._place, number, writer)

    def reaches(self, table: str, number: int) -> bool:
        """Return whether the table has rows of a batch with this number or a higher number."""
        return self._has_files(table, f"{BATCH_COLUMN} >= {number}")

    def holds(self, table: str, number: int) -> bool:
        """Return whether the table has rows of the batch with this number."""
        return self._has_files(table, f"{BATCH_COLUMN} = {number}")

    def _has_files(self, table: str, predicate: str) -> bool:
        delta = self._place.open(table)
        return delta is not None and bool(delta.file_uris(file_pruning_predicate=predicate))

    def scan(
        self, table: str, columns: Sequence[str], seq: str, low: int, high: int, since: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield columns of the rows with a sequence in `[low, high)`.

        Only batches numbered `since` or higher are read.
        """
        delta = self._place.open(table)
        if delta is not None:
            # The Delta log has the bounds of the columns in each file. So files without matching
            # rows need not be opened.
            bounds = f"{seq} >= {low} AND {seq} < {high} AND {BATCH_COLUMN} >= {since}"
            uris = delta.file_uris(file_pruning_predicate=bounds)
            if uris:
                lake = self._place.lake
                files = [uri.removeprefix(f"{lake}/") for uri in uris]
                yield from scanned(files, columns, seq, low, high, since, lake)

    def files(self, table: str, batches: Collection[int]) -> dict[int, list[Path]]:
        """Return the files that may have rows of batches, by the number of the batch."""
        delta = self._place.open(table)
        numbers = sorted(batches)
        found: dict[int, list[Path]] = {number: [] for number in numbers}
        for action in [] if delta is None else _actions(delta):
            low, high = (action.get(f"{end}.{BATCH_COLUMN}") for end in ("min", "max"))
            first = 0 if low is None else bisect_left(numbers, low)
            end = len(numbers) if high is None else bisect_right(numbers, high)
            for number in numbers[first:end]:
                found[number].append(self._place.path(table, action["path"]))
        return found

    def check(self, table: str, files: Sequence[Path]) -> None:
        """Raise `SchemaError` if the columns of the files do not fit the table."""
        delta = self._place.open(table)
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
        delta = self._place.open(table)
        if delta is None and not files:
            return
        predicate = f"{BATCH_COLUMN} IN ({', '.join(map(str, sorted(batches)))})"
        with self._place.changed(table):
            if files:
                rows = ds.dataset([str(file) for file in files], schema=schema_of(files))
                if delta is None:
                    write_deltalake(
                        self._place.url(table),
                        rows.scanner().to_reader(),
                        configuration=table_settings(rows.schema.names),
                    )
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
        batch = DeltaBatch(self._place, plan.number, LettersWriter(writer, plan))
        try:
            assert isinstance(batch.folder, Path), "a lake on an object store has no such plan"
            links = [batch.folder / file.name for file in files.values()]
            for file, link in zip(files.values(), links, strict=True):
                os.link(file, link)
            finished = [task_file(table, Footer.of(link), "_seq") for link in links]
            columns = pa.schema([each.remove_metadata() for each in schema_of(links)])
            batch.put(table, finished, columns)
        finally:
            batch.close()

    def has_added(self, table: str, plan: LettersPlan, writer: Writer) -> bool:
        """Return whether `add` has added rows of a plan to a table."""
        delta = self._place.open(table)
        if delta is None:
            return False
        return self._place.landed(table, delta, LettersWriter(writer, plan).id) >= plan.number


def _actions(delta: DeltaTable) -> list[dict[str, Any]]:
    """Return the files of a table, with their paths and the bounds of their columns."""
    return pa.table(delta.get_add_actions(flatten=True)).to_pylist()


def _added(file: TaskFile) -> AddAction:
    return AddAction(
        path=file.path.as_posix(),
        size=file.bytes,
        partition_values={},
        modification_time=int(time.time() * 1000),
        data_change=True,
        stats=json.dumps(_statistics(file)),
    )


def _statistics(file: TaskFile) -> Mapping[str, object]:
    """Return the row count and the column bounds of a file, in the format of the Delta log."""
    lows: dict[str, int | str] = {}
    highs: dict[str, int | str] = {}
    for name, bounds in file.bounds.items():
        lows[name], highs[name] = map(int, bounds) if name in _NUMBERS else _times(*bounds)
    return {
        "numRecords": file.rows,
        "minValues": lows,
        "maxValues": highs,
        "nullCount": dict.fromkeys(lows, 0),
    }


def _logged(table: str, values: Mapping[str, Any]) -> TaskFile:
    """Return a file as the log of a table describes it. The bounds are 0 if the log has none."""
    bounds = [
        (int(values[f"min.{name}"]), int(values[f"max.{name}"]))
        for name in ("seq", "_seq")
        if values.get(f"min.{name}") is not None
    ]
    first, last = bounds[-1] if bounds else (0, 0)
    rows, size = values["num_records"] or 0, values["size_bytes"]
    return TaskFile(table, Path(values["path"]), rows, first, last, size)


def _times(low: datetime, high: datetime) -> tuple[str, str]:
    """Return both times in milliseconds, the resolution of the Delta log.

    `low` is rounded down and `high` is rounded up, so that the bounds include all values.
    """
    beyond = high + timedelta(microseconds=-high.microsecond % 1000)
    return _milliseconds(low), _milliseconds(beyond)


def _milliseconds(time: datetime) -> str:
    return time.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _fitting(delta: DeltaTable | None, table: str, schema: Schema, place: DeltaPlace) -> DeltaTable:
    """Create the table, or add the columns that it lacks, and return it.

    Raises `SchemaError` if the columns of `schema` do not fit the table.
    """
    if delta is None:
        return place.create(table, schema)
    known, new = _arrow(delta.schema()), _arrow(schema)
    check_columns(Path(table).name, known, new)
    if not has_all(known, new):
        no_rows = pa.Table.from_batches([], new)
        write_deltalake(delta, no_rows, mode="append", schema_mode="merge")
        delta.update_incremental()
    return delta


def _arrow(schema: Schema) -> pa.Schema:
    given: Any = schema.to_arrow()  # an object with Arrow's C interface, which pyarrow accepts
    return pa.schema(given)
