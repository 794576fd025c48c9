"""The identity of a write task: its write, batch and partition.

Every attempt of a task has the same identity.
"""

from __future__ import annotations

from attrs import frozen
from pyspark import TaskContext

from twinstream.spark.errors import OptionError
from twinstream.spark.running import QUERY_ID

__all__ = ["TaskIdentity"]

# A local property that Spark sets for the tasks of a micro-batch.
_BATCH = "streaming.sql.batchId"

# A setting of the session in which a micro-batch runs. A write within foreachBatch may start in a
# thread other than the thread of the query, for example over Spark Connect. The tasks of such a
# write have this setting, but not the properties of the micro-batch.
_OF_SOME_BATCH = "spark.sql.streaming.internal.stateStore.partitions"

_NEEDS_NAME = (
    "is required for a batch write within foreachBatch: a name that is the same in each batch, and"
    " different for each write to the stream. Without it rows need idColumn, or"
    " idempotence=insert or none"
)
_NO_BATCH = (
    "does not identify a write within foreachBatch over Spark Connect, or in a thread of your own:"
    " Spark does not pass the batch to its tasks, so rows would be mistaken for those of an earlier"
    " batch. They need idColumn, or idempotence=insert or none; or, without Connect, a thread"
    " whose function was wrapped in pyspark.inheritable_thread_target"
)


@frozen
class TaskIdentity:
    """The identity of one task among the tasks of all batches and writes."""

    write: str
    batch: int
    partition: int
    refusal: str | None = None
    """The text of an error if another write may have the same identity, otherwise `None`; see
    `check`."""

    @classmethod
    def here(cls, write_id: str, *, given: bool, streams: bool) -> TaskIdentity:
        """Return the identity of the running task.

        `write_id` is the ID of a batch write; `given` is true if the user chose it. `streams`
        is true for the sink of a streaming query, and false for a batch write.
        """
        context = TaskContext.get()
        if context is None:
            raise RuntimeError("not inside a Spark task")
        return cls.of(context, write_id, given=given, streams=streams)

    @classmethod
    def of(cls, context: TaskContext, write_id: str, *, given: bool, streams: bool) -> TaskIdentity:
        """Return the identity of a task; the arguments are as in `here`."""
        query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(_BATCH)
        partition = context.partitionId()
        if query is None or batch is None:
            stray = context.getLocalProperty(_OF_SOME_BATCH) is not None
            return cls(write_id, 0, partition, _NO_BATCH if stray else None)
        if streams:
            return cls(query, int(batch), partition)
        return cls.within(query, int(batch), partition, write_id if given else None)

    @classmethod
    def within(cls, query: str, batch: int, partition: int, write_id: str | None) -> TaskIdentity:
        """Return the identity of a batch write that runs in `foreachBatch` of a query."""
        if write_id is None:
            return cls(query, batch, partition, _NEEDS_NAME)
        return cls(f"{query}-{write_id}", batch, partition)

    def check(self) -> None:
        """Raise `OptionError` if another write of the query may have the same identity.

        Without a `writeId`, two writes of one batch cannot be distinguished: Spark's properties are
        the same for both writes, and a generated ID would differ in the next attempt. If Spark does
        not pass the number of the batch, the writes of two batches cannot be distinguished. In both
        cases the sink would skip rows of the second write that equal stored rows of the first.
        """
        if self.refusal is not None:
            raise OptionError("writeId", self.refusal)

    def prefix(self) -> str:
        """Return the prefix of the task's message IDs. Raises `OptionError` as `check` does."""
        self.check()
        return f"{self.write}-{self.batch}-{self.partition}-"
