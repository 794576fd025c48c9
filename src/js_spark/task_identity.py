"""Who is writing: the query or job, the batch and the partition, the same for every attempt."""

from __future__ import annotations

from attrs import frozen
from pyspark import TaskContext

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

    @classmethod
    def here(cls, write_id: str) -> TaskIdentity:
        """Return the identity of the running task; ``write_id`` is that of a batch write."""
        context = TaskContext.get()
        if context is None:
            raise RuntimeError("not inside a task of Spark")
        query = context.getLocalProperty(_QUERY)
        batch = context.getLocalProperty(_BATCH)
        if query is None or batch is None:
            return cls(write_id, 0, context.partitionId())
        return cls(query, int(batch), context.partitionId())

    def row(self, number: int) -> str:
        """Return the identity of one row by its place."""
        return f"{self.write}-{self.batch}-{self.partition}-{number}"
