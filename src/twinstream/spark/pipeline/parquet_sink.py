"""Tables of plain Parquet files: written by batches, read by ranges, rebuilt in one step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.dataset as ds

from twinstream.spark.landing.batch_folders import batch_folders, reaches
from twinstream.spark.pipeline.folders import Folders
from twinstream.spark.pipeline.parquet_files import Part, scanned
from twinstream.spark.pipeline.rebuild import Rebuilt
from twinstream.spark.pipeline.sink import Writer
from twinstream.spark.landing.split_tables import BATCH_COLUMN
from twinstream.spark.landing.staging import files_in
from twinstream.spark.landing.table_fit import check_fit
from twinstream.spark.landing.tables import ParquetBatch

__all__ = ["ParquetSink"]


class ParquetSink:
    """The tables below a pipeline's folder."""

    def __init__(self, folders: Folders) -> None:
        self.folders: Final = folders

    def batch(self, number: int, writer: Writer) -> ParquetBatch:
        """Begin a batch, or begin one again that was interrupted."""
        return ParquetBatch(self.folders.root, self.folders.staging, number, writer.name)

    def reaches(self, table: str, number: int) -> bool:
        """Tell whether the table has a batch with this number or a higher one."""
        return reaches(self.folders.root / table, number)

    def scan(
        self, table: str, columns: Sequence[str], seq: str, low: int, high: int, since: int
    ) -> Iterator[pa.RecordBatch]:
        """Read columns of the rows whose sequence is in ``[low, high)``, since a batch."""
        folders = batch_folders(self.folders.root / table).items()
        files = [str(f) for last, path in folders if last >= since for f in files_in(path)]
        if files:
            yield from scanned(files, columns, seq, low, high, since)

    def replace(self, table: str, number: int, files: Sequence[Path]) -> None:
        """Put the rows of ``files`` in the place of all rows of a batch, in one step."""
        check_fit(self.folders.root / table, files)
        existing = batch_folders(self.folders.root / table)
        home = next((last for last in existing if last >= number), number)
        with Rebuilt(self.folders, table) as new:
            new.keep(path for last, path in existing.items() if last != home)
            old = files_in(existing[home]) if home in existing else ()
            others = (ds.field(BATCH_COLUMN) < number) | (ds.field(BATCH_COLUMN) > number)
            new.put(home, [Part(old, others), Part(files)])
