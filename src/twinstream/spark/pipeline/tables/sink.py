"""The common interface of all kinds of tables, which add each batch atomically and once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa
from attrs import frozen

from twinstream.lake.letters_plan import LettersPlan
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.task_report import TaskFile
from twinstream.spark.landing.outputs import LakeOutput
from twinstream.spark.landing.split_tables import TableSplit
from twinstream.spark.landing.tables import BatchWriter
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.pipeline.tables.column_change import ColumnChange

__all__ = ["LettersWriter", "Sink", "SourceWriter", "Writer"]


class Writer(Protocol):
    """The source that writes a batch: its name and its ID."""

    @property
    def name(self) -> str:
        """The name of the source."""
        ...

    @property
    def id(self) -> str:
        """The ID of the source, the same for all its batches."""
        ...

    @property
    def seq(self) -> str:
        """The column with the sequences of the source, or with the revisions of its bucket."""
        ...


@frozen
class SourceWriter:
    """A source as the writer of its batches."""

    name: str
    id: str
    seq: str


class LettersWriter:
    """The writer of the dead letters that a plan lands, in one transaction of each table.

    Its ID has the folder of the plan, which is unique. The numbers of plans begin at 0 again if an
    earlier journal is restored.
    """

    def __init__(self, source: Writer, plan: LettersPlan) -> None:
        # No source has a dot in its name.
        self.name: Final = f"{source.name}.letters"
        self.id: Final = f"{source.id}.letters.{plan.folder}"
        self.seq: Final = source.seq


class Sink(Protocol):
    """The tables of a pipeline. A parameter `table` is a path below the pipeline's folder."""

    @property
    def lake(self) -> ObjectFolder | None:
        """What the paths of files are relative to if the tables are on an object store."""
        ...

    def batch(self, number: int, writer: Writer) -> BatchWriter:
        """Return a writer for a batch. It can also finish an interrupted batch."""
        ...

    def existing(self, prefix: str) -> list[str]:
        """Return the tables of the lake whose names begin with a prefix."""
        ...

    def output(self, name: str, split: TableSplit, new: Sequence[str] = ()) -> LakeOutput | None:
        """Return where tasks write files for the tables of `split`, on an object store.

        The names of the files begin with `name`. On a file system, they need a folder of their own.
        `new` are further tables, which are created if a catalog decides where they are.
        """
        ...

    def home(self, table: str) -> Path:
        """Return the folder of a table that exists, relative to `lake`."""
        ...

    def reaches(self, table: str, number: int) -> bool:
        """Return whether the table has a batch with this number or a higher number."""
        ...

    def holds(self, table: str, number: int) -> bool:
        """Return whether the table has a batch with this number.

        The cost does not grow with the number of batches.
        """
        ...

    def scan(
        self, table: str, columns: Sequence[str], seq: str, low: int, high: int, since: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield columns of the rows whose sequence (column `seq`) is in `[low, high)`.

        Only batches numbered `since` or higher are read, so that older files are not opened. A
        table that does not exist has no rows.
        """
        ...

    def files(self, table: str, batches: Collection[int]) -> dict[int, list[Path]]:
        """Return the files that may have rows of batches, by the number of the batch.

        They may have rows of other batches, too.
        """
        ...

    def check(self, table: str, files: Sequence[Path]) -> None:
        """Raise `SchemaError` if the columns of the files do not fit the table."""
        ...

    def replace(self, table: str, batches: Mapping[int, Sequence[TaskFile]]) -> None:
        """Replace all rows of batches with the rows of files, atomically.

        `batches` has the files by the number of the batch. Without files, the rows of a batch are
        removed. Raises `SchemaError`, before any change, if the columns of the files do not fit the
        table.
        """
        ...

    def schemas(self, table: str) -> Iterator[pa.Schema]:
        """Yield the columns of a table: those of its log, or of each file, the newest file first.

        They include the columns with the values of partitions, which `partition_columns` names. A
        table that does not exist has none.
        """
        ...

    def change(self, table: str, change: ColumnChange, source: SourceConfig) -> None:
        """Widen and rename columns of a table of a source, which exists, in all rows, atomically.

        Raises `SchemaError`, before any change, if a row has two values of one column.
        """
        ...

    def add(
        self,
        table: str,
        files: Mapping[int, Sequence[TaskFile]],
        plan: LettersPlan,
        writer: Writer,
    ) -> None:
        """Add rows to batches of a table, unless the plan has added them already.

        `files` has the files of each batch, by its number. Local files are kept; in a lake on an
        object store, the files become those of the table. Call `check` before the plan is stored.
        """
        ...

    def renew(self, table: str) -> None:
        """Let changes fail that a process began before this call, and that it makes after it.

        A table that cannot be changed without its lock may do nothing.
        """
        ...

    def has_added(self, table: str, plan: LettersPlan, writer: Writer) -> bool:
        """Return whether `add` has added rows of a plan to a table."""
        ...
