"""Iceberg tables in a REST catalog: add batches to them, read them, and replace batches."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.dataset as ds
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from twinstream.lake.errors import StorageError
from twinstream.lake.iceberg.columns import arrow_columns
from twinstream.lake.iceberg.data_files import bounds_of, path_of
from twinstream.lake.iceberg.tables import IcebergTables, data_files, home_of
from twinstream.lake.letters_plan import LettersPlan
from twinstream.lake.objects.files import arrow_files
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.task_report import TaskFile
from twinstream.spark.landing.outputs import LakeOutput
from twinstream.spark.landing.partitions import marked
from twinstream.spark.landing.split_tables import BATCH_COLUMN, TableSplit
from twinstream.spark.landing.table_fit import check_columns
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.pipeline.tables.column_change import ColumnChange
from twinstream.spark.pipeline.tables.iceberg_batch import IcebergBatch, landed, last_landed
from twinstream.spark.pipeline.tables.iceberg_change import (
    add_snapshot,
    changed,
    created,
    iceberg_schema,
)
from twinstream.spark.pipeline.tables.iceberg_columns import change_columns, refuse_joined
from twinstream.spark.pipeline.tables.iceberg_fit import refuse_foreign
from twinstream.spark.pipeline.tables.iceberg_partitions import (
    refuse_other_partitions,
    table_partitions,
)
from twinstream.spark.pipeline.tables.iceberg_replacement import Replacement
from twinstream.spark.pipeline.tables.parquet_files import scanned, schema_of
from twinstream.spark.pipeline.tables.sink import LettersWriter, Writer

__all__ = ["IcebergSink"]


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

    def existing(self, prefix: str) -> list[str]:
        """Return the tables of the catalog's namespace whose names begin with a prefix."""
        return self._tables.existing(prefix)

    def output(self, name: str, split: TableSplit, new: Sequence[str] = ()) -> LakeOutput:
        """Return where tasks write files for tables, which are created if need be.

        The names of the files begin with `name`.
        """
        tables = [*split.tables(self.existing), *new]
        homes = {each: home_of(self._existing(each, split.columns(each))) for each in tables}
        return LakeOutput(self.lake, name, homes)

    def _existing(self, table: str, columns: pa.Schema) -> Table:
        found = self._tables.open(table)
        if found is not None:
            return found
        self._tables.check()
        return created(self._tables, table, columns)

    def home(self, table: str) -> Path:
        """Return the folder of a table that exists, beginning with the name of its bucket."""
        found = self._tables.open(table)
        if found is None:
            raise StorageError(f"the table {self._tables.name(table)} was removed; restore it")
        return Path(home_of(found))

    def reaches(self, table: str, number: int) -> bool:
        """Return whether the table has rows of a batch with this number or a higher number."""
        found = self._tables.open(table)
        if found is None:
            return False
        files = self._data_files(table, found, f"{BATCH_COLUMN} >= {number}")
        # Another program may have merged files without keeping the bounds of this column.
        wanted = ds.field(BATCH_COLUMN) >= number
        return any(self._has_rows(path_of(each.file_path), wanted) for each in files)

    def _has_rows(self, file: Path, wanted: ds.Expression) -> bool:
        rows = ds.dataset([str(file)], filesystem=arrow_files(self.lake))
        return any(part.num_rows for part in rows.to_batches(columns=[BATCH_COLUMN], filter=wanted))

    def holds(self, table: str, number: int) -> bool:
        """Return whether a source has landed the batch with this number, or a later one.

        Only the properties of the table are read, in which each source has its last batch.
        """
        found = self._tables.open(table)
        return found is not None and last_landed(found) >= number

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
        refuse_foreign(name, table.schema())
        return self._tables.asked("read", name, lambda: data_files(table, wanted))

    def check(self, table: str, files: Sequence[Path]) -> None:
        """Raise `SchemaError` if the columns of the files do not fit the table."""
        found = self._tables.open(table)
        if found is not None and files:
            columns = schema_of(files, self.lake)
            iceberg_schema(table, columns)
            refuse_other_partitions(table, found.metadata, columns)
            check_columns(Path(table).name, arrow_columns(found.schema()), columns)

    def replace(self, table: str, batches: Mapping[int, Sequence[TaskFile]]) -> None:
        """Replace all rows of batches with the rows of files, in one transaction.

        The files are in the folder of the table. Without files, the rows of a batch are removed. A
        file that also has rows of other batches, because another program has merged files, is
        written again without those rows. Raises `SchemaError`, before any change, if the columns of
        the files do not fit the table.
        """
        files = [file for inside in batches.values() for file in inside]
        paths = [file.path for file in files]
        self.check(table, paths)
        if not files and self._tables.open(table) is None:
            return
        home = home_of(self._existing(table, schema_of(paths, self.lake)))
        output = LakeOutput(self.lake, "replaced-", {table: home})
        changed(self._tables, table, Replacement(table, batches.keys(), files, output))

    def schemas(self, table: str) -> Iterator[pa.Schema]:
        """Yield the columns of a table, unless it does not exist."""
        found = self._tables.open(table)
        if found is not None:
            refuse_foreign(table, found.schema())
            yield marked(arrow_columns(found.schema()), table_partitions(found.metadata))

    def change(self, table: str, change: ColumnChange, source: SourceConfig) -> None:
        """Widen and rename columns of a table, as metadata and in one transaction.

        Raises `SchemaError`, before any change, if two columns would become one.
        """
        refuse_joined(table, change)
        changed(self._tables, table, lambda found: change_columns(table, found, change))

    def renew(self, table: str) -> None:
        """Give the table a new snapshot, so that commits on earlier ones fail."""
        found = self._tables.open(table)
        if found is not None and BATCH_COLUMN in found.schema().column_names:
            changed(self._tables, table, add_snapshot)

    def add(
        self,
        table: str,
        files: Mapping[int, Sequence[TaskFile]],
        plan: LettersPlan,
        writer: Writer,
    ) -> None:
        """Add the rows of files in one transaction, unless the plan has done it already."""
        batch = IcebergBatch(self._tables, plan.number, LettersWriter(writer, plan))
        added = [each for inside in files.values() for each in inside]
        found = schema_of([each.path for each in added], self.lake)
        columns = pa.schema([each.remove_metadata() for each in found], found.metadata)
        batch.put(table, added, columns)

    def has_added(self, table: str, plan: LettersPlan, writer: Writer) -> bool:
        """Return whether `add` has added rows of a plan to a table."""
        found = self._tables.open(table)
        letters = LettersWriter(writer, plan)
        return found is not None and landed(found, letters) >= plan.number
