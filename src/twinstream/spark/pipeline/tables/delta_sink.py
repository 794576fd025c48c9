"""Delta tables without Delta's JAR: Spark's tasks write Parquet files, the driver commits them.

Each batch of a source is one transaction of a table. The transaction contains the ID of the source
and the number of the batch as Delta's application transaction. If a batch is landed again after a
crash, the sink finds this number in the table and writes nothing.
"""

from __future__ import annotations

import json
import math
import operator
import os
import time
import uuid
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from attrs import evolve
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction
from pyarrow.fs import FileSystem, SubTreeFileSystem

from twinstream.lake.letters_plan import LettersPlan
from twinstream.lake.objects.files import arrow_files
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.task_report import TaskFile
from twinstream.spark.errors import PipelineBusy
from twinstream.spark.landing.outputs import DATA, LakeOutput
from twinstream.spark.landing.partition_rows import partition_with, values_of, with_values
from twinstream.spark.landing.partitions import (
    changed_partitions,
    partition_columns,
    with_names,
    with_partitions,
)
from twinstream.spark.landing.split_tables import BATCH_COLUMN, Place, TableSplit
from twinstream.spark.landing.staging import Written
from twinstream.spark.landing.table_files import TableFiles
from twinstream.spark.landing.table_fit import check_columns, has_all
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.pipeline.tables.column_change import ColumnChange, changed_rows
from twinstream.spark.pipeline.tables.delta_place import (
    BOUNDED_COLUMNS,
    BatchFiles,
    DeltaPlace,
    table_settings,
)
from twinstream.spark.pipeline.tables.parquet_files import reader_of, scanned, schema_of
from twinstream.spark.pipeline.tables.sink import LettersWriter, Writer

__all__ = ["DeltaBatch", "DeltaSink"]

# The type of sequences of all sizes.
_DECIMAL: Final = pa.decimal128(20, 0)

# Attempts to commit. Each fails only if another program has committed in the same moment.
_TRIES: Final = 100

# Attempts after commits of which it is unknown whether they were stored.
_DOUBTS: Final = 5

# The number of characters of a text that are in bounds. A longer text lies between its beginning
# and its beginning with the last character of Unicode behind it.
_TEXT: Final = 32
_BEYOND: Final = "\U0010ffff"

# The property of a table that the next owner of a lock that was lost changes.
_OWNER: Final = "twinstream.owner"

# A commit on a version that is not the newest one fails.
_ON_THIS_VERSION: Final = CommitProperties(max_commit_retries=0)


