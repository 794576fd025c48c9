"""A block of messages that the vectorised decoder does not take."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Refused"]


class Refused(Exception):
    """A block with a message that needs a closer look.

    ``rows`` are the positions of the messages to set aside before the next attempt, empty where
    nothing points at one. They are a guess: a message set aside in vain only costs time. With
    ``first`` all messages before the only row are known to parse.
    """

    def __init__(self, rows: Sequence[int] = (), *, first: bool = False) -> None:
        super().__init__(rows)
        self.rows = rows
        self.first = first
