"""The mark of a stream's state: one message, by its sequence and time.

A stream that is restored to an earlier state, from a backup or because it was stored in memory,
keeps its creation time and uses sequences a second time. The new message at a sequence has another
time than the old one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from attrs import frozen

__all__ = ["Mark", "TimeAt"]

TimeAt: TypeAlias = Callable[[str, int], str | None]
"""Returns when the message of a stream with a sequence was stored, or None if there is none."""


@frozen
class Mark:
    """The last message of a stream at some moment; ``time`` is RFC 3339.

    Limits remove the newest message last, so it stays available longest.
    """

    seq: int
    time: str

    @classmethod
    def read_in(cls, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members with ``mark`` as a `Mark`; offsets of older releases have no mark."""
        stored = value.get("mark")
        return {**value, "mark": None if stored is None else cls(**stored)}
