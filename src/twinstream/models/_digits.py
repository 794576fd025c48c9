"""Numbers in texts of any length."""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 40
"""Number of significant digits: twice as many as 64 bits need."""


def whole_number(text: str) -> int:
    """Return the number of a sign and digits. Numbers far beyond 64 bits become one common value.

    `int` refuses thousands of digits, even leading zeros, but servers read them.
    """
    digits = text.lstrip("+-").lstrip("0") or "0"
    number = int(digits) if len(digits) <= _LONGEST else 10**_LONGEST
    return -number if text.startswith("-") else number
