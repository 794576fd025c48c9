"""Numbers in text that a server or a publisher sent, which may be anything."""

from __future__ import annotations

from typing import Final

__all__ = ["whole_number"]

# No number of the protocol needs more than 64 bits. Python refuses to read thousands of digits.
_DIGITS: Final = 20


def whole_number(text: bytes | str) -> int | None:
    """Return decimal digits as a number, None for any other text."""
    return int(text) if len(text) <= _DIGITS and text.isascii() and text.isdigit() else None
