"""The mark of a stream's state: the sequence and the time of one message.

A stream may return to an earlier state, because it was restored from a backup, or because it is
stored in memory and the server restarted. Such a stream keeps its creation time and assigns the
same sequences again, to other messages. The time of the message at the mark's sequence shows
whether this happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from attrs import frozen

from twinstream.lake.stored_members import checked_members

__all__ = ["Mark", "TimeAt"]

TimeAt: TypeAlias = Callable[[str, int], str | None]
"""A function that returns when a message was stored (RFC 3339).

Its arguments are the name of the stream and the sequence of the message. It returns `None` if
the stream has no such message.
"""


@frozen
class Mark:
    """The sequence and the time (RFC 3339) of a stream's last message at some moment.

    The last message is the best mark, because limits remove it after all earlier messages.
    """

    seq: int
    time: str

    @classmethod
    def read_in(cls, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of a stored JSON object in which the member `mark` is a `Mark`.

        The member is `None` if the object has no mark, as in objects of older releases.
        """
        stored = value.get("mark")
        return {**value, "mark": None if stored is None else cls(**checked_members(cls, stored))}
