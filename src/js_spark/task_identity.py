"""Who is writing: the query or job, the batch and the partition, the same for every attempt."""

from __future__ import annotations

from attrs import frozen
from pyspark import TaskContext

from js_spark.errors import OptionError

__all__ = ["TaskIdentity"]

# Local properties that Spark sets for the tasks of a micro-batch. The query's id comes from the
# checkpoint, so it is the same after a restart.
_QUERY = "sql.streaming.queryId"
_BATCH = "streaming.sql.batchId"


@frozen
class TaskIdentity:
    """The place of one task's rows among all that the write will ever publish."""

    write: str
    batch: int
    partition: int
    is_own: bool = True
    """Whether no other write can have the same; see :meth:`check`."""

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
            return cls(write_id, 0, partition)
        if streams:
            return cls(query, int(batch), partition)
        return cls.within(query, int(batch), partition, write_id if given else None)

    @classmethod
    def within(cls, query: str, batch: int, partition: int, write_id: str | None) -> TaskIdentity:
        """Return the identity of a batch write that ``foreachBatch`` of a query makes."""
        if write_id is None:
            return cls(query, batch, partition, is_own=False)
        return cls(f"{query}-{write_id}", batch, partition)

    def check(self) -> None:
        """Raise `OptionError` where two writes of one micro-batch would have the same identity.

        Nothing could tell them apart: what Spark says is the same for both, and what is made up
        here would differ in the next attempt. The second write's rows would pass for the first's.
        """
        if not self.is_own:
            raise OptionError(
                "writeId",
                "is required for a batch write within foreachBatch: a name that is the same in each"
                " batch, and another one for each write into the stream. Without it rows need"
                " idColumn, or idempotence=insert or none",
            )

    def row(self, number: int) -> str:
        """Return the identity of one row by its place. Raises what `check` does."""
        self.check()
        return f"{self.write}-{self.batch}-{self.partition}-{number}"
