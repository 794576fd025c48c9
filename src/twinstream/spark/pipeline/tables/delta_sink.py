"""Delta tables without Delta's JAR: tasks write Parquet files, the driver commits them."""

from __future__ import annotations

import os
import uuid
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
from attrs import evolve
from deltalake import DeltaTable, Schema, write_deltalake
from deltalake.exceptions import CommitFailedError
from pyarrow.fs import FileSystem, SubTreeFileSystem

from twinstream.lake.letters_plan import LettersPlan
from twinstream.lake.objects.files import arrow_files
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.task_report import TaskFile
from twinstream.spark.errors import PipelineBusy
from twinstream.spark.landing.outputs import LakeOutput
from twinstream.spark.landing.partition_rows import partition_with, with_values
from twinstream.spark.landing.partitions import (
    partition_columns,
    with_names,
    with_partitions,
)
from twinstream.spark.landing.split_tables import BATCH_COLUMN, Place, TableSplit
from twinstream.spark.landing.table_files import TableFiles
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.pipeline.tables.column_change import ColumnChange, changed_rows
from twinstream.spark.pipeline.tables.delta_batch import DOUBTS, TRIES, DeltaBatch
from twinstream.spark.pipeline.tables.delta_columns import (
    ON_THIS_VERSION,
    arrow_columns,
    check_delta,
    set_bounded,
    set_properties,
    with_bounds,
)
from twinstream.spark.pipeline.tables.delta_log import actions, add_action, names_within
from twinstream.spark.pipeline.tables.delta_place import (
    BatchFiles,
    DeltaPlace,
    table_settings,
)
from twinstream.spark.pipeline.tables.parquet_files import reader_of, scanned, schema_of
from twinstream.spark.pipeline.tables.sink import LettersWriter, Writer

__all__ = ["DeltaSink"]

# The property of a table that the next owner of a lock that was lost changes.
_OWNER: Final = "twinstream.owner"


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
            names = names_within(delta, seq, low, high, since)
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
        for action in [] if delta is None else actions(delta):
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
            check_delta(delta, table, schema_of(files, self._place.lake))

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
                delta.delete(predicate, commit_properties=ON_THIS_VERSION)
                return
            write_deltalake(
                delta,
                reader_of(rows),
                mode="overwrite",
                predicate=predicate,
                schema_mode="merge",
                commit_properties=ON_THIS_VERSION,
            )

        self._change(table, change)

    def renew(self, table: str) -> None:
        """Give the table a new version, so that commits on earlier ones fail.

        deltalake commits a compaction on later versions, too, unless the metadata has changed.
        """

        def change(delta: DeltaTable) -> None:
            set_properties(delta, {_OWNER: uuid.uuid4().hex})

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
        for left in reversed(range(TRIES)):
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
                if doubts > DOUBTS:
                    raise self._place.failed(table, error) from error
            else:
                return

    def schemas(self, table: str) -> Iterator[pa.Schema]:
        """Yield the columns of a table, unless it does not exist."""
        delta = self._place.open(table)
        if delta is not None:
            yield with_names(arrow_columns(delta.schema()), delta.metadata().partition_columns)

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
        bounded, gone = with_bounds(files), change.old_names
        self._change(table, lambda delta: set_bounded(delta, bounded, gone))

    def _overwrite(
        self, table: str, delta: DeltaTable, files: Sequence[TaskFile], columns: pa.Schema
    ) -> None:
        """Replace all files and the columns of a version of a table that was read."""
        try:
            with self._place.changed(table):
                delta.create_write_transaction(
                    list(map(add_action, files)),
                    "overwrite",
                    Schema.from_arrow(columns),
                    partition_by=partition_columns(columns),
                    # A commit on a later version would remove rows that were not read.
                    commit_properties=ON_THIS_VERSION,
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
        wanted = arrow_columns(Schema.from_arrow(columns))
        return delta is not None and arrow_columns(delta.schema()) == wanted

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
    logged = {unquote(each["path"]): each for each in actions(delta)}
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
