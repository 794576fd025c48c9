"""What runs: a session (over Spark Connect or not, its task slots), or a task of a micro-batch.

The Spark of a Spark Connect session runs in another process or on another machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from twinstream.spark.errors import SparkSourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["QUERY_ID", "in_micro_batch", "is_connect", "make_active", "refuse_connect", "slots_of"]

QUERY_ID: Final = "sql.streaming.queryId"
"""The local property with the ID of the streaming query. Spark sets it for the tasks of a
micro-batch. The ID is stored in the checkpoint, so it is the same after a restart."""


def in_micro_batch() -> bool:
    """Return whether the caller is a task of a streaming query, also within `foreachBatch`.

    Within `foreachBatch` over Spark Connect, Spark does not set the property.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    return context is not None and context.getLocalProperty(QUERY_ID) is not None


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


def slots_of(spark: SparkSession) -> int | None:
    """Return the number of tasks that run at once, or `None` for a Spark Connect session.

    On a cluster, these are the tasks of the executors that run now.
    """
    return None if is_connect(spark) else spark.sparkContext.defaultParallelism


def make_active(spark: SparkSession) -> None:
    """Make `spark` the active session of this thread, if the thread has no active session.

    When a write or a streaming query starts, Spark looks up Python sources only in the active
    session. A thread that the application started has no active session. For a Spark Connect
    session, which does not need an active session, this function does nothing.
    """
    from pyspark.sql import SparkSession

    if not is_connect(spark) and SparkSession.getActiveSession() is None:
        # No other call of PySpark makes a session the active session. This call runs no job.
        untyped: Any = spark  # PySpark's types of this call need pandas
        untyped.createDataFrame([], "nothing int")
