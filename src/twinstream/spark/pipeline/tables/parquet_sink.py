"""Tables of Parquet files. A batch adds a folder to a table, and is replaced atomically."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.dataset as ds

from twinstream.spark.landing.batch_folders import BATCH_FOLDER, batch_folders, reaches
from twinstream.spark.landing.split_tables import BATCH_COLUMN
from twinstream.spark.landing.staging import files_in
from twinstream.spark.landing.table_fit import check_fit
from twinstream.spark.landing.tables import ParquetBatch
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.tables.parquet_files import Part, scanned
from twinstream.spark.pipeline.tables.rebuild import Rebuilt
from twinstream.spark.pipeline.tables.sink import Writer

__all__ = ["ParquetSink"]


class ParquetSink:
    """The Parquet tables below a pipeline's folder."""

    def __init__(self, folders: Folders) -> None:
        self.folders: Final = folders
        self._fits: Final[dict[str, pa.Schema]] = {}

    def batch(self, number: int, writer: Writer) -> ParquetBatch:
        """Return a writer for a batch. It can also finish an interrupted batch."""
        folders = self.folders
        return ParquetBatch(folders.root, folders.staging, number, writer.name, self._fits)

    def reaches(self, table: str, number: int) -> bool:
        """Return whether the table has a batch with this number or a higher number."""
        return reaches(self.folders.root / table, number)

    def holds(self, table: str, number: int) -> bool:
        """Return whether the table has a folder with the number of this batch."""
        return (self.folders.root / table / f"{BATCH_FOLDER}{number}").exists()

    def scan(
        self, table: str, columns: Sequence[str], seq: str, low: int, high: int, since: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield columns of the rows with a sequence in `[low, high)`.

        Only batches numbered `since` or higher are read.
        """
        folders = batch_folders(self.folders.root / table).items()
        files = [str(f) for last, path in folders if last >= since for f in files_in(path)]
        if files:
            yield from scanned(files, columns, seq, low, high, since)

    def replace(self, table: str, number: int, files: Sequence[Path]) -> None:
        """Replace all rows of a batch with the rows of `files`, atomically.

        Without files, the rows are removed. Raises `SchemaError`, before any change, if the columns
        of the files do not fit the table.
        """
        check_fit(self.folders.root / table, files)
        existing = batch_folders(self.folders.root / table)
        home = next((last for last in existing if last >= number), number)
        with Rebuilt(self.folders, table) as new:
            new.keep(path for last, path in existing.items() if last != home)
            old = files_in(existing[home]) if home in existing else ()
            others = (ds.field(BATCH_COLUMN) < number) | (ds.field(BATCH_COLUMN) > number)
            new.put(home, [Part(old, others), Part(files)])
