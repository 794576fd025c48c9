"""Bytes on their way out: short pieces together, long ones by themselves.

Joining is what makes many short messages cheap. A long payload is handed to the system where it
lies: memory for a copy of it comes fresh from the system, a page fault for each 4 KiB, which is
twice the work of sending it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["LONG", "Piece", "behind", "to_write"]

Piece = bytes | memoryview

LONG: Final = 1 << 16
"""Bytes of a payload that is not joined with what is before and behind it, if it has more."""


def to_write(pieces: Iterable[Piece], size: int) -> list[memoryview]:
    """Return the same bytes in fewer pieces: neighbours that are short are joined.

    `size` is about how many bytes they are; where that is little, none is looked at by itself.
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
    """Return what is left of the pieces behind their first `count` bytes."""
    for at, piece in enumerate(pieces):
        if count < len(piece):
            return [piece[count:], *pieces[at + 1 :]]
        count -= len(piece)
    return []
