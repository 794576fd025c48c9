"""Concurrency for scenarios. `_sync/flow.py` has the same names, implemented with threads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from twinstream.core.deadline import Deadline

__all__ = ["ended", "eventually", "pause", "together"]


async def together(*works: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Run several functions concurrently, and return their results."""
    return list(await asyncio.gather(*(work() for work in works)))


async def eventually(
    condition: Callable[..., Awaitable[Any]], *args: Any, patience: float = 120.0
) -> Any:
    """Return the first true value of a condition; fail if there is none before the deadline."""
    deadline = Deadline.after(patience)
    while not deadline.expired():
        value = await condition(*args)
        if value:
            return value
        await asyncio.sleep(0.01)
    raise AssertionError(f"not within {patience} s: {condition}")


async def pause(delay: float) -> None:
    """Let other tasks or threads run for a while, as a slow handler does."""
    await asyncio.sleep(delay)


async def ended(iterable: Any) -> None:
    """End an iteration as the interpreter ends an unreferenced iterator."""
    await iterable.__aiter__().aclose()
