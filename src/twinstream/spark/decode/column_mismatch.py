"""The exception for a value that does not fit its column, and functions for its text."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

__all__ = ["ColumnMismatch", "Converter", "Extras", "shown", "unicode_text", "wrong_kind"]

Converter: TypeAlias = "Callable[[object, Extras], object]"
"""A function that returns the converted value. It adds members without a column to the extras."""

Extras: TypeAlias = dict[str, object]
"""Members without a column, by name. The extras of a nested object or array are a dictionary under
the name of the object or array."""


class ColumnMismatch(Exception):
    """Raised if a value does not fit its column. The text has the member's path and a reason."""


def unicode_text(text: str, where: str) -> str:
    """Return `text`, or raise `ColumnMismatch` if it cannot be encoded as UTF-8."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ColumnMismatch(f"{where}: contains a lone surrogate") from None
    return text


def wrong_kind(where: str, wanted: str, value: object) -> ColumnMismatch:
    """Return the exception for a value of another type than `wanted`."""
    return ColumnMismatch(f"{where}: expected {wanted}, got {shown(value)}")


def shown(value: object) -> str:
    """Return a short description of a value for the text of a `ColumnMismatch`."""
    match value:
        case dict():
            return "an object"
        case list():
            return "an array"
        case bool():
            return "true" if value else "false"
        case str():
            return f"text {value[:40]!r}" + ("…" if len(value) > 40 else "")
        case Decimal():
            text = str(value)
            return text[:40] + ("…" if len(text) > 40 else "")
        case int() if value.bit_length() > 128:
            return "a number of more than 128 bits"
        case _:
            return repr(value)
