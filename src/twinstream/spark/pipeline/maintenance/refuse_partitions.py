"""Refuse what is not possible with partitioned tables on an object store."""

from __future__ import annotations

from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.errors import SparkSourceError
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig

__all__ = ["refuse_partitions"]


def refuse_partitions(config: PipelineConfig, source: SourceConfig, purpose: str) -> None:
    """Raise `SparkSourceError` if Delta tables of a source have partitions on an object store.

    The partition of a file is only in the log there, and not in the path by which a command would
    know it. The files of Iceberg tables have the values in their rows.
    """
    is_on_store = isinstance(config.path, ObjectFolder)
    if source.partitions and is_on_store and not source.files.in_catalog:
        raise SparkSourceError(
            f"pipeline {purpose} cannot change tables with partitions on an object store, and those"
            f" of source {source.name} have some: land the messages into another table, with the"
            " start that you need"
        )
