"""The outcome of an atomic batch."""

from __future__ import annotations

from enum import Enum

__all__ = ["AtomicOutcome"]


class AtomicOutcome(Enum):
    """The state of an atomic batch, and at its end its outcome."""

    OPEN = "open"
    """Messages may be added; nothing is stored yet."""
    COMMITTED = "committed"
    """All messages are stored."""
    REFUSED = "refused"
    """The server, or a check before sending, refused the batch; nothing is stored."""
    ABANDONED = "abandoned"
    """The batch was abandoned before a commit took effect; nothing is stored."""
    UNKNOWN = "unknown"
    """A commit was sent, but its outcome is unknown: all messages are stored, or none."""
