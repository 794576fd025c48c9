"""What programs give as arguments: what is of another kind is refused where it is given."""

from __future__ import annotations

from types import UnionType

from twinstream.errors import BadArgument

__all__ = ["check_kind", "check_whole"]


def check_kind(value: object, kind: type | UnionType, name: str, instead: str) -> None:
    """Refuse what is of another kind; `instead` says in the error what is expected."""
    if not isinstance(value, kind):
        raise BadArgument(f"{name} must be {instead}, got {value!r}")


def check_whole(value: object, name: str, least: int = 1) -> int:
    """Return a whole number from `least` up; refuses anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadArgument(f"{name} must be a whole number from {least} up, got {value!r}")
    return value
