"""Tables that grow by whole batches, and the steps to land a batch in any kind of table.

A Parquet table has a folder for each batch, which appears atomically.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow.parquet as pq

from twinstream.spark.errors import JournalError
from twinstream.spark.landing.batch_folders import BATCH_FOLDER
from twinstream.spark.landing.land_job import LandJob, by_table
from twinstream.spark.landing.staging import Staging, Written, files_in
from twinstream.spark.landing.table_files import TableFile
from twinstream.spark.landing.table_fit import check_fit

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["BatchWriter", "ParquetBatch", "local_url", "put_landed", "refuse_taken"]


def local_url(path: Path) -> str:
    """Return an absolute path as a URL, which Spark reads as local under any default file system.

    Not ``Path.as_uri``: Spark takes a percent sign literally, and ``=`` would become ``%3D``.
    """
    return f"file://{path}"


class BatchWriter(Protocol):
    """Puts the files of one batch into tables; a table that already has the batch is not changed.

    The files are written to ``folder`` first.
    """

    @property
    def folder(self) -> Path:
        """The folder for files of the batch before they are put into tables."""
        ...

    def has(self, table: str) -> bool:
        """Return whether the table has the batch already."""
        ...

    def put(self, table: str, files: Sequence[Path], columns: StructType) -> Written:
        """Put the files of a table's rows into it, all of them or none."""
        ...

    @property
    def written(self) -> Sequence[Written]:
        """The files of the batch, one item for each table that received rows."""
        ...

    def close(self) -> None:
        """Remove files that were not put into a table."""
        ...


class ParquetBatch:
    """Puts a batch into Parquet tables below ``root``, with one rename for each table.

    ``writer`` names the source or stream that lands the batch. ``fits`` keeps the columns of the
    last files of each table from batch to batch, which is possible if no other process writes to
    the tables: files with the same columns need no check of the table, whose number of folders
    grows.
    """

    def __init__(
        self,
        root: Path,
        staging: Path,
        number: int,
        writer: str,
        fits: dict[str, pa.Schema] | None = None,
    ) -> None:
        self._root: Final = root
        self._fits: Final = {} if fits is None else fits
        self._number: Final = number
        self._staging: Final = Staging(staging, writer)
        self._written: list[Written] = []

    @property
    def folder(self) -> Path:
        """The folder for files of the batch before they are put into tables."""
        return self._staging.folder

    def has(self, table: str) -> bool:
        """Return whether the table has the batch already."""
        return self._home(table).exists()

    def put(self, table: str, files: Sequence[Path], columns: StructType) -> Written:
        """Put the files of a table's rows into it."""
        target = self._home(table)
        is_earlier = self.has(table)
        if not is_earlier:
            self._check_fit(table, files)
            self._staging.put(files, target)
        written = Written(table, files_in(target), is_earlier)
        self._written.append(written)
        return written

    def _check_fit(self, table: str, files: Sequence[Path]) -> None:
        columns = pq.read_schema(files[0]) if files else None
        if columns is not None and columns != self._fits.get(table):
            check_fit(self._root / table, files)
            self._fits[table] = columns

    def _home(self, table: str) -> Path:
        return self._root / table / f"{BATCH_FOLDER}{self._number}"

    @property
    def written(self) -> Sequence[Written]:
        """The files of the batch, one item for each table that received rows."""
        return self._written

    def close(self) -> None:
        """Remove files that were not put into a table."""
        self._staging.close()


def put_landed(tables: BatchWriter, job: LandJob, landed: Sequence[TableFile]) -> None:
    """Put the files that the tasks of a job wrote into its tables.

    Files that an earlier attempt put there are counted, too.
    """
    files = by_table(landed)
    # An earlier attempt may have read messages that the stream has removed since.
    others = (name for name in job.tables if name not in files)
    names = {*files, *filter(tables.has, others)}
    # Dead letters last: if a table refuses its rows, no dead letters must have been put yet.
    for table in sorted(names, key=lambda name: (name == job.names.dead_letters, name)):
        tables.put(table, files.get(table, ()), job.columns(table))


def refuse_taken(
    reaches: Callable[[str, int], bool], tables: Iterable[str], number: int, owner: str
) -> None:
    """Refuse tables that have rows of a batch before it begins: it would count as landed.

    ``reaches`` returns whether a table has a batch with this number or a higher one; ``owner``
    names the stream or source that lands the batch.
    """
    for table in tables:
        if reaches(table, number):
            raise JournalError(
                f"table {table} has rows of batch {number} or later, which {owner} has not landed:"
                " they come from another writer, or from a journal that was lost; name another"
                " table, or land into a new folder"
            )
