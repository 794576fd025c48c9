"""What became of a read: its range, what it gave, and why it ended."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

__all__ = ["ReadEnd", "ReadReport"]


class ReadEnd(Enum):
    """Why a read ended. All but CLOSED say that the range is complete, and how that is known."""

    EMPTY = "the range held no sequence"
    """Nothing was to be read: the stream is empty or begins behind the range."""

    SEEN = "a message at the end of the range was seen"
    """Messages are stored in order, so whoever has this one had everything before it."""

    LEADER = "the leader has no further message in the range"
    """The stream's leader was asked, because the last messages of the range are not there."""

    CLOSED = "the read was closed before its end"
    """The rest of the range was not read; `ReadReport.position` is where to go on."""


@frozen(kw_only=True)
class ReadReport:
    """The account of a read that ended."""

    stream: str
    start: int
    """The first sequence of the range."""
    end: int
    """The sequence behind the last one of the range."""
    messages: int
    """How many messages the pages held."""
    position: int
    """The first sequence that no page covered: `end`, unless the read was closed early."""
    reason: ReadEnd
    overtaken_at: int | None = None
    """A first sequence of the stream that was ahead of the read, or None.

    Then limits or a purge removed messages of the range while it was read, and some of them may
    be missing from it. None says that the beginning of the stream stayed behind the read.
    """

    @property
    def complete(self) -> bool:
        """Whether everything that the stream held in the range was read."""
        return self.reason is not ReadEnd.CLOSED and self.overtaken_at is None
