"""Checks of the types of arguments, which raise an error in the call that passes the argument."""

from __future__ import annotations

from types import UnionType

from twinstream.errors import BadArgument

__all__ = ["check_kind", "check_whole"]


def check_kind(value: object, kind: type | UnionType, name: str, instead: str) -> None:
    """Raise `BadArgument` unless `value` is of type `kind`; `instead` describes this type."""
    if not isinstance(value, kind):
        raise BadArgument(f"{name} must be {instead}, got {value!r}")


def check_whole(value: object, name: str, least: int = 1) -> int:
    """Return `value`; raises `BadArgument` unless it is an int of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadArgument(f"{name} must be a whole number from {least} up, got {value!r}")
    return value
