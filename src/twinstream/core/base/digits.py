"""Judges numbers that arrive from a server, or from any client that published a message."""

from __future__ import annotations

from typing import Final

__all__ = ["natural"]

# Digits of 2**64 - 1, the largest number in the protocol.
_LONGEST: Final = 20


def natural(text: str | bytes | None) -> int | None:
    """Return the number that ASCII digits spell; None for anything else.

    More than 20 digits count as something else: `int` raises ValueError beyond 4,300 of them.
    """
    if text is None or len(text) > _LONGEST or not text.isascii() or not text.isdigit():
        return None
    return int(text)
