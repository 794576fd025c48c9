"""Enumerations that accept values of newer servers.

A newer server may return a value that this release does not know. The enumeration creates a new
member for it, so that the value can be compared, pickled and written back unchanged.
"""

from __future__ import annotations

from enum import EnumMeta, StrEnum
from typing import TYPE_CHECKING, Any, Self


class _Words(EnumMeta):
    """The type of the enumerations, whose errors for unknown names suggest a member."""

    if not TYPE_CHECKING:  # or type checkers would accept every name

        def __getattr__(cls, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            # In Python 3.11, EnumMeta itself looks for members in this method.
            members = cls.__members__
            if name in members:
                return members[name]
            plain = name.upper().replace("_", "")
            near = next((each for each in members if each.replace("_", "") == plain), "")
            known = f"did you mean {near}?" if near else f"it has {', '.join(members)}"
            raise AttributeError(f"{cls.__name__} has no member {name!r}; {known}")


class OpenEnum(StrEnum, metaclass=_Words):
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
