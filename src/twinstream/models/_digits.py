"""Parse integers of any length."""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 40
"""The largest number of significant digits that is parsed; a 64-bit number has at most 20."""


def whole_number(text: str) -> int:
    """Return the integer in `text`, which consists of an optional sign and digits.

    Integers of more than 40 digits become 10**40, with their sign. Servers accept thousands of
    digits, even leading zeros, but `int` raises an error for them.
    """
    digits = text.lstrip("+-").lstrip("0") or "0"
    number = int(digits) if len(digits) <= _LONGEST else 10**_LONGEST
    return -number if text.startswith("-") else number
