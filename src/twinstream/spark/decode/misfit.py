"""The exception for a value that does not fit its column, and texts for its reason."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

__all__ = ["Converter", "Extras", "Misfit", "shown", "unicode_text", "wrong_kind"]

Converter: TypeAlias = "Callable[[object, Extras], object]"
Extras: TypeAlias = dict[str, object]
"""Members without a column, by name. Extras of a nested object are under the object's name."""


class Misfit(Exception):
    """Raised if a value does not fit its column. The text has the member's path and the reason."""


def unicode_text(text: str, where: str) -> str:
    """Return ``text``, or raise `Misfit` if it cannot be encoded as UTF-8."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Misfit(f"{where}: contains a lone surrogate") from None
    return text


def wrong_kind(where: str, wanted: str, value: object) -> Misfit:
    """Return the exception for a value of another type than ``wanted``."""
    return Misfit(f"{where}: expected {wanted}, got {shown(value)}")


def shown(value: object) -> str:
    """Return a short text that describes a value in a reason."""
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
