"""The exception with which the vectorized decoder refuses a block of messages."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["BlockRefused"]


class BlockRefused(Exception):
    """Raised if a block contains a message that must be decoded separately.

    `rows` has the positions of the messages to set aside before the next attempt; it is empty if
    they are unknown. The positions may be wrong. A message that is set aside needlessly costs time,
    but does not change the result. If `first` is true, `rows` has one position, and the reader
    can parse all messages before it.
    """

    def __init__(self, rows: Sequence[int] = (), *, first: bool = False) -> None:
        super().__init__(rows)
        self.rows = rows
        self.first = first
