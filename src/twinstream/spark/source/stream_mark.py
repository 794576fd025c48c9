"""What tells a stream from an earlier state of it: a message, by its sequence and time.

A stream that is put back, from a backup or because it was in memory, keeps its time of creation and
gives sequences a second time. The new message at a sequence has another time than the old one.
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

    The newest message is the one that limits remove last, so it can be looked up for longest.
    """

    seq: int
    time: str

    @classmethod
    def read_in(cls, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members with ``mark`` read as a `Mark`; older releases did not store one."""
        stored = value.get("mark")
        return {**value, "mark": None if stored is None else cls(**stored)}
