"""Tables that grow by whole batches, and the steps of landing one in any kind of table.

A Parquet table has a folder for each batch, which is there completely or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from twinstream.spark.landing.batch_folders import BATCH_FOLDER
from twinstream.spark.errors import JournalError
from twinstream.spark.landing.land_job import LandJob, by_table
from twinstream.spark.landing.staging import Staging, Written, files_in
from twinstream.spark.landing.table_files import TableFile
from twinstream.spark.landing.table_fit import check_fit

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["BatchWriter", "ParquetBatch", "local_url", "put_landed", "refuse_taken"]


def local_url(path: Path) -> str:
    """Return an absolute path as Spark takes it: a URL, so that it is local whatever the default.

    Not ``Path.as_uri``: Spark takes a percent sign for itself, and ``=`` would become ``%3D``.
    """
    return f"file://{path}"


class BatchWriter(Protocol):
    """Puts files into the tables of one batch; a table that has the batch already is left alone.

    The files are written into ``folder`` first.
    """

    @property
    def folder(self) -> Path:
        """Where files of the batch are written before they are put into tables."""
        ...

    def has(self, table: str) -> bool:
        """Tell whether the table has the batch already."""
        ...

    def put(self, table: str, files: Sequence[Path], columns: StructType) -> Written:
        """Put the files of a table's rows into it, all of them or none."""
        ...

    @property
    def written(self) -> Sequence[Written]:
        """What the batch has in the tables that were put to."""
        ...

    def close(self) -> None:
        """Remove what was left aside."""
        ...


class ParquetBatch:
    """Puts a batch into Parquet tables below ``root``: each with one rename.

    ``writer`` names whose attempts to land a batch these are.
    """

    def __init__(self, root: Path, staging: Path, number: int, writer: str) -> None:
        self._root: Final = root
        self._number: Final = number
        self._staging: Final = Staging(staging, writer)
        self._written: list[Written] = []

    @property
    def folder(self) -> Path:
        """Where files of the batch are written before they are put into tables."""
        return self._staging.folder

    def has(self, table: str) -> bool:
        """Tell whether the table has the batch already."""
        return self._home(table).exists()

    def put(self, table: str, files: Sequence[Path], columns: StructType) -> Written:
        """Put the files of a table's rows into it."""
        target = self._home(table)
        if not self.has(table):
            check_fit(self._root / table, files)
            self._staging.put(files, target)
        written = Written(table, files_in(target))
        self._written.append(written)
        return written

    def _home(self, table: str) -> Path:
        return self._root / table / f"{BATCH_FOLDER}{self._number}"

    @property
    def written(self) -> Sequence[Written]:
        """What the batch has in the tables that were put to."""
        return self._written

    def close(self) -> None:
        """Remove what was written and not put anywhere."""
        self._staging.close()


def put_landed(tables: BatchWriter, job: LandJob, landed: Sequence[TableFile]) -> None:
    """Put what the tasks of a job wrote into its tables, and count what is there already, too."""
    files = by_table(landed)
    # An attempt before this one may have found messages that are gone now.
    others = (name for name in job.tables if name not in files)
    names = {*files, *filter(tables.has, others)}
    # Dead letters last: if a table refuses its rows, none of them must have been put yet.
    for table in sorted(names, key=lambda name: (name == job.names.dead_letters, name)):
        tables.put(table, files.get(table, ()), job.columns(table))


def refuse_taken(
    reaches: Callable[[str, int], bool], tables: Iterable[str], number: int, owner: str
) -> None:
    """Refuse tables that have rows of a batch before it begins: it would pass for landed.

    ``reaches`` tells whether a table has a batch with this number or a higher one; ``owner`` names
    who lands the batch.
    """
    for table in tables:
        if reaches(table, number):
            raise JournalError(
                f"table {table} has rows of batch {number} or later, which {owner} has not landed:"
                " they are of somebody else, or of a journal that is gone; name another table, or"
                " land into a new folder"
            )
