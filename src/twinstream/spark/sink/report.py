"""The report of a write task to the driver."""

from __future__ import annotations

from pyspark.sql.datasource import WriterCommitMessage

__all__ = ["JetStreamCommit"]


class JetStreamCommit(WriterCommitMessage):
    """The number of rows that a task stored, and of rows that were already stored (`present`).

    With `idempotence=ledger`, `ledger` is the subject of the task's ledger, and `batch` is
    the number of the micro-batch.
    """

    def __init__(self, stored: int, present: int, ledger: str = "", batch: int = 0) -> None:
        self.stored = stored
        self.present = present
        self.ledger = ledger
        self.batch = batch

    def __repr__(self) -> str:
        return f"JetStreamCommit(stored={self.stored}, present={self.present})"
