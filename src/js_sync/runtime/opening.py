"""Return value of calls that open something, which is open already; part of the seam."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["opening"]

T = TypeVar("T")


def opening(work: T) -> T:
    """Return the opened object."""
    return work
