"""Iceberg tables in a REST catalog: tasks write Parquet files, the driver commits them.

Each batch of a source is one transaction of a table. The transaction adds the files, and sets the
property `twinstream.txn.<id of the source>` to the number of the batch. The catalog refuses it if
the table has got another snapshot since the driver loaded it. So if a batch is landed again after
a crash, or by two drivers, the sink finds this number in the table and writes nothing.

The number is not in the summary of the snapshot, because snapshots expire.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, Transaction

from twinstream.core.deadline import Backoff
from twinstream.lake.errors import StorageError
from twinstream.lake.iceberg.columns import Unrepresentable, arrow_columns, iceberg_columns
from twinstream.lake.iceberg.data_files import bounds_of, data_file, path_of
from twinstream.lake.iceberg.errors import CATALOG_ERRORS, catalog_error, is_refusal
from twinstream.lake.iceberg.tables import (
    NAME_MAPPING,
    NO_RETRIES,
    IcebergTables,
    data_files,
    home_of,
)
from twinstream.lake.letters_plan import LettersPlan
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.task_report import TaskFile
from twinstream.spark.errors import SchemaError, SparkSourceError
from twinstream.spark.landing.outputs import LakeOutput
from twinstream.spark.landing.split_tables import BATCH_COLUMN
from twinstream.spark.landing.staging import Written
from twinstream.spark.landing.table_fit import check_columns, has_all
from twinstream.spark.pipeline.tables.parquet_files import scanned, schema_of
from twinstream.spark.pipeline.tables.sink import Writer

__all__ = ["IcebergBatch", "IcebergSink"]

# Attempts to commit. Each fails only if another program has committed in the same moment.
_TRIES: Final = 100

# Attempts after requests of which it is unknown whether they were carried out, and the pauses
# between them in seconds.
_DOUBTS: Final = 5
_PAUSES: Final = Backoff(0.2, 5.0)

# The beginning of the property with the last batch of a source, before the source's ID.
_LANDED: Final = "twinstream.txn."


class IcebergBatch:
    """The writer of one batch. Each table gets the files of the batch in one transaction."""

    def __init__(self, tables: IcebergTables, number: int, writer: Writer) -> None:
        self._tables: Final = tables
        self._number: Final = number
        self._writer: Final = writer
        self._name: Final = f"{writer.name}-{number:09d}-"
        self._written: list[Written] = []

    @property
    def lake(self) -> ObjectFolder:
        """All buckets, to which the paths of files are relative."""
        return self._tables.lake

    def prepared(
        self, tables: Sequence[str], columns: Callable[[str], pa.Schema]
    ) -> Path | LakeOutput:
        """Create the tables that do not exist, and return where tasks write their files.

        The catalog decides where a table is, and some servers store only objects below it.
        """
        homes = {table: home_of(self._existing(table, columns)) for table in tables}
        return LakeOutput(self.lake, self._name, homes)

    def _existing(self, table: str, columns: Callable[[str], pa.Schema]) -> Table:
        found = self._tables.opened(table)
        return found or _settled(
            lambda: self._tables.create(table, _schema_of(table, columns(table)))
        )

    def found(self, table: str) -> Written | None:
        """Return the files of the batch that the table already has, or `None` without the batch."""
        found = self._tables.open(table)
        if found is None or not self._is_in(found):
            return None
        return Written.of(table, self._files(found, table), self.lake, is_earlier=True)

    def put(self, table: str, files: Sequence[TaskFile], columns: pa.Schema) -> Written:
        """Add the files of the batch to a table, unless the table already has the batch.

        Return the files of the batch in the table. Raises `SchemaError` if `columns` do not fit
        the table.
        """
        doubts = 0
        for left in reversed(range(_TRIES)):
            # A commit on an older state fails, so the first attempt needs no newer one.
            is_first = left == _TRIES - 1
            found = self._tables.opened(table) if is_first else self._tables.open(table)
            if found is None:
                raise StorageError(f"the table {self._tables.name(table)} was removed; restore it")
            if self._is_in(found):
                return self._wrote(table, self._files(found, table), files)
            try:
                if files:
                    self._commit(table, found, files, columns)
                return self._wrote(table, files, files)
            except CommitFailedException:
                if not left:
                    raise
            except (StorageError, *CATALOG_ERRORS) as error:
                doubts += 1
                if doubts > _DOUBTS or is_refusal(error):
                    raise self._failed(table, error) from error
                time.sleep(_PAUSES.pause(doubts))
        raise RuntimeError(f"table {table} changes without an end")

    def _failed(self, table: str, error: Exception) -> Exception:
        if isinstance(error, StorageError):
            return error
        what = f"cannot change the table {self._tables.name(table)}"
        return catalog_error(self._tables.settings, what, error)

    def _wrote(self, table: str, found: Sequence[TaskFile], own: Sequence[TaskFile]) -> Written:
        """Note and return the files of the batch in the table.

        They are those of an earlier attempt, or of another driver, if they are not the `own` files.
        """
        is_earlier = {each.path for each in found} != {each.path for each in own}
        written = Written.of(table, found, self.lake, is_earlier=is_earlier)
        self._written.append(written)
        return written

    @property
    def written(self) -> Sequence[Written]:
        """The files of the batch, one item for each call of `put`."""
        return self._written

    def close(self) -> None:
        """Do nothing: a vacuum removes the files that were not added to a table."""

    @property
    def _property(self) -> str:
        return f"{_LANDED}{self._writer.id}"

    def _is_in(self, table: Table) -> bool:
        return int(table.properties.get(self._property, -1)) >= self._number

    def _commit(
        self, name: str, table: Table, files: Sequence[TaskFile], columns: pa.Schema
    ) -> None:
        """Add the files, and the columns that the table lacks, to exactly this state of a table.

        A commit on a later state, which may have the batch, would add the batch twice. Raises
        `CommitFailedException` if another program has committed since.
        """
        _forbid_retries(table)
        transaction = table.transaction()
        _add_columns(name, transaction, arrow_columns(table.schema()), columns)
        properties = {self._property: str(self._number)}
        if NAME_MAPPING not in transaction.table_metadata.properties:
            mapping = transaction.table_metadata.schema().name_mapping
            properties[NAME_MAPPING] = mapping.model_dump_json()
        transaction.set_properties(properties)
        schema, spec = transaction.table_metadata.schema(), transaction.table_metadata.spec()
        summary = {"twinstream.source": self._writer.name, "twinstream.batch": str(self._number)}
        with transaction.update_snapshot(snapshot_properties=summary).merge_append() as append:
            for file in files:
                append.append_data_file(data_file(file, schema, spec.spec_id))
        transaction.commit_transaction()

    def _files(self, table: Table, name: str) -> list[TaskFile]:
        """Return the files with rows of the batch as the manifests describe them, sorted."""
        found = data_files(table, f"{BATCH_COLUMN} = {self._number}")
        files = (_listed(table, name, each) for each in found)
        own = (each for each in files if each.path.name.startswith(self._name))
        return sorted(own, key=lambda each: each.path)


class IcebergSink:
    """The Iceberg tables of a pipeline."""

    def __init__(self, tables: IcebergTables) -> None:
        self._tables: Final = tables

    @property
    def lake(self) -> ObjectFolder:
        """All buckets, to which the paths of files are relative."""
        return self._tables.lake

    def batch(self, number: int, writer: Writer) -> IcebergBatch:
        """Return a writer for a batch. It can also finish an interrupted batch."""
        return IcebergBatch(self._tables, number, writer)

    def reaches(self, table: str, number: int) -> bool:
        """Return whether the table has rows of a batch with this number or a higher number."""
        found = self._tables.open(table)
        wanted = f"{BATCH_COLUMN} >= {number}"
        return found is not None and bool(self._data_files(table, found, wanted))

    def holds(self, table: str, number: int) -> bool:
        """Return whether a source has landed the batch with this number, or a later one.

        Only the properties of the table are read, in which each source has its last batch.
        """
        found = self._tables.open(table)
        landed = {} if found is None else found.properties
        numbers = (int(text) for name, text in landed.items() if name.startswith(_LANDED))
        return any(last >= number for last in numbers)

    def scan(
        self, table: str, columns: Sequence[str], seq: str, low: int, high: int, since: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield columns of the rows with a sequence in `[low, high)`.

        Only batches numbered `since` or higher are read.
        """
        found = self._tables.open(table)
        if found is None:
            return
        # Manifests have the bounds of the columns in each file. So files without matching rows need
        # not be opened.
        wanted = f"{seq} >= {low} AND {seq} < {high} AND {BATCH_COLUMN} >= {since}"
        files = [str(path_of(each.file_path)) for each in self._data_files(table, found, wanted)]
        if files:
            yield from scanned(files, columns, seq, low, high, since, self.lake)

    def files(self, table: str, batches: Collection[int]) -> dict[int, list[Path]]:
        """Return the files that may have rows of batches, by the number of the batch."""
        numbers = sorted(batches)
        by_batch: dict[int, list[Path]] = {number: [] for number in numbers}
        found = self._tables.open(table)
        if found is None or not numbers:
            return by_batch
        wanted = f"{BATCH_COLUMN} >= {numbers[0]} AND {BATCH_COLUMN} <= {numbers[-1]}"
        for each in self._data_files(table, found, wanted):
            bounds = bounds_of(each, found.schema(), BATCH_COLUMN)
            first = 0 if bounds is None else bisect_left(numbers, bounds[0])
            end = len(numbers) if bounds is None else bisect_right(numbers, bounds[1])
            for number in numbers[first:end]:
                by_batch[number].append(path_of(each.file_path))
        return by_batch

    def _data_files(self, name: str, table: Table, wanted: str) -> list[DataFile]:
        return self._tables.asked("read", name, lambda: data_files(table, wanted))

    def check(self, table: str, files: Sequence[Path]) -> None:
        """Raise `SchemaError` if the columns of the files do not fit the table."""
        found = self._tables.open(table)
        if found is not None and files:
            columns = schema_of(files)
            _schema_of(table, columns)
            check_columns(Path(table).name, arrow_columns(found.schema()), columns)

    def replace(self, table: str, batches: Mapping[int, Sequence[Path]]) -> None:
        """Replace all rows of batches with the rows of files, in one transaction."""
        raise NotImplementedError

    def add(self, table: str, files: Mapping[int, Path], plan: LettersPlan, writer: Writer) -> None:
        """Refuse: a replay of dead letters is for lakes on a file system."""
        raise SparkSourceError("dead letters cannot be landed again in Iceberg tables")

    def has_added(self, table: str, plan: LettersPlan, writer: Writer) -> bool:
        """Return false: `add` adds nothing."""
        return False


