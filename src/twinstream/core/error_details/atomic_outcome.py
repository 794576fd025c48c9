"""How an atomic batch ended."""

from __future__ import annotations

from enum import Enum

__all__ = ["AtomicOutcome"]


class AtomicOutcome(Enum):
    """What became of an atomic batch."""

    OPEN = "open"
    """Messages may be added; nothing is stored yet."""
    COMMITTED = "committed"
    """Every message is stored."""
    REFUSED = "refused"
    """The server, or a check before sending, refused; nothing is stored."""
    ABANDONED = "abandoned"
    """It was given up before a commit took effect; nothing is stored."""
    UNKNOWN = "unknown"
    """A commit was sent, and what it did could not be found out: all is stored, or nothing."""
