"""Enumerations that survive a newer server.

A server may answer with a word that this release does not know. Such a word becomes a member of
its own, so that it can be read, compared, pickled and written back unchanged.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Self


class OpenEnum(StrEnum):
    """A string enumeration that accepts words it has no name for."""

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
        """Whether this release has a name for the word."""
        return self._value_ in type(self)._value2member_map_

    def __reduce_ex__(self, proto: Any) -> tuple[object, ...]:
        # By value: some releases of Python 3.11 pickle by name, and unknown words have none there.
        return (type(self), (self._value_,))
