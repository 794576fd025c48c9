"""The report of a read: its range, its messages, and why it ended."""

from __future__ import annotations

from enum import Enum

from twinstream.models.records import frozen

__all__ = ["ReadEnd", "ReadReport"]


class ReadEnd(Enum):
    """Why a read ended. All values but CLOSED mean that the range is complete."""

    EMPTY = "the range held no sequence"
    """Nothing to read: the stream is empty or begins after the range."""

    SEEN = "a message at the end of the range was seen"
    """A replica stores messages in order, so the one that sent it had all earlier messages."""

    LEADER = "the leader has no further message in the range"
    """The stream's leader was asked, because the last messages of the range do not exist."""

    CLOSED = "the read was closed before its end"
    """The rest of the range was not read; continue at `ReadReport.position`."""


@frozen(kw_only=True)
class ReadReport:
    """The result of a read that ended."""

    stream: str
    start: int
    """The first sequence of the range."""
    end: int
    """The sequence after the last one of the range."""
    messages: int
    """The number of messages in the pages."""
    position: int
    """The first sequence not covered by a page: `end`, unless the read was closed early."""
    reason: ReadEnd
    overtaken_at: int | None = None
    """The first sequence of the stream if it was seen ahead of the read, else None.

    In that case limits or a purge removed messages of the range while it was read, and some of them
    may be missing. None means that the beginning of the stream never overtook the read.
    """

    @property
    def complete(self) -> bool:
        """Whether everything that the stream had in the range was read."""
        return self.reason is not ReadEnd.CLOSED and self.overtaken_at is None
