"""Enumerations that accept values of newer servers.

A newer server may return a value that this release does not know. The enumeration creates a new
member for it, so that the value can be compared, pickled and written back unchanged.
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
        """Whether this release of Twinstream knows the value."""
        return self._value_ in type(self)._value2member_map_

    def __reduce_ex__(self, proto: Any) -> tuple[object, ...]:
        # Some releases of Python 3.11 pickle members by name, and unknown members cannot be found
        # by name. So members are pickled by value.
        return (type(self), (self._value_,))
