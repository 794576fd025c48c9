"""The definition of one kind of server event: its name, type, subject and columns."""

from __future__ import annotations

import pyarrow as pa
from attrs import frozen

__all__ = ["Event"]


@frozen
class Event:
    """A kind of advisory or metric that the server publishes.

    `kind` is the last part of `type`. It is the name of the event's column, and the end of the
    name of the event's table. `subject` is a filter that matches the event's messages, and may
    also match other events. `columns` are the members of the event.
    """

    kind: str
    type: str
    subject: str
    columns: pa.StructType
