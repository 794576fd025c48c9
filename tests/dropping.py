"""Dropping what the program has no more use for."""

from __future__ import annotations

import gc

__all__ = ["let_go"]


def let_go(things: list[object]) -> None:
    """Drop what only this list has, whatever else it refers to."""
    things.clear()
    gc.collect()
