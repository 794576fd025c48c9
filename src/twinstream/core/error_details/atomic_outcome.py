"""The outcome of an atomic batch."""

from __future__ import annotations

from enum import Enum

__all__ = ["AtomicOutcome"]


class AtomicOutcome(Enum):
    """The outcome of an atomic batch."""

    OPEN = "open"
    """Messages may be added; nothing is stored yet."""
    COMMITTED = "committed"
    """Every message is stored."""
    REFUSED = "refused"
    """The server, or a check before sending, refused the batch; nothing is stored."""
    ABANDONED = "abandoned"
    """The batch was abandoned before a commit took effect; nothing is stored."""
    UNKNOWN = "unknown"
    """A commit was sent, but its outcome could not be determined: all is stored, or nothing."""
