"""One kind of server event: its name, type, subject and columns."""

from __future__ import annotations

from attrs import frozen
from pyspark.sql.types import StructType

__all__ = ["Event"]


@frozen
class Event:
    """A kind of advisory or metric.

    ``kind`` is the last part of ``type`` and names the column and the table; ``subject`` is the
    filter that its messages match (others may match it too); ``columns`` are its members.
    """

    kind: str
    type: str
    subject: str
    columns: StructType
