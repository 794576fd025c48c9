"""Files on their way into a table: written by Spark's tasks, durable before they count."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import frozen

from js_spark.tables import local_url

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Seqs", "Written", "files_in", "stage", "sync"]

_PARQUET: Final = "*.parquet"


@frozen
class Seqs:
    """What a batch wrote, read back from its files."""

    count: int = 0
    distinct: int = 0
    first: int = 0
    last: int = 0


@frozen
class Written:
    """The files that a batch has in one table."""

    table: str
    files: tuple[Path, ...]

    @property
    def rows(self) -> int:
        """Rows, from the footers of the files."""
        return sum(pq.read_metadata(file).num_rows for file in self.files)

    @property
    def bytes(self) -> int:
        """Bytes of the files."""
        return sum(file.stat().st_size for file in self.files)


def stage(rows: DataFrame, folder: Path) -> tuple[Path, ...]:
    """Let Spark's tasks write ``rows`` into a new folder, and return its files.

    The files are on the disk when this returns, so that a stream may forget their messages.
    """
    # Spark's own marks and checksums are for Spark alone; other readers stumble over some.
    quiet = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
    rows.write.options(**quiet).parquet(local_url(folder))
    for checksum in folder.glob(".*.crc"):
        checksum.unlink()
    files = files_in(folder)
    sync([*files, folder])
    return files


def files_in(folder: Path) -> tuple[Path, ...]:
    """Return the Parquet files of a folder, in the order of their names."""
    return tuple(sorted(folder.glob(_PARQUET)))


def sync(paths: Sequence[Path]) -> None:
    """Return when the files and folders are on the disk."""
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove(folders: Iterator[Path]) -> None:
    """Remove folders with all that they hold."""
    for folder in list(folders):
        shutil.rmtree(folder)


def seqs_of(files: Sequence[Path], column: str) -> pa.ChunkedArray:
    """Read one column of sequences from several files."""
    chunks: list[pa.Array] = []
    for file in files:
        chunks += pq.ParquetFile(file).read(columns=[column]).column(column).chunks
    return pa.chunked_array(chunks, pa.int64())


def summarized(seqs: pa.ChunkedArray) -> Seqs:
    """Count sequences."""
    import pyarrow.compute as pc

    if not len(seqs):
        return Seqs()
    ends = pc.min_max(seqs).as_py()
    return Seqs(len(seqs), pc.count_distinct(seqs).as_py(), ends["min"], ends["max"])
