"""A request in the server's memory after parsing: every member has a value."""

from __future__ import annotations

from typing import Any

from twinstream.models._shapes import SHAPES

_ZERO: dict[str, Any] = {
    "text": "",
    "bool": False,
    "int64": 0,
    "int32": 0,
    "uint64": 0,
    "duration": 0,
    "time": None,
}


def _zero(kind: str) -> Any:
    if kind.startswith("["):
        return ()
    if kind.startswith("word:"):
        return ""
    return _ZERO.get(kind)


_ZEROS: dict[str, dict[str, Any]] = {
    record: {member: _zero(kind) for member, (kind, _) in shape.items()}
    for record, shape in SHAPES.items()
}


class Settings(dict[str, Any]):
    """Members of one record; an absent one reads as its zero value.

    Durations are whole nanoseconds and times stay text. Absent lists read as an empty tuple, absent
    maps and records as None. `in` checks whether a member was present.
    """

    __slots__ = ("record",)

    def __init__(self, record: str, *members: dict[str, Any]) -> None:
        """Store `members` of the record named `record`."""
        super().__init__(*members)
        self.record = record

    def filled(self) -> Settings:
        """Return a copy with every member, so that reading one needs no fallback."""
        return Settings(self.record, {**_ZEROS[self.record], **self})

    def __missing__(self, member: str) -> Any:
        return _ZEROS[self.record][member]
