"""Open the Parquet or Delta tables of a pipeline."""

from __future__ import annotations

from twinstream.lake.object_folder import ObjectFolder
from twinstream.spark.errors import SparkSourceError
from twinstream.spark.pipeline.settings.config import PipelineConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.tables.sink import Sink

__all__ = ["open_sink"]


def open_sink(config: PipelineConfig) -> Sink:
    """Return the `Sink` of a pipeline's tables.

    Raises `SparkSourceError` for Delta tables if the package `deltalake` is not installed.
    """
    if config.sink == "parquet":
        from twinstream.spark.pipeline.tables.parquet_sink import ParquetSink

        return ParquetSink(Folders.of(config.path))
    try:
        from twinstream.spark.pipeline.tables.delta_objects import ObjectDelta
        from twinstream.spark.pipeline.tables.delta_place import LocalDelta
        from twinstream.spark.pipeline.tables.delta_sink import DeltaSink
    except ModuleNotFoundError as missing:
        if missing.name != "deltalake":
            raise
        raise SparkSourceError(
            'sink = "delta" needs deltalake, which is not installed; install Twinstream with its'
            " extra delta (in a clone: pip install '.[delta]')"
        ) from missing
    if isinstance(config.path, ObjectFolder):
        return DeltaSink(ObjectDelta(config.path))
    return DeltaSink(LocalDelta(Folders.of(config.path)))