def _schema_of(table: str, columns: pa.Schema) -> Any:
    """Return columns as Iceberg has them. Raises `SchemaError` for one that it cannot have."""
    try:
        return iceberg_columns(columns)
    except Unrepresentable as error:
        raise SchemaError(
            f"{error}, so the table {Path(table).name} cannot have it; leave it out of the schema"
            " (it is kept in _extra), or give it another type"
        ) from None


def _settled(create: Callable[[], Table]) -> Table:
    """Return a table that is created, even if the answers of the catalog are lost."""
    for attempt in range(1, _DOUBTS + 1):
        try:
            return create()
        except StorageError as error:
            if is_refusal(error.__cause__):
                raise
            time.sleep(_PAUSES.pause(attempt))
    return create()


def _forbid_retries(table: Table) -> None:
    """Set the property without which pyiceberg would commit on a later state of the table."""
    if NO_RETRIES.items() - table.properties.items():
        table.transaction().set_properties(NO_RETRIES).commit_transaction()


def _add_columns(name: str, transaction: Transaction, known: pa.Schema, columns: pa.Schema) -> None:
    """Add the columns that a table lacks. Raises `SchemaError` if the others do not fit it."""
    check_columns(Path(name).name, known, columns)
    if not has_all(known, columns):
        with transaction.update_schema() as update:
            update.union_by_name(_schema_of(name, columns))


def _listed(table: Table, name: str, file: DataFile) -> TaskFile:
    """Return a file as a manifest describes it. The bounds are 0 if it has none."""
    names = {each.name for each in table.schema().fields}
    seq = "_seq" if "_seq" in names else "seq"
    first, last = map(int, bounds_of(file, table.schema(), seq) or (0, 0))
    path = path_of(file.file_path)
    return TaskFile(name, path, file.record_count, first, last, file.file_size_in_bytes)
