"""Open the Parquet or Delta tables of a pipeline."""

from __future__ import annotations

from twinstream.spark.errors import SparkSourceError
from twinstream.spark.pipeline.settings.config import PipelineConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.tables.sink import Sink

__all__ = ["open_sink"]


def open_sink(config: PipelineConfig) -> Sink:
    """Return the `Sink` of a pipeline's tables.

    Raises `SparkSourceError` for Delta tables if the package `deltalake` is not installed.
    """
    folders = Folders.of(config.path)
    if config.sink == "parquet":
        from twinstream.spark.pipeline.tables.parquet_sink import ParquetSink

        return ParquetSink(folders)
    try:
        from twinstream.spark.pipeline.tables.delta_sink import DeltaSink
    except ModuleNotFoundError as missing:
        if missing.name != "deltalake":
            raise
        raise SparkSourceError(
            'sink = "delta" needs deltalake, which is not installed; install Twinstream with its'
            " extra lake (in a clone: pip install '.[lake]')"
        ) from missing
    return DeltaSink(folders)
