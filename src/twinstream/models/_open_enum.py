"""Enumerations that accept values of newer servers.

A server may return a value that this release does not know. It becomes a member of its own, so
that it can be read, compared, pickled and written back unchanged.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Self


class OpenEnum(StrEnum):
    """A string enumeration that accepts unknown values."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        member = str.__new__(cls, value)
        member._name_ = value
        member._value_ = value
        return member

    @property
    def is_known(self) -> bool:
        """Whether this release knows the value."""
        return self._value_ in type(self)._value2member_map_

    def __reduce_ex__(self, proto: Any) -> tuple[object, ...]:
        # Pickled by value: some releases of Python 3.11 pickle by name, which unknown values do not
        # have.
        return (type(self), (self._value_,))
