"""Who is writing: the query or job, the batch and the partition, the same for every attempt."""

from __future__ import annotations

from attrs import frozen
from pyspark import TaskContext

from twinstream.spark.errors import OptionError

__all__ = ["TaskIdentity"]

# Local properties that Spark sets for the tasks of a micro-batch. The query's id comes from the
# checkpoint, so it is the same after a restart.
_QUERY = "sql.streaming.queryId"
_BATCH = "streaming.sql.batchId"

# A setting of the session that a micro-batch runs in. Tasks of a write within foreachBatch hear of
# nothing else if it begins in another thread than the query's, as it does over Spark Connect.
_OF_SOME_BATCH = "spark.sql.streaming.internal.stateStore.partitions"

_NEEDS_NAME = (
    "is required for a batch write within foreachBatch: a name that is the same in each batch, and"
    " another one for each write into the stream. Without it rows need idColumn, or"
    " idempotence=insert or none"
)
_NO_BATCH = (
    "does not identify a write within foreachBatch over Spark Connect, or in a thread of your own:"
    " Spark does not tell its tasks which batch they write, so rows would pass for those of an"
    " earlier one. They need idColumn, or idempotence=insert or none; or, without Connect, a thread"
    " whose function was wrapped in pyspark.inheritable_thread_target"
)


@frozen
class TaskIdentity:
    """The place of one task's rows among all that the write will ever publish."""

    write: str
    batch: int
    partition: int
    refusal: str | None = None
    """Why another write may have the same; see :meth:`check`."""

    @classmethod
    def here(cls, write_id: str, *, given: bool, streams: bool) -> TaskIdentity:
        """Return the identity of the running task.

        ``write_id`` names a batch write, ``given`` tells whether the user chose it.
        ``streams`` tells the sink of a streaming query from a batch write within one.
        """
        context = TaskContext.get()
        if context is None:
            raise RuntimeError("not inside a task of Spark")
        query, batch = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
        partition = context.partitionId()
        if query is None or batch is None:
            stray = context.getLocalProperty(_OF_SOME_BATCH) is not None
            return cls(write_id, 0, partition, _NO_BATCH if stray else None)
        if streams:
            return cls(query, int(batch), partition)
        return cls.within(query, int(batch), partition, write_id if given else None)

    @classmethod
    def within(cls, query: str, batch: int, partition: int, write_id: str | None) -> TaskIdentity:
        """Return the identity of a batch write that ``foreachBatch`` of a query makes."""
        if write_id is None:
            return cls(query, batch, partition, _NEEDS_NAME)
        return cls(f"{query}-{write_id}", batch, partition)

    def check(self) -> None:
        """Raise `OptionError` where two writes of a query would have the same identity.

        Nothing could tell two writes of one batch apart: what Spark says is the same for both, and
        what is made up here would differ in the next attempt. Where Spark does not name the batch,
        writes of two batches cannot be told apart either. The second write's rows would pass for
        the first's.
        """
        if self.refusal is not None:
            raise OptionError("writeId", self.refusal)

    def prefix(self) -> str:
        """Return what the ids of the task's rows begin with. Raises what `check` does."""
        self.check()
        return f"{self.write}-{self.batch}-{self.partition}-"
