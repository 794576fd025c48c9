"""What scenarios need of concurrency; `_sync/flow.py` has the same names on threads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from twinstream.core.deadline import Deadline

__all__ = ["ended", "eventually", "pause", "together"]


async def together(*works: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Run works at the same time and return what each returned."""
    return list(await asyncio.gather(*(work() for work in works)))


async def eventually(
    condition: Callable[..., Awaitable[Any]], *args: Any, patience: float = 30.0
) -> Any:
    """Return the first true value of a condition; fail when there is none in time."""
    deadline = Deadline.after(patience)
    while not deadline.expired():
        value = await condition(*args)
        if value:
            return value
        await asyncio.sleep(0.01)
    raise AssertionError(f"not within {patience} s: {condition}")


async def pause(delay: float) -> None:
    """Let others work for a while, as a handler does that waits for something slow."""
    await asyncio.sleep(delay)


async def ended(iterable: Any) -> None:
    """End an iteration as the interpreter does for an unreferenced iterator."""
    await iterable.__aiter__().aclose()
