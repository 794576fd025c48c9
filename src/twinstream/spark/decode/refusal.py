"""The refusal of a block of messages by the vectorized decoder."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Refused"]


class Refused(Exception):
    """A block contains a message that must be decoded separately.

    ``rows`` has the positions of the messages to set aside before the next attempt, and is empty if
    they are not known. They are a guess: a message set aside needlessly only costs time. With
    ``first`` all messages before the only row are known to parse.
    """

    def __init__(self, rows: Sequence[int] = (), *, first: bool = False) -> None:
        super().__init__(rows)
        self.rows = rows
        self.first = first
