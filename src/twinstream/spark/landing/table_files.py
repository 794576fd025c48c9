"""Write the Parquet files of a task: one for each table for which the task has rows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from twinstream.lake.objects.files import arrow_files
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.task_report import TaskFile
from twinstream.spark.landing.footers import Footer
from twinstream.spark.landing.outputs import FolderOutput, LakeOutput
from twinstream.spark.landing.split_tables import BATCH_COLUMN

__all__ = ["BOUNDED", "TableFiles", "task_file"]

BOUNDED: Final = ("seq", "_seq", BATCH_COLUMN, "timestamp", "_timestamp")
"""The columns whose bounds a task reports."""

# The number of bytes of rows, of all tables together, that are buffered before they are written as
# row groups. Large row groups make files small and reads fast. While a worker writes the rows, it
# has them in memory twice.
_HELD: Final = 32 * 1024 * 1024


def task_file(
    table: str, footer: Footer, seq_column: str, lake: ObjectFolder | None = None, size: int = 0
) -> TaskFile:
    """Return what a task reports about a file. Without `size`, the file is asked for its size.

    If `lake` is given, the path of the file is relative to it.
    """
    found = {name: footer.bounds(name) for name in BOUNDED}
    bounds = {name: each for name, each in found.items() if each is not None}
    # Sequences are decimals if uint64=decimal.
    first, last = map(int, bounds[seq_column])
    size = size or arrow_files(lake).get_file_info(str(footer.path)).size
    return TaskFile(table, footer.path, footer.rows, first, last, size, bounds)


class _Open:
    """A file that is being written, and its buffered rows."""

    def __init__(self, path: Path, file: pa.NativeFile, schema: pa.Schema) -> None:
        self.path: Final = path
        self._file: Final = file
        self._buffered: list[pa.RecordBatch] = []
        self._footer: Final[list[pq.FileMetaData]] = []
        self._writer: Final = pq.ParquetWriter(
            file,
            schema,
            compression="snappy",
            use_dictionary=_texts(schema),
            metadata_collector=self._footer,
        )

    def add(self, rows: pa.RecordBatch) -> None:
        self._buffered.append(rows)

    def flush(self) -> None:
        held, self._buffered = self._buffered, []
        if held:
            self._writer.write_table(pa.Table.from_batches(held))

    def close(self, table: str, seq_column: str) -> TaskFile:
        self._writer.close()
        size = self._file.tell()
        self._file.close()
        return task_file(table, Footer(self.path, self._footer[0]), seq_column, size=size)


def _texts(schema: pa.Schema) -> list[str]:
    """Return the names of the columns to write with a dictionary: all text columns.

    The values of other columns, such as sequences, times and payloads, hardly repeat. With
    dictionaries for all columns, writing took twice as long (0.8 instead of 0.4 µs for a row of 11
    columns).
    """
    return [each.name for each in schema if each.type == pa.string()]


class TableFiles:
    """The open files of a task, one file per table. A local `folder` must exist."""

    def __init__(self, folder: Path | LakeOutput) -> None:
        self._output: Final = FolderOutput(folder) if isinstance(folder, Path) else folder
        self._open: Final[dict[str, _Open]] = {}
        self._bytes = 0

    def add(self, table: str, rows: pa.RecordBatch) -> None:
        """Add rows to the file of a table."""
        found = self._open.get(table)
        if found is None:
            path, file = self._output.open(table)
            found = self._open[table] = _Open(path, file, rows.schema)
        found.add(rows)
        self._bytes += rows.nbytes
        if self._bytes >= _HELD:
            self._flush()

    def finish(self, seq_column: str) -> tuple[TaskFile, ...]:
        """Write the buffered rows, make the files durable, and return them.

        `seq_column` is the name of the column with the sequences.
        """
        self._flush()
        found = tuple(each.close(table, seq_column) for table, each in self._open.items())
        self._output.finish([each.path for each in found])
        return found

    def _flush(self) -> None:
        for each in self._open.values():
            each.flush()
        self._bytes = 0
