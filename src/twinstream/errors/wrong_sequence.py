"""The last sequence that the refusal of an expected last sequence reports."""

from __future__ import annotations

from twinstream.errors.server_errors import WrongLastSequence

__all__ = ["last_sequence"]


def last_sequence(error: WrongLastSequence) -> int | None:
    """Return the last sequence that a refusal reports; None if another write is in flight."""
    number = error.description.rpartition(":")[2].strip()
    return int(number) if number.isascii() and number.isdigit() and len(number) <= 20 else None
