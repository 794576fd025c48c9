"""Open the tables of a pipeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.errors import SparkSourceError
from twinstream.spark.pipeline.settings.config import PipelineConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.tables.sink import Sink

if TYPE_CHECKING:
    from twinstream.lake.iceberg.tables import IcebergTables
    from twinstream.spark.pipeline.tables.delta_place import DeltaPlace

__all__ = ["delta_place", "iceberg_tables", "open_sink"]


def open_sink(config: PipelineConfig, check: Callable[[], None] = lambda: None) -> Sink:
    """Return the `Sink` of a pipeline's tables.

    `check` is called before each change of a table on an object store, and raises an error if the
    caller may no longer change the tables. Raises `SparkSourceError` if the package
    for Delta or Iceberg tables is not installed.
    """
    if config.sink == "parquet":
        from twinstream.spark.pipeline.tables.parquet_sink import ParquetSink

        return ParquetSink(Folders.of(config.path))
    if config.sink == "iceberg":
        tables = iceberg_tables(config, check)
        from twinstream.spark.pipeline.tables.iceberg_sink import IcebergSink

        return IcebergSink(tables)
    place = delta_place(config)
    from twinstream.spark.pipeline.tables.delta_sink import DeltaSink

    return DeltaSink(place, check)


def iceberg_tables(
    config: PipelineConfig, check: Callable[[], None] = lambda: None
) -> IcebergTables:
    """Return the Iceberg tables of a pipeline.

    `check` is that of `open_sink`. Raises `SparkSourceError` if the package `pyiceberg` is not
    installed.
    """
    assert isinstance(config.path, ObjectFolder), "read_config refuses other paths"
    assert config.catalog is not None, "read_config refuses a pipeline without it"
    try:
        from twinstream.lake.iceberg.tables import IcebergTables
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] != "pyiceberg":
            raise
        raise SparkSourceError(
            'sink = "iceberg" needs pyiceberg, which is not installed; install Twinstream with its'
            " extra lake (in a clone: pip install '.[lake]')"
        ) from missing
    return IcebergTables(config.catalog, config.path.storage, check)


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
