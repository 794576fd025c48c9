"""Check the members of a JSON object that a file contained, before they decide anything."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

__all__ = ["checked_members"]

# The end of the sequences of a stream. No stored number is as large.
_END: Final = 2**64


def checked_members(kind: type, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members with which to create a record of the class `kind`.

    Raises `ValueError` for a member of another type than the attribute of its name, and for a
    number below 0 or beyond the sequences of a stream. The constructor refuses unknown members.
    """
    hints = _hints(kind)
    for name, member in value.items():
        if name in hints and not _fits(member, hints[name]):
            raise ValueError(f"{name} is {member!r:.60}")
    return dict(value)


@lru_cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(member: object, hint: Any) -> bool:
    """Return whether a JSON value has the type `hint`. A boolean is not a number here."""
    if isinstance(hint, UnionType):
        return any(_fits(member, each) for each in get_args(hint))
    if hint is int:
        return type(member) is int and 0 <= member < _END
    if hint is float:
        if not isinstance(member, int | float) or isinstance(member, bool):
            return False
        return 0 <= member < _END
    return isinstance(member, get_origin(hint) or hint)