class DeltaBatch:
    """The writer of one batch. Each Delta table gets the files of the batch in one transaction."""

    def __init__(
        self,
        place: DeltaPlace,
        number: int,
        writer: Writer,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._place: Final = place
        self._check: Final = check
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

    def existing(self, prefix: str) -> list[str]:
        """Return the tables of the lake whose names begin with a prefix."""
        return self._place.existing(prefix)

    def found(self, table: str) -> Written | None:
        """Return the files of the batch that the table already has, or `None` without the batch."""
        delta = self._place.open(table)
        if delta is None or not self._is_in(table, delta):
            return None
        return self._place.written(table, self._files(delta, table), is_earlier=True)

    def put(self, table: str, files: Sequence[TaskFile], columns: pa.Schema) -> Written:
        """Add the files of the batch to a table, unless the table already has the batch.

        Return the files of the batch in the table. Raises `SchemaError` if `columns` or their
        partitions do not fit the table.
        """
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
                delta = _fitting(delta, table, columns, files, self._place, self._check)
                if self._is_in(table, delta):
                    continue  # another driver has added the batch since
                if moved is None:
                    moved = self._attempt.into(table, files)
                self._check()
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
        files = [_logged(table, each, self._writer.seq) for each in found.to_pylist()]
        return sorted(files, key=lambda each: each.path)


class DeltaSink:
    """The Delta tables of a lake.

    `check` is called before each commit of a command. It raises an error if the command has lost
    its lock. The commit is based on the version of the table that was read before that, and fails
    if there is a later one. So a command that sleeps between the two commits nothing.
    """

    def __init__(self, place: DeltaPlace, check: Callable[[], None] = lambda: None) -> None:
        self._place: Final = place
        self._check: Final = check
        self._scanned: Final[dict[str, DeltaTable]] = {}

    @property
    def lake(self) -> ObjectFolder | None:
        """The lake of the tables if it is on an object store."""
        return self._place.lake

    def batch(self, number: int, writer: Writer) -> DeltaBatch:
        """Return a writer for a batch. It can also finish an interrupted batch."""
        return DeltaBatch(self._place, number, writer)

    def existing(self, prefix: str) -> list[str]:
        """Return the tables of the lake whose names begin with a prefix."""
        return self._place.existing(prefix)

    def output(self, name: str, split: TableSplit, new: Sequence[str] = ()) -> LakeOutput | None:
        """Return where tasks write files on an object store, with names that begin with `name`."""
        return None if self.lake is None else LakeOutput(self.lake, name)

    def home(self, table: str) -> Path:
        """Return the folder of a table below that of the pipeline."""
        return Path(table)

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
        delta = self._to_scan(table)
        if delta is not None:
            # The Delta log has the bounds of the columns in each file. So files without matching
            # rows need not be opened.
            names = _within(delta, seq, low, high, since)
            if names:
                lake, paths = self._place.lake, [self._place.path(table, name) for name in names]
                yield from scanned([str(p) for p in paths], columns, seq, low, high, since, lake)

    def _to_scan(self, table: str) -> DeltaTable | None:
        """Return the newest version of a table.

        It is opened once for all scans: deltalake does not free all memory of a table.
        """
        delta = self._scanned.get(table)
        if delta is not None:
            delta.update_incremental()
            return delta
        delta = self._place.open(table)
        if delta is not None and self._place.lake is None:  # others are kept there
            self._scanned[table] = delta
        return delta

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
                # The log has the path as a URL, and the folder of a partition may have escapes.
                found[number].append(self._place.path(table, unquote(action["path"])))
        return found

    def check(self, table: str, files: Sequence[Path]) -> None:
        """Raise `SchemaError` if the columns of the files do not fit the table."""
        delta = self._place.open(table)
        if delta is not None and files:
            _check(delta, table, schema_of(files, self._place.lake))

    def replace(self, table: str, batches: Mapping[int, Sequence[TaskFile]]) -> None:
        """Replace all rows of batches with the rows of files, in one transaction.

        Without files, the rows of a batch are removed. Raises `SchemaError`, before any change, if
        the columns of the files do not fit the table.
        """
        files = [file for inside in batches.values() for file in inside]
        paths = [file.path for file in files]
        # Without this check, Delta would cast the rows to the types of the table. A number could
        # lose its fraction without an error.
        self.check(table, paths)
        columns = schema_of(paths, self._place.lake)
        predicate = f"{BATCH_COLUMN} IN ({', '.join(map(str, sorted(batches)))})"
        rows = with_values(files, columns, self._place.lake) if files else None
        if rows is not None and self._place.open(table) is None:
            settings = table_settings(rows.schema.names)
            schema = Schema.from_arrow(rows.schema)
            self._check()
            self._place.create(table, schema, partition_columns(columns), settings)

        def change(delta: DeltaTable) -> None:
            if rows is None:
                delta.delete(predicate, commit_properties=_ON_THIS_VERSION)
                return
            write_deltalake(
                delta,
                reader_of(rows),
                mode="overwrite",
                predicate=predicate,
                schema_mode="merge",
                commit_properties=_ON_THIS_VERSION,
            )

        self._change(table, change)

    def renew(self, table: str) -> None:
        """Give the table a new version, so that commits on earlier ones fail.

        deltalake commits a compaction on later versions, too, unless the metadata has changed.
        """

        def change(delta: DeltaTable) -> None:
            _set_properties(delta, {_OWNER: uuid.uuid4().hex})

        self._change(table, change)

    def compact(self, table: str, target: int) -> None:
        """Join small files of a table into files of `target` bytes."""

        def change(delta: DeltaTable) -> None:
            delta.optimize.compact(target_size=target)

        self._change(table, change)

    def _change(self, table: str, change: Callable[[DeltaTable], None]) -> None:
        """Call `change` with the newest version of a table, until it has committed on it.

        It may be called again after it has committed, and must do the same then. A table that does
        not exist is not changed.
        """
        doubts = 0
        for left in reversed(range(_TRIES)):
            delta = self._place.open(table)
            if delta is None:
                return
            self._check()
            try:
                with self._place.changed(table):
                    change(delta)
            except CommitFailedError:
                if not left:
                    raise
            except self._place.doubtful as error:
                doubts += 1
                if doubts > _DOUBTS:
                    raise self._place.failed(table, error) from error
            else:
                return

    def schemas(self, table: str) -> Iterator[pa.Schema]:
        """Yield the columns of a table, unless it does not exist."""
        delta = self._place.open(table)
        if delta is not None:
            yield with_names(_arrow(delta.schema()), delta.metadata().partition_columns)

    def change(self, table: str, change: ColumnChange, source: SourceConfig) -> None:
        """Widen and rename columns of a table, in all rows, in one transaction.

        Raises `SchemaError`, before any change, if a row has two values of one column,
        and `PipelineBusy` if another program changes the table meanwhile.
        """
        delta = self._place.open(table)
        assert delta is not None, "a table that does not exist has no columns to change"
        attempt = self._place.files("_rewrite", "rewrite-")
        try:
            store = SubTreeFileSystem(
                str(self._place.path(table, "")), arrow_files(self._place.lake)
            )
            written = _rewritten(table, delta, store, change, source, attempt)
            files = attempt.into(table, written)
            self._check()
            self._overwrite(table, delta, files, change.columns)
        finally:
            attempt.close()
        bounded, gone = _with_bounds(files), change.old_names
        self._change(table, lambda delta: _set_bounded(delta, bounded, gone))

    def _overwrite(
        self, table: str, delta: DeltaTable, files: Sequence[TaskFile], columns: pa.Schema
    ) -> None:
        """Replace all files and the columns of a version of a table that was read."""
        try:
            with self._place.changed(table):
                delta.create_write_transaction(
                    list(map(_added, files)),
                    "overwrite",
                    Schema.from_arrow(columns),
                    partition_by=partition_columns(columns),
                    # A commit on a later version would remove rows that were not read.
                    commit_properties=_ON_THIS_VERSION,
                )
        except CommitFailedError as error:
            if not self._has_columns(table, columns):
                raise PipelineBusy(
                    f"another program has changed the table {table} meanwhile, so its columns were"
                    " not changed: run the command again"
                ) from error
        except self._place.doubtful as error:
            if not self._has_columns(table, columns):
                raise self._place.failed(table, error) from error

    def _has_columns(self, table: str, columns: pa.Schema) -> bool:
        """Return whether a change of the columns was stored, although its answer was an error."""
        delta = self._place.open(table)
        return delta is not None and _arrow(delta.schema()) == _arrow(Schema.from_arrow(columns))

    def add(
        self,
        table: str,
        files: Mapping[int, Sequence[TaskFile]],
        plan: LettersPlan,
        writer: Writer,
    ) -> None:
        """Add files to a table in one transaction, unless the plan has done it already."""
        batch = DeltaBatch(self._place, plan.number, LettersWriter(writer, plan), self._check)
        try:
            added = [each for inside in files.values() for each in inside]
            columns = schema_of([each.path for each in added], self._place.lake)
            bare = pa.schema([each.remove_metadata() for each in columns], columns.metadata)
            batch.put(table, self._linked(added, batch.folder), with_partitions(bare))
        finally:
            batch.close()

    def _linked(self, files: Sequence[TaskFile], folder: Path | LakeOutput) -> Sequence[TaskFile]:
        """Link local files into a folder, and return the links; return other files as they are."""
        if not isinstance(folder, Path):
            return files
        links = [evolve(each, path=folder / each.path.name) for each in files]
        for file, link in zip(files, links, strict=True):
            os.link(file.path, link.path)
        return links

    def has_added(self, table: str, plan: LettersPlan, writer: Writer) -> bool:
        """Return whether `add` has added rows of a plan to a table."""
        delta = self._place.open(table)
        if delta is None:
            return False
        return self._place.landed(table, delta, LettersWriter(writer, plan).id) >= plan.number


def _rewritten(
    table: str,
    delta: DeltaTable,
    store: FileSystem,
    change: ColumnChange,
    source: SourceConfig,
    attempt: BatchFiles,
) -> list[TaskFile]:
    """Write each file of a table with other columns, and return the files of the attempt.

    A file keeps its partition, which the log of the table has. One file is in memory in parts at a
    time. deltalake itself would read the whole table ahead. Its own `store` would neither renew
    credentials nor explain its errors.
    """
    opened: Any = delta  # the types of its method are not complete
    rows: ds.FileSystemDataset = opened.to_pyarrow_dataset(
        filesystem=store, schema=change.read_columns
    )
    own, names = change.in_files, partition_columns(change.columns)
    logged = {unquote(each["path"]): each for each in _actions(delta)}
    found: list[TaskFile] = []
    fragments: Any = rows.get_fragments()  # the type of their paths is unknown, too
    for fragment in fragments:
        values = {name: logged[fragment.path][f"partition.{name}"] for name in names}
        place = Place(table, partition_with(values))
        old = ds.FileSystemDataset([fragment], rows.schema, rows.format, rows.filesystem)
        new = TableFiles(attempt.folder, source.files)
        for part in changed_rows(table, old, own):
            new.add(place, part)
        found += new.finish(source.seq_column)
    return found


def _actions(delta: DeltaTable) -> list[dict[str, Any]]:
    """Return the files of a table, with their paths, and the partitions and bounds of columns."""
    return pa.table(delta.get_add_actions(flatten=True)).to_pylist()


def _within(delta: DeltaTable, seq: str, low: int, high: int, since: int) -> list[str]:
    """Return the names of the files that may have rows of a scan.

    Files of other programs may have no bounds in the log. Delta's own choice of files by a
    predicate takes 50 MiB of memory more.
    """
    found = pa.table(delta.get_add_actions(flatten=True))
    for name, compare, bound in (
        (f"max.{seq}", operator.ge, low),
        (f"min.{seq}", operator.lt, high),
        (f"max.{BATCH_COLUMN}", operator.ge, since),
    ):
        if name in found.schema.names:
            known = pc.field(name)
            value: Any = pa.scalar(Decimal(bound), _DECIMAL)
            is_within = compare(known.cast(_DECIMAL), value)
            found = found.filter(known.is_null() | is_within)
    # The log has the path as a URL, and the folder of a partition may have escapes.
    return [unquote(path) for path in found.column("path").to_pylist()]


def _added(file: TaskFile) -> AddAction:
    return AddAction(
        path=file.path.as_posix(),
        size=file.bytes,
        partition_values=values_of(file.partition),
        modification_time=int(time.time() * 1000),
        data_change=True,
        # As UTF-8: deltalake reads escapes of characters beyond 16 bits as other characters.
        stats=json.dumps(_statistics(file), ensure_ascii=False),
    )


def _statistics(file: TaskFile) -> Mapping[str, object]:
    """Return the row count and the column bounds of a file, in the format of the Delta log."""
    lows: dict[str, object] = {}
    highs: dict[str, object] = {}
    for name, bounds in file.bounds.items():
        found = _bounds(*bounds)
        if found is not None:
            lows[name], highs[name] = found
    return {
        "numRecords": file.rows,
        "minValues": lows,
        "maxValues": highs,
        "nullCount": {**dict.fromkeys(lows, 0), **file.nulls},
    }


def _bounds(low: Any, high: Any) -> tuple[Any, Any] | None:
    """Return bounds as the Delta log has them, or `None` if it cannot have them."""
    match low:
        case datetime():
            return _times(low, high)
        case date():
            return low.isoformat(), high.isoformat()
        case str():
            return low[:_TEXT], high if len(high) <= _TEXT else high[:_TEXT] + _BEYOND
        case float():
            return (low, high) if math.isfinite(low) and math.isfinite(high) else None
        case _:
            return int(low), int(high)  # sequences are decimals if uint64=decimal


def _logged(table: str, values: Mapping[str, Any], seq: str) -> TaskFile:
    """Return a file as the log of a table describes it. The bounds are 0 if the log has none."""
    first, last = (int(values.get(f"{end}.{seq}") or 0) for end in ("min", "max"))
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


def _fitting(
    delta: DeltaTable | None,
    table: str,
    columns: pa.Schema,
    files: Sequence[TaskFile],
    place: DeltaPlace,
    check: Callable[[], None],
) -> DeltaTable:
    """Create the table, or add the columns and settings that it lacks, and return it.

    `check` is called before each commit. Raises `SchemaError` if the columns or their partitions do
    not fit the table.
    """
    schema = Schema.from_arrow(columns)
    further = _with_bounds(files)
    if delta is None:
        check()
        settings = table_settings(columns.names, further)
        delta = place.create(table, schema, partition_columns(columns), settings)
    _check(delta, table, columns)
    known, new = _arrow(delta.schema()), _arrow(schema)
    if not has_all(known, new):
        no_rows = pa.Table.from_batches([], new)
        check()
        write_deltalake(
            delta,
            no_rows,
            mode="append",
            schema_mode="merge",
            commit_properties=_ON_THIS_VERSION,
        )
        delta.update_incremental()
    _set_bounded(delta, further, check=check)
    return delta


def _with_bounds(files: Iterable[TaskFile]) -> set[str]:
    """Return the columns whose bounds files have."""
    return {name for file in files for name in (*file.bounds, *file.nulls)}


def _set_bounded(
    delta: DeltaTable,
    further: Collection[str],
    gone: Collection[str] = (),
    check: Callable[[], None] = lambda: None,
) -> None:
    """Let readers use the bounds of further columns, and no longer of columns that are gone.

    `check` is called before the commit.
    """
    text = delta.metadata().configuration.get(BOUNDED_COLUMNS)
    if text is None:
        return
    known = {*text.split(",")}
    wanted = {*known, *further} - {*gone}
    if wanted != known:
        check()
        _set_properties(delta, {BOUNDED_COLUMNS: ",".join(sorted(wanted))})
        delta.update_incremental()


def _set_properties(delta: DeltaTable, properties: dict[str, str]) -> None:
    """Change properties of exactly the version of a table that `delta` is.

    deltalake (1.6.6) holds Python's lock until the store answers, as in no other call. So no thread
    of this process renews the lock of the tables meanwhile. If another command takes the lock over,
    this commit fails, and the next `check` raises an error.
    """
    delta.alter.set_table_properties(
        properties, raise_if_not_exists=False, commit_properties=_ON_THIS_VERSION
    )


def _check(delta: DeltaTable, table: str, columns: pa.Schema) -> None:
    """Raise `SchemaError` if the columns or their partitions do not fit the table."""
    known, name = _arrow(delta.schema()), Path(table).name
    before, now = delta.metadata().partition_columns, partition_columns(columns)
    if before != now:
        raise changed_partitions(name, before, now)
    check_columns(name, known, _arrow(Schema.from_arrow(with_partitions(columns))))


def _arrow(schema: Schema) -> pa.Schema:
    given: Any = schema.to_arrow()  # an object with Arrow's C interface, which pyarrow accepts
    return pa.schema(given)
