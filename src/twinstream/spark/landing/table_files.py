"""Write the Parquet files of a task: one for each table and partition that its rows have."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from twinstream.lake.task_report import TaskFile
from twinstream.spark.errors import OptionError
from twinstream.spark.landing.file_settings import FileSettings
from twinstream.spark.landing.footers import Footer
from twinstream.spark.landing.outputs import FolderOutput, LakeOutput
from twinstream.spark.landing.split_tables import BATCH_COLUMN, Place

__all__ = ["BOUNDED", "TableFiles", "task_file"]

# The columns of sequences, or of revisions of a bucket, and the column of the time of each.
_TIME_BESIDE: Final = {
    "seq": "timestamp",
    "_seq": "_timestamp",
    "revision": "time",
    "_revision": "_time",
}

BOUNDED: Final = (*_TIME_BESIDE, BATCH_COLUMN, *_TIME_BESIDE.values())
"""The columns whose bounds a task may report."""

# The number of bytes of rows, of all tables together, that are buffered before they are written as
# row groups. Large row groups make files small and reads fast. While a worker writes the rows, it
# has them in memory twice.
_HELD: Final = 32 * 1024 * 1024


def task_file(
    place: Place,
    footer: Footer,
    seq_column: str,
    size: int,
    further: Iterable[str] = (),
) -> TaskFile:
    """Return what a task reports about a file of `size` bytes.

    `further` are columns, besides those of the message and its batch, whose bounds are reported.
    """
    # A member of the payload may have the name of another of these columns.
    names = (seq_column, BATCH_COLUMN, _TIME_BESIDE[seq_column])
    found = {name: footer.bounds(name) for name in names}
    nulls: dict[str, int] = {}
    for name in further:
        found[name], count = footer.written(name)
        if count is not None:
            nulls[name] = count
    bounds = {name: each for name, each in found.items() if each is not None}
    # Sequences are decimals if uint64=decimal.
    first, last = map(int, bounds[seq_column])
    rows = footer.rows
    return TaskFile(
        place.table, footer.path, rows, first, last, size, bounds, place.partition, nulls
    )


class _Open:
    """A file that is being written, and its buffered rows."""

    def __init__(self, path: Path, file: pa.NativeFile, schema: pa.Schema) -> None:
        self.path: Final = path
        self.size = 0
        """The size in bytes of what is written."""
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
            self.size = self._file.tell()

    def close(self) -> None:
        self._writer.close()
        self.size = self._file.tell()
        self._file.close()

    def report(self, place: Place, seq_column: str, further: Iterable[str]) -> TaskFile:
        footer = Footer(self.path, self._footer[0])
        return task_file(place, footer, seq_column, self.size, further)


def _texts(schema: pa.Schema) -> list[str]:
    """Return the names of the columns to write with a dictionary: all text columns.

    The values of other columns, such as sequences, times and payloads, hardly repeat. With
    dictionaries for all columns, writing took twice as long (0.8 instead of 0.4 µs for a row of 11
    columns).
    """
    return [each.name for each in schema if each.type == pa.string()]


class TableFiles:
    """The open files of a task, one for each table and partition. A local `folder` must exist.

    A file that has reached its size is closed, and another one is begun. Rows of a table whose
    folder is unknown are not written: `missing` has its name.
    """

    def __init__(self, folder: Path | LakeOutput, settings: FileSettings | None = None) -> None:
        self._output: Final = FolderOutput(folder) if isinstance(folder, Path) else folder
        self._settings: Final = settings or FileSettings()
        self._open: Final[dict[Place, _Open]] = {}
        self._full: Final[list[tuple[Place, _Open]]] = []
        self._partitions: Final[set[Place]] = set()
        self._missing: Final[set[str]] = set()
        self._bytes = 0

    def add(self, place: Place, rows: pa.RecordBatch) -> None:
        """Add rows to the file of a partition.

        Raises `OptionError` if the task has too many partitions, whose open files need memory.
        """
        found = self._open.get(place)
        if found is None:
            if self._output.lacks(place.table):
                self._missing.add(place.table)
                return
            self._refuse_many(place)
            path, file = self._output.open(place.table, place.partition)
            found = self._open[place] = _Open(path, file, rows.schema)
        found.add(rows)
        self._bytes += rows.nbytes
        if self._bytes >= min(_HELD, self._settings.size):
            self._flush()

    @property
    def missing(self) -> tuple[str, ...]:
        """The tables that must exist before their rows can be written, sorted."""
        return tuple(sorted(self._missing))

    def finish(self, seq_column: str) -> tuple[TaskFile, ...]:
        """Write the buffered rows, make the files durable, and return them.

        `seq_column` is the name of the column with the sequences.
        """
        self._flush()
        for each in self._open.values():
            each.close()
        further = self._settings.bounds
        files = [*self._full, *self._open.items()]
        found = tuple(each.report(place, seq_column, further) for place, each in files)
        self._output.finish([each.path for each in found])
        return found

    def _refuse_many(self, place: Place) -> None:
        if place.partition:
            self._partitions.add(place)
        most = self._settings.max_partitions
        if len(self._partitions) > most:
            raise OptionError(
                "max_partitions",
                f"a task has rows of more than {most} partitions, such as"
                f" {place.partition} of the table {place.table}; nothing of the batch was landed:"
                " set a greater max_partitions, which takes more memory, or land into another table"
                " with fewer partitions",
            )

    def _flush(self) -> None:
        for place, each in list(self._open.items()):
            each.flush()
            if each.size >= self._settings.size:
                each.close()
                self._full.append((place, self._open.pop(place)))
        self._bytes = 0
