"""What the two kinds of tables have in common: batches go in whole, and once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from twinstream.spark.errors import SparkSourceError
from twinstream.spark.pipeline.config import PipelineConfig
from twinstream.spark.pipeline.folders import Folders
from twinstream.spark.landing.tables import BatchWriter

__all__ = ["Sink", "Writer", "open_sink"]


class Writer(Protocol):
    """Who writes: the name and the lasting identity of a source."""

    @property
    def name(self) -> str:
        """The name of the source."""
        ...

    @property
    def id(self) -> str:
        """Its identity, the same for all its batches."""
        ...


class Sink(Protocol):
    """The tables of a pipeline. ``table`` is always a path below the pipeline's folder."""

    def batch(self, number: int, writer: Writer) -> BatchWriter:
        """Begin a batch, or begin one again that was interrupted."""
        ...

    def reaches(self, table: str, number: int) -> bool:
        """Tell whether the table has a batch with this number or a higher one."""
        ...

    def scan(
        self, table: str, columns: Sequence[str], seq: str, low: int, high: int, since: int
    ) -> Iterator[pa.RecordBatch]:
        """Read columns of the rows whose sequence (column ``seq``) is in ``[low, high)``.

        Only batches with the number ``since`` or a higher one are read, so that older files need
        not be opened. A table that does not exist has no rows.
        """
        ...

    def replace(self, table: str, number: int, files: Sequence[Path]) -> None:
        """Replace all rows of a batch by those of ``files``, if any, in one step.

        Raises `SchemaError`, before anything is changed, for columns that do not fit the table.
        """
        ...


def open_sink(config: PipelineConfig) -> Sink:
    """Return the tables of a pipeline. Raises `SparkSourceError` without `deltalake`."""
    folders = Folders(config.path)
    if config.sink == "parquet":
        from twinstream.spark.pipeline.parquet_sink import ParquetSink

        return ParquetSink(folders)
    try:
        from twinstream.spark.pipeline.delta_sink import DeltaSink
    except ModuleNotFoundError as missing:
        if missing.name != "deltalake":
            raise
        raise SparkSourceError(
            'sink = "delta" needs deltalake, which is not installed; install Twinstream with its'
            " extra delta (in a clone: pip install '.[delta]')"
        ) from missing
    return DeltaSink(folders)
