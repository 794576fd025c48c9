"""`Settings`: a parsed request in which every member has a value, as in the server's memory."""

from __future__ import annotations

from typing import Any

from twinstream.models.files.shapes import SHAPES

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
    """The members of one record. Reading an absent member returns its zero value.

    Durations are integers in nanoseconds; times are text. The zero value is an empty tuple for a
    list and None for a time, map or record. `in` checks whether a member was present.
    """

    __slots__ = ("record",)

    def __init__(self, record: str, *members: dict[str, Any]) -> None:
        """Store `members` of the record named `record`."""
        super().__init__(*members)
        self.record = record

    def filled(self) -> Settings:
        """Return a copy that contains the zero values of absent members, for faster reading."""
        return Settings(self.record, {**_ZEROS[self.record], **self})

    def __missing__(self, member: str) -> Any:
        return _ZEROS[self.record][member]
