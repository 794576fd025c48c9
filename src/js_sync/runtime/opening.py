"""The seam: what a call returns that opens something, which is open already."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["opening"]

T = TypeVar("T")


def opening(work: T) -> T:
    """Return the thing that was opened."""
    return work
