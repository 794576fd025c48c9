"""Integers: how to parse them at any length, and the sequences that a server hides."""

from __future__ import annotations

from typing import Final

HIDDEN_FROM: Final = 1 << 62
"""The first stream sequence whose message the server does not return.

The file store of servers 2.11 to 2.15 acknowledges and counts messages from this sequence on, but
returns none of them, because it uses bit 62 of a sequence as a flag.
"""

# The largest number of significant digits that is parsed; a 64-bit number has at most 20.
_LONGEST: Final = 40


def whole_number(text: str) -> int:
    """Return the integer in `text`, which consists of an optional sign and digits.

    Integers of more than 40 digits become 10**40, with their sign. Servers accept thousands of
    digits, even leading zeros, but `int` raises an error for them.
    """
    digits = text.lstrip("+-").lstrip("0") or "0"
    number = int(digits) if len(digits) <= _LONGEST else 10**_LONGEST
    return -number if text.startswith("-") else number
