"""Parse numbers in data from a server, or from a client that published a message."""

from __future__ import annotations

from typing import Final

__all__ = ["natural"]

# The number of digits of 2**64 - 1, the largest number in the protocol.
_LONGEST: Final = 20


def natural(text: str | bytes | None) -> int | None:
    """Return the number that `text` contains as ASCII digits, or None for other text.

    Return None also for more than 20 digits. No valid number is that long, and `int` raises
    ValueError for more than 4,300 digits.
    """
    if text is None or len(text) > _LONGEST or not text.isascii() or not text.isdigit():
        return None
    return int(text)
