"""`opening`: the blocking counterpart of the asyncio twin's `Opening`. Part of the seam."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["opening"]

T = TypeVar("T")


def opening(work: T) -> T:
    """Return `work`: in this twin, the object is already open."""
    return work
