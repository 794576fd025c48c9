"""Numbers that come as text of any length."""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 40
"""Digits of the longest number told apart from others: twice as many as 64 bits need."""


def whole_number(text: str) -> int:
    """Return the number of a sign and digits; all far beyond 64 bits become one such number.

    ``int`` refuses thousands of digits, even zeros in front, but servers read them.
    """
    digits = text.lstrip("+-").lstrip("0") or "0"
    number = int(digits) if len(digits) <= _LONGEST else 10**_LONGEST
    return -number if text.startswith("-") else number
