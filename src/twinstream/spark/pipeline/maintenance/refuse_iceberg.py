"""Refuse commands that cannot change Iceberg tables, before they change anything."""

from __future__ import annotations

from twinstream.spark.errors import SparkSourceError
from twinstream.spark.pipeline.settings.config import PipelineConfig

__all__ = ["refuse_iceberg"]


def refuse_iceberg(config: PipelineConfig, purpose: str, instead: str) -> None:
    """Raise `SparkSourceError` if the tables are Iceberg tables. `instead` says what to do."""
    if config.sink == "iceberg":
        raise SparkSourceError(f"pipeline {purpose} is not for Iceberg tables: {instead}")
