"""What a writing task tells the driver."""

from __future__ import annotations

from pyspark.sql.datasource import WriterCommitMessage

__all__ = ["JetStreamCommit"]


class JetStreamCommit(WriterCommitMessage):
    """Rows that a task stored, and rows that an earlier attempt had stored (``present``)."""

    def __init__(self, stored: int, present: int) -> None:
        self.stored = stored
        self.present = present

    def __repr__(self) -> str:
        return f"JetStreamCommit(stored={self.stored}, present={self.present})"
