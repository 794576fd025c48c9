"""Replace the rows of batches of an Iceberg table, in one commit."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow.dataset as ds
import pyarrow.parquet as pq
from attrs import frozen
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from twinstream.lake.iceberg.columns import arrow_columns
from twinstream.lake.iceberg.data_files import bounds_of, data_file, path_of, url_of
from twinstream.lake.iceberg.tables import data_files
from twinstream.lake.objects.files import arrow_files
from twinstream.lake.task_report import TaskFile
from twinstream.spark.landing.outputs import LakeOutput
from twinstream.spark.landing.partition_rows import divided
from twinstream.spark.landing.split_tables import BATCH_COLUMN, Place
from twinstream.spark.landing.table_files import TableFiles
from twinstream.spark.pipeline.tables.iceberg_change import (
    add_columns,
    transaction_on,
)
from twinstream.spark.pipeline.tables.iceberg_partitions import known_partitions, record_of
from twinstream.spark.pipeline.tables.seq_column import seq_column

__all__ = ["Replacement"]


@frozen
class Replacement:
    """A change of a table that replaces all rows of batches with those of the files `added`.

    `output` is for files with the rows of other batches in the files that are removed.
    """

    table: str
    batches: Collection[int]
    added: Sequence[TaskFile]
    output: LakeOutput

    def __call__(self, table: Table) -> None:
        """Commit on this state of the table, unless it has the files already."""
        numbers = sorted(self.batches)
        wanted = f"{BATCH_COLUMN} >= {numbers[0]} AND {BATCH_COLUMN} <= {numbers[-1]}"
        old = data_files(table, wanted)
        own = {url_of(each.path) for each in self.added}
        if own and own <= {each.file_path for each in old}:
            return  # the answer to an earlier commit was lost
        transaction = transaction_on(table)
        if self.added:
            columns = pq.read_schema(
                str(self.added[0].path), filesystem=arrow_files(self.output.lake)
            )
            add_columns(self.table, transaction, columns)
        metadata = transaction.table_metadata
        schema, spec = metadata.schema(), metadata.spec()
        removed, kept = self._removed(table, old)
        if not removed and not self.added:
            return
        with transaction.update_snapshot().overwrite() as overwrite:
            for each in removed:
                overwrite.delete_data_file(each)
            for file in (*self.added, *kept):
                values = record_of(file.partition, metadata)
                overwrite.append_data_file(data_file(file, schema, spec.spec_id, values))
        transaction.commit_transaction()

    def _removed(
        self, table: Table, old: Sequence[DataFile]
    ) -> tuple[list[DataFile], list[TaskFile]]:
        """Return the files to remove, and new files with their rows of other batches."""
        removed: list[DataFile] = []
        kept: list[TaskFile] = []
        seq = seq_column(arrow_columns(table.schema()))
        for each in old:
            bounds = bounds_of(each, table.schema(), BATCH_COLUMN)
            if bounds is not None and bounds[0] == bounds[1] and bounds[0] in self.batches:
                removed.append(each)
                continue
            path = str(path_of(each.file_path))
            rows = ds.dataset([path], filesystem=arrow_files(self.output.lake))
            own = ds.field(BATCH_COLUMN).isin(sorted(self.batches))
            if not any(
                part.num_rows for part in rows.to_batches(columns=[BATCH_COLUMN], filter=own)
            ):
                continue
            removed.append(each)
            rest, partitions = TableFiles(self.output), known_partitions(self.table, table.metadata)
            for batch in rows.to_batches(filter=~own):
                for partition, inside in divided(batch, partitions) if batch.num_rows else ():
                    rest.add(Place(self.table, partition), inside)
            kept += rest.finish(seq)
        return removed, kept
