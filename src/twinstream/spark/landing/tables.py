"""Add batches to tables: the interface of all kinds of tables, and its version for Parquet.

A Parquet table has a folder for each batch, which becomes visible atomically.
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
    """Return the URL of an absolute path, for which Spark uses the local file system.

    Spark's default file system may be another one. ``Path.as_uri`` does not work, because Spark
    does not decode percent escapes, and ``=`` would become ``%3D``.
    """
    return f"file://{path}"


class BatchWriter(Protocol):
    """The writer of one batch, which adds files to tables.

    A table that already has the batch is not changed. The files are written to ``folder`` first.
    """

    @property
    def folder(self) -> Path:
        """The folder for the files of the batch until they are added to tables."""
        ...

    def has(self, table: str) -> bool:
        """Return whether the table already has the batch."""
        ...

    def put(self, table: str, files: Sequence[Path], columns: StructType) -> Written:
        """Add the files of the batch to a table, all of them or none; return its files there."""
        ...

    @property
    def written(self) -> Sequence[Written]:
        """The files of the batch, one item for each table to which the batch wrote."""
        ...

    def close(self) -> None:
        """Remove files that were not added to a table."""
        ...


class ParquetBatch:
    """The writer of one batch to Parquet tables below ``root``, with one rename per table.

    ``writer`` is the name of the source or stream that lands the batch. ``fits`` maps tables to the
    columns of their last files, and is shared by batches. Files with the same columns then need no
    comparison with the table, whose number of folders grows. Pass it only if no other process
    writes to the tables.
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
        """The folder for the files of the batch until they are added to tables."""
        return self._staging.folder

    def has(self, table: str) -> bool:
        """Return whether the table already has the batch."""
        return self._home(table).exists()

    def put(self, table: str, files: Sequence[Path], columns: StructType) -> Written:
        """Add the files of the batch to a table, unless it has the batch; return them."""
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
        """The files of the batch, one item for each table to which the batch wrote."""
        return self._written

    def close(self) -> None:
        """Remove files that were not added to a table."""
        self._staging.close()


def put_landed(tables: BatchWriter, job: LandJob, landed: Sequence[TableFile]) -> None:
    """Add the files that the tasks of a job wrote to its tables.

    The files that an earlier attempt added to other tables are counted too.
    """
    files = by_table(landed)
    # An earlier attempt may have added files to other tables, with messages that the stream has
    # removed since.
    others = (name for name in job.tables if name not in files)
    names = {*files, *filter(tables.has, others)}
    # The dead letters are last, because none must be added if a table refuses its rows.
    for table in sorted(names, key=lambda name: (name == job.names.dead_letters, name)):
        tables.put(table, files.get(table, ()), job.columns(table))


def refuse_taken(
    reaches: Callable[[str, int], bool], tables: Iterable[str], number: int, owner: str
) -> None:
    """Raise `JournalError` if a table has rows of a batch before the batch begins.

    The batch would count as landed. ``reaches`` returns whether a table has a batch with this
    number or a higher one; ``owner`` names the stream or source that lands the batch.
    """
    for table in tables:
        if reaches(table, number):
            raise JournalError(
                f"table {table} has rows of batch {number} or later, which {owner} has not landed:"
                " they come from another writer, or from a journal that was lost; name another"
                " table, or land into a new folder"
            )
