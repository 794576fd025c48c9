"""Detect Spark Connect sessions, whose Spark runs in another process or on another machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinstream.spark.errors import SparkSourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["is_connect", "refuse_connect"]


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session is a Spark Connect session."""
    # `isinstance` would need the class, and its import needs packages that are installed only for
    # Spark Connect.
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def refuse_connect(spark: SparkSession) -> None:
    """Raise `SparkSourceError` for a Spark Connect session, which cannot run a pipeline."""
    if is_connect(spark):
        raise SparkSourceError(
            "a pipeline needs Spark in its own process, and this is a Spark Connect session, which"
            " would land the batches on the server. Use twinstream.spark.local_session(), run the"
            " pipeline on the server with spark-submit, or write a project for spark-pipelines with"
            " `twinstream pipeline spec`"
        )
