"""The error for a value that does not fit its column, and the text of values in reasons."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

__all__ = ["Converter", "Extras", "Misfit", "shown", "unicode_text", "wrong_kind"]

Converter: TypeAlias = "Callable[[object, Extras], object]"
Extras: TypeAlias = dict[str, object]
"""Members without a column, by name; those of nested records below the record's name."""


class Misfit(Exception):
    """A value does not fit its column; the message has the place and the reason."""


def unicode_text(text: str, where: str) -> str:
    """Return the text, or raise `Misfit` if it cannot be encoded."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Misfit(f"{where}: contains a lone surrogate") from None
    return text


def wrong_kind(where: str, wanted: str, value: object) -> Misfit:
    """Return the misfit of a value of another kind."""
    return Misfit(f"{where}: expected {wanted}, got {shown(value)}")


def shown(value: object) -> str:
    """Return the short text of a value for a reason."""
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
