"""What scenarios need of concurrency; `_async/flow.py` has the same names on tasks."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from twinstream.core.deadline import Deadline

__all__ = ["ended", "eventually", "pause", "together"]


def together(*works: Callable[[], Any]) -> list[Any]:
    """Run works at the same time and return what each returned."""
    with ThreadPoolExecutor(len(works)) as pool:
        return [future.result() for future in [pool.submit(work) for work in works]]


def eventually(condition: Callable[..., Any], *args: Any, patience: float = 30.0) -> Any:
    """Return the first true value of a condition; fail when there is none in time."""
    deadline = Deadline.after(patience)
    while not deadline.expired():
        value = condition(*args)
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"not within {patience} s: {condition}")


def pause(delay: float) -> None:
    """Let others work for a while, as a handler does that waits for something slow."""
    time.sleep(delay)


def ended(iterable: Any) -> None:
    """End an iteration as the interpreter does when nobody has it any more."""
    iter(iterable).close()
