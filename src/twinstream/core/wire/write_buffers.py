"""Join short pieces of outgoing bytes; leave long pieces as they are.

Many short messages are cheaper to send in one piece. A long payload is passed to the system without
a copy. A copy would need fresh memory from the system, with a page fault for each 4 KiB, which is
twice the work of sending the payload.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["LONG", "Piece", "behind", "to_write"]

Piece = bytes | memoryview

LONG: Final = 1 << 16
"""Pieces with more bytes than this are not joined with the pieces before and after them."""


def to_write(pieces: Iterable[Piece], size: int) -> list[memoryview]:
    """Return the same bytes in fewer pieces: adjacent short pieces are joined.

    `size` is the approximate total in bytes. If it is at most `LONG`, all pieces are joined.
    """
    if size <= LONG:
        return [memoryview(b"".join(pieces))]
    found: list[memoryview] = []
    short: list[Piece] = []
    for piece in pieces:
        if len(piece) <= LONG:
            short.append(piece)
            continue
        if short:
            found.append(memoryview(b"".join(short)))
            short.clear()
        found.append(memoryview(piece))
    if short:
        found.append(memoryview(b"".join(short)))
    return found


def behind(pieces: list[memoryview], count: int) -> list[memoryview]:
    """Return the pieces without their first `count` bytes."""
    for at, piece in enumerate(pieces):
        if count < len(piece):
            return [piece[count:], *pieces[at + 1 :]]
        count -= len(piece)
    return []
