"""Open the Parquet or Delta tables of a pipeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.errors import SparkSourceError
from twinstream.spark.pipeline.settings.config import PipelineConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.tables.sink import Sink

if TYPE_CHECKING:
    from twinstream.spark.pipeline.tables.delta_place import DeltaPlace

__all__ = ["delta_place", "open_sink"]


def open_sink(config: PipelineConfig, check: Callable[[], None] = lambda: None) -> Sink:
    """Return the `Sink` of a pipeline's tables.

    `check` is called before each change of a table on an object store, and raises an error if the
    caller may no longer change the tables. Raises `SparkSourceError` for Delta tables if the
    package `deltalake` is not installed.
    """
    if config.sink == "parquet":
        from twinstream.spark.pipeline.tables.parquet_sink import ParquetSink

        return ParquetSink(Folders.of(config.path))
    place = delta_place(config)
    from twinstream.spark.pipeline.tables.delta_sink import DeltaSink

    return DeltaSink(place, check)


def delta_place(config: PipelineConfig) -> DeltaPlace:
    """Return where the Delta tables of a pipeline are.

    Raises `SparkSourceError` if the package `deltalake` is not installed.
    """
    try:
        from twinstream.spark.pipeline.tables.delta_objects import ObjectDelta
        from twinstream.spark.pipeline.tables.delta_place import LocalDelta
    except ModuleNotFoundError as missing:
        if missing.name != "deltalake":
            raise
        raise SparkSourceError(
            'sink = "delta" needs deltalake, which is not installed; install Twinstream with its'
            " extra lake (in a clone: pip install '.[lake]')"
        ) from missing
    if isinstance(config.path, ObjectFolder):
        return ObjectDelta(config.path)
    return LocalDelta(Folders.of(config.path))
