"""`opening`, the blocking counterpart of the asyncio twin's function of the same name.

Part of the seam between the twins.
"""

from __future__ import annotations

from typing import TypeVar

__all__ = ["opening"]

T = TypeVar("T")


def opening(work: T) -> T:
    """Return `work`. In this twin, it is the object, which is already open."""
    return work
