"""Land a batch in Iceberg tables: tasks write Parquet files, the driver commits them.

Each batch of a source is one transaction of a table. The transaction adds the files, and sets the
property `twinstream.txn.<ID of the source>` to the number of the batch. The catalog refuses it if
the table has got another snapshot since the driver loaded it. So if a batch is landed again after
a crash, or by two drivers, the second one finds this number in the table and writes nothing.

The number is not in the summary of the snapshot, because snapshots expire.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import ancestors_of

from twinstream.lake.errors import JournalError
from twinstream.lake.iceberg.data_files import bounds_of, data_file, path_of
from twinstream.lake.iceberg.mapping import missing_mapping
from twinstream.lake.iceberg.retention import trim
from twinstream.lake.iceberg.tables import IcebergTables, data_files, home_of
from twinstream.lake.objects.files import arrow_files
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.task_report import Bounds, TaskFile
from twinstream.spark.landing.outputs import LakeOutput
from twinstream.spark.landing.split_tables import BATCH_COLUMN
from twinstream.spark.landing.staging import Written
from twinstream.spark.pipeline.tables.iceberg_change import (
    add_columns,
    changed,
    created,
    transaction_on,
)
from twinstream.spark.pipeline.tables.iceberg_partitions import record_of
from twinstream.spark.pipeline.tables.sink import Writer

__all__ = ["IcebergBatch", "landed", "last_landed"]

# The beginning of the property with the last batch of a source, before the source's ID.
_LANDED: Final = "twinstream.txn."

# The keys in the summary of a batch's snapshot.
_SOURCE: Final = "twinstream.source"
_BATCH: Final = "twinstream.batch"


def landed(table: Table, writer: Writer) -> int:
    """Return the last batch of a source in a table, or -1 if it has none."""
    return int(table.properties.get(f"{_LANDED}{writer.id}", -1))


def last_landed(table: Table) -> int:
    """Return the last batch of any source in a table, or -1 if it has none."""
    names = (name for name in table.properties if name.startswith(_LANDED))
    # The numbers of plans for letters are others. Their names have another dot.
    own = (name for name in names if "." not in name.removeprefix(_LANDED))
    return max((int(table.properties[name]) for name in own), default=-1)


class IcebergBatch:
    """The writer of one batch. Each table gets the files of the batch in one transaction."""

    def __init__(self, tables: IcebergTables, number: int, writer: Writer) -> None:
        self._tables: Final = tables
        self._number: Final = number
        self._writer: Final = writer
        self._name: Final = f"{writer.name}-{number:09d}-"
        self._earlier: frozenset[str] = frozenset()
        self._written: list[Written] = []

    @property
    def lake(self) -> ObjectFolder:
        """All buckets, to which the paths of files are relative."""
        return self._tables.lake

    def existing(self, prefix: str) -> list[str]:
        """Return the tables of the lake whose names begin with a prefix."""
        return self._tables.existing(prefix)

    def prepared(
        self,
        tables: Sequence[str],
        columns: Callable[[str], pa.Schema],
        earlier: Collection[str] = (),
    ) -> LakeOutput:
        """Create the tables that do not exist, and return where tasks write their files.

        The catalog decides where a table is, and some servers store only objects below it.
        `earlier` are the tables that got rows of the batch before.
        """
        self._earlier |= frozenset(earlier)
        homes = {table: home_of(self._existing(table, columns)) for table in tables}
        return LakeOutput(self.lake, self._name, homes)

    def _existing(self, table: str, columns: Callable[[str], pa.Schema]) -> Table:
        found = self._tables.opened(table)
        if found is None and table in self._earlier:
            raise self._lost(table, "is not in the catalog")
        return found or created(self._tables, table, columns(table))

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

        def change(found: Table) -> Sequence[TaskFile]:
            if self._is_in(found):
                return self._files(found, table)
            self._refuse_lost(table, found)
            if files:
                self._commit(table, found, files, columns)
            return files

        return self._wrote(table, changed(self._tables, table, change), files)

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

    def _is_in(self, table: Table) -> bool:
        return landed(table, self._writer) >= self._number

    def _refuse_lost(self, name: str, table: Table) -> None:
        """Raise `JournalError` if another program has removed batches from the table.

        It may have made the table again, registered older metadata of it, or set the current
        snapshot to an earlier one.
        """
        last, current = landed(table, self._writer), _current_batch(table, self._writer)
        if name in self._earlier and last < self._number - 1:
            raise self._lost(name, f"does not have batch {self._number - 1}")
        if current is not None and current < last:
            raise self._lost(name, f"was set back from batch {last} to batch {current}")

    def _lost(self, name: str, what: str) -> JournalError:
        return JournalError(
            f"the table {self._tables.name(name)} {what}, although the source {self._writer.name}"
            f" has landed batch {self._number - 1} in it: restore the newest state of the table, or"
            " land into a new folder and new tables"
        )

    def _commit(
        self, name: str, table: Table, files: Sequence[TaskFile], columns: pa.Schema
    ) -> None:
        """Add the files, and the columns that the table lacks, to exactly this state of a table.

        A commit on a later state, which may have the batch, would add the batch twice. Raises
        `CommitFailedException` if another program has committed since.
        """
        transaction = transaction_on(table)
        add_columns(name, transaction, columns)
        own = {f"{_LANDED}{self._writer.id}": str(self._number)}
        transaction.set_properties(own | missing_mapping(transaction.table_metadata))
        metadata = transaction.table_metadata
        schema, spec = metadata.schema(), metadata.spec()
        summary = {_SOURCE: self._writer.name, _BATCH: str(self._number)}
        with transaction.update_snapshot(snapshot_properties=summary).merge_append() as append:
            for file in files:
                values = record_of(file.partition, metadata)
                append.append_data_file(data_file(file, schema, spec.spec_id, values))
        trim(transaction)
        transaction.commit_transaction()

    def _files(self, table: Table, name: str) -> list[TaskFile]:
        """Return the files with rows of the batch, sorted."""
        found = data_files(table, f"{BATCH_COLUMN} = {self._number}")
        files = (self._described(table, name, each) for each in found)
        return sorted((each for each in files if each.rows), key=lambda each: each.path)

    def _described(self, table: Table, name: str, file: DataFile) -> TaskFile:
        """Return how many rows of the batch a file has, and the bounds of their sequences.

        A file that another program has merged may have rows of other batches. So its rows are read.
        """
        schema, path, column = table.schema(), path_of(file.file_path), self._writer.seq
        batches, seqs = (bounds_of(file, schema, each) for each in (BATCH_COLUMN, column))
        rows = file.record_count
        if seqs is None or batches != (self._number, self._number):
            rows, seqs = self._read(path, column)
        first, last = map(int, seqs)
        return TaskFile(name, path, rows, first, last, file.file_size_in_bytes)

    def _read(self, path: Path, column: str) -> tuple[int, Bounds]:
        """Return the number of rows of the batch in a file, and the bounds of their sequences."""
        file = ds.dataset([str(path)], filesystem=arrow_files(self.lake))
        rows = 0
        found: list[Bounds] = []
        for part in file.to_batches(
            columns=[column], filter=ds.field(BATCH_COLUMN).isin([self._number])
        ):
            if part.num_rows:
                rows += part.num_rows
                ends = pc.min_max(part.column(0)).as_py()
                found.append((ends["min"], ends["max"]))
        low = min((each for each, _ in found), default=0)
        return rows, (low, max((each for _, each in found), default=0))


def _current_batch(table: Table, writer: Writer) -> int | None:
    """Return the last batch of a source in the history of the current snapshot, if it is known."""
    for each in ancestors_of(table.current_snapshot(), table.metadata):
        summary = each.summary
        if summary is not None and summary[_SOURCE] == writer.name:
            return int(summary[_BATCH] or 0)
    return None
