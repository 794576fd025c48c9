"""Add batches to tables: the interface for all kinds of tables, and its class for Parquet tables.

A Parquet table has a folder for each batch. The folder becomes visible atomically.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow.parquet as pq
from attrs import frozen

from twinstream.disk.safe_files import sync
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.task_report import TaskFile, TaskReport, files_by_table
from twinstream.spark.errors import JournalError
from twinstream.spark.landing.batch_folders import BATCH_FOLDER
from twinstream.spark.landing.land_job import LandJob
from twinstream.spark.landing.outputs import LakeOutput
from twinstream.spark.landing.staging import Staging, Written, files_in
from twinstream.spark.landing.table_fit import check_fit

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "BatchWriter",
    "Fitting",
    "ParquetBatch",
    "folders_in",
    "local_url",
    "put_landed",
    "refuse_taken",
]


def local_url(path: Path) -> str:
    """Return the URL of an absolute path on the local file system.

    For a path without a scheme, Spark would use its default file system. `Path.as_uri` does not
    work: it replaces `=` by `%3D`, and Spark does not decode percent escapes.
    """
    return f"file://{path}"


def folders_in(root: Path, prefix: str) -> list[str]:
    """Return the names of the folders in `root` that begin with a prefix."""
    try:
        with os.scandir(root) as found:
            return sorted(e.name for e in found if e.name.startswith(prefix) and e.is_dir())
    except FileNotFoundError:
        return []


class BatchWriter(Protocol):
    """The writer of one batch to tables. Files are written to `folder` and then added to tables.

    If an earlier attempt has added the batch to a table, the table is not changed.
    """

    def prepared(
        self,
        tables: Sequence[str],
        columns: Callable[[str], pa.Schema],
        earlier: Collection[str] = (),
    ) -> Path | LakeOutput:
        """Return where tasks write the files of the batch.

        `tables` are the tables that may get files, and `columns` returns the columns of one.
        `earlier` are those that got rows of the batch before.
        """
        ...

    @property
    def lake(self) -> ObjectFolder | None:
        """The lake of the tables if it is on an object store."""
        ...

    def existing(self, prefix: str) -> list[str]:
        """Return the tables of the lake whose names begin with a prefix."""
        ...

    def found(self, table: str) -> Written | None:
        """Return the files of the batch that the table already has, or `None` without the batch."""
        ...

    def put(self, table: str, files: Sequence[TaskFile], columns: pa.Schema) -> Written:
        """Add all files of the batch to a table atomically, unless the table has the batch.

        Return the files of the batch in the table.
        """
        ...

    @property
    def written(self) -> Sequence[Written]:
        """The files of the batch, one item for each call of `put`."""
        ...

    def close(self) -> None:
        """Remove files that were not added to a table."""
        ...


@frozen
class Fitting:
    """The columns of files that fit a table, and the state of the table's folder then.

    Any process that adds or replaces a batch changes the state, which is the inode of the folder
    and the time of its last change.
    """

    columns: pa.Schema
    state: tuple[int, int]

    @classmethod
    def of(cls, table: Path, files: Sequence[Path]) -> Fitting:
        """Return the columns of the first file, with the state of the table now."""
        try:
            found = table.stat()
        except FileNotFoundError:
            return cls(pq.read_schema(files[0]), (0, 0))
        return cls(pq.read_schema(files[0]), (found.st_ino, found.st_mtime_ns))


class ParquetBatch:
    """The writer of one batch to Parquet tables below `root`, with one rename per table.

    `writer` is the name of the source or stream that lands the batch. `fits` maps a table to
    the columns of the last files that were compared with the table. Files with the same columns are
    not compared again, because a comparison reads folders of the table, unless another process has
    changed the table since. The caller may pass one dictionary for all batches.
    """

    def __init__(
        self,
        root: Path,
        staging: Path,
        number: int,
        writer: str,
        fits: dict[str, Fitting] | None = None,
    ) -> None:
        self._root: Final = root
        self._fits: Final = {} if fits is None else fits
        self._number: Final = number
        self._staging: Final = Staging(staging, writer)
        self._written: list[Written] = []

    @property
    def lake(self) -> None:
        """`None`, because the tables are on a file system."""

    @property
    def folder(self) -> Path:
        """The folder for the files of the batch until they are added to tables."""
        return self._staging.folder

    def existing(self, prefix: str) -> list[str]:
        """Return the tables of the lake whose names begin with a prefix."""
        return folders_in(self._root, prefix)

    def prepared(
        self,
        tables: Sequence[str],
        columns: Callable[[str], pa.Schema],
        earlier: Collection[str] = (),
    ) -> Path | LakeOutput:
        """Return the folder."""
        return self.folder

    def found(self, table: str) -> Written | None:
        """Return the files of the batch that the table already has, or `None` without the batch."""
        home = self._home(table)
        return Written(table, files_in(home), is_earlier=True) if home.exists() else None

    def put(self, table: str, files: Sequence[TaskFile], columns: pa.Schema) -> Written:
        """Add the files of the batch to a table, unless the table has the batch.

        Return the files of the batch in the table. Raises `SchemaError` if the columns of the files
        do not fit the table.
        """
        target = self._home(table)
        written = self.found(table)
        if written is None:
            paths = [each.path for each in files]
            self._check_fit(table, paths)
            try:
                written = Written(table, self._staging.put(paths, target))
                self._record_fit(table, written.files)
            except OSError:
                written = self.found(table)
                if written is None:
                    raise  # another driver was not the reason
        if written.is_earlier:
            sync([target.parent])  # the other attempt may have ended before it did this
        self._written.append(written)
        return written

    def _check_fit(self, table: str, files: Sequence[Path]) -> None:
        known = self._fits.get(table)
        if files and (known is None or known != Fitting.of(self._root / table, files)):
            check_fit(self._root / table, files)

    def _record_fit(self, table: str, files: Sequence[Path]) -> None:
        if files:
            self._fits[table] = Fitting.of(self._root / table, files)

    def _home(self, table: str) -> Path:
        return self._root / table / f"{BATCH_FOLDER}{self._number}"

    @property
    def written(self) -> Sequence[Written]:
        """The files of the batch, one item for each call of `put`."""
        return self._written

    def close(self) -> None:
        """Remove files that were not added to a table."""
        self._staging.close()


def put_landed(tables: BatchWriter, job: LandJob, reports: Sequence[TaskReport]) -> None:
    """Add the files that the tasks of a job wrote to its tables.

    If an earlier attempt added files to a table for which this attempt has no files, these files
    are also in `tables.written`.
    """
    files = files_by_table(reports)
    # This attempt has no files for such a table if the stream has removed the messages since.
    others = (name for name in job.tables(tables.existing) if name not in files)
    names = {*files, *(name for name in others if tables.found(name) is not None)}
    # The table of dead letters is last, so that no dead letters are added if another table refuses
    # its rows.
    for table in sorted(names, key=lambda name: (name == job.names.dead_letters, name)):
        tables.put(table, files.get(table, ()), job.columns(table))


def refuse_taken(
    reaches: Callable[[str, int], bool], tables: Iterable[str], number: int, owner: str
) -> None:
    """Raise `JournalError` if a table already has rows of batch `number` or a later batch.

    Call this before the batch begins. Without this check, `BatchWriter.put` would take such rows
    for rows of this batch and not add its files. `reaches` returns whether a table has a batch
    with a number or a higher number. `owner` names the stream or source that lands the batch, for
    the error.
    """
    for table in tables:
        if reaches(table, number):
            raise JournalError(
                f"table {table} has rows of batch {number} or later, which {owner} has not landed:"
                " they come from another writer, or from a journal that was lost; name another"
                " table, or land into a new folder"
            )
