"""Join outgoing bytes: short pieces are joined, long ones are written separately.

Joining makes many short messages cheap. A long payload is passed to the system without a copy: a
copy needs fresh memory from the system, with a page fault for each 4 KiB, which is twice the work
of sending it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["LONG", "Piece", "behind", "to_write"]

Piece = bytes | memoryview

LONG: Final = 1 << 16
"""Payloads of more bytes than this are not joined with the bytes before and after them."""


def to_write(pieces: Iterable[Piece], size: int) -> list[memoryview]:
    """Return the same bytes in fewer pieces: adjacent short ones are joined.

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
    """Return what remains of the pieces after their first `count` bytes."""
    for at, piece in enumerate(pieces):
        if count < len(piece):
            return [piece[count:], *pieces[at + 1 :]]
        count -= len(piece)
    return []
