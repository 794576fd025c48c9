"""The report of a read: its range, its messages, and why it ended."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

__all__ = ["ReadEnd", "ReadReport"]


class ReadEnd(Enum):
    """Why a read ended. All values but CLOSED mean that the range is complete."""

    EMPTY = "the range held no sequence"
    """The range has no sequences, for example because the stream is empty or begins after it."""

    SEEN = "a message at the end of the range was seen"
    """A message at the end of the range, or after it, was received.

    A replica stores messages in order, so the sender had all earlier messages.
    """

    LEADER = "the leader has no further message in the range"
    """The leader confirmed that the last sequences of the range hold no messages to read."""

    CLOSED = "the read was closed before its end"
    """The end of the range was not read. Another read can continue at `ReadReport.position`."""


@frozen(kw_only=True)
class ReadReport:
    """The result of a read that has ended."""

    stream_name: str
    """Name of the stream."""
    start: int
    """The first sequence of the range."""
    end: int
    """The sequence after the last one of the range."""
    messages: int
    """The number of messages in the pages."""
    position: int
    """The first sequence not covered by a page: `end`, unless the read was closed early."""
    reason: ReadEnd
    """Why the read ended."""
    overtaken_at: int | None = None
    """The first sequence of the stream, if the read found it to be above `position`; else None.

    A number means that limits or a purge removed a part of the range before the read reached it.
    Messages of that part may be missing in the result.
    """

    @property
    def is_complete(self) -> bool:
        """Whether the read covered the whole range, and no part was removed before it was read."""
        return self.reason is not ReadEnd.CLOSED and self.overtaken_at is None
