"""Refuse what is not possible with partitioned tables on an object store."""

from __future__ import annotations

from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.errors import SparkSourceError
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig

__all__ = ["refuse_partitions"]


def refuse_partitions(config: PipelineConfig, source: SourceConfig, purpose: str) -> None:
    """Raise `SparkSourceError` if the tables of a source have partitions on an object store.

    The partition of a file is only in the log there, and not in the path by which a command would
    know it.
    """
    if source.partitions and isinstance(config.path, ObjectFolder):
        raise SparkSourceError(
            f"pipeline {purpose} cannot change tables with partitions on an object store, and those"
            f" of source {source.name} have some: land the messages into another table, with the"
            " start that you need"
        )
