"""What tells a stream from an earlier state of it: a message, by its sequence and time.

A stream that is put back, from a backup or because it was in memory, keeps its time of creation,
and gives sequences a second time; but never with the time of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from attrs import frozen

__all__ = ["Mark", "TimeAt"]

TimeAt: TypeAlias = Callable[[str, int], str | None]
"""Returns when the message of a stream with a sequence was stored; None when there is none."""


@frozen
class Mark:
    """The last message that a stream had at some moment; ``time`` is RFC 3339.

    The newest is what limits remove last, so it is there for the longest time.
    """

    seq: int
    time: str

    @classmethod
    def read_in(cls, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members of what has a ``mark``, which older releases did not store, read."""
        stored = value.get("mark")
        return {**value, "mark": None if stored is None else cls(**stored)}
