"""The mark of a stream's state: the sequence and the time of one message.

A stream may return to an earlier state: it was restored from a backup, or it was stored in memory.
Then it keeps its creation time and uses sequences again. The new message at a sequence has another
time than the old message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from attrs import frozen

__all__ = ["Mark", "TimeAt"]

TimeAt: TypeAlias = Callable[[str, int], str | None]
"""A function that returns when a message was stored, or ``None`` without the message.

Its arguments are the name of the stream and the sequence of the message.
"""


@frozen
class Mark:
    """The last message of a stream at some moment. ``time`` is an RFC 3339 time.

    Limits remove the newest message last, so this message stays in the stream for longest.
    """

    seq: int
    time: str

    @classmethod
    def read_in(cls, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members of a stored object with the member ``mark`` as a `Mark` or ``None``.

        Objects that older releases stored have no mark.
        """
        stored = value.get("mark")
        return {**value, "mark": None if stored is None else cls(**stored)}
