"""What scenarios need of concurrency; `_async/flow.py` has the same names on tasks."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from threading import Thread
from typing import Any

from twinstream.core.deadline import Deadline

__all__ = ["ended", "eventually", "pause", "together"]


def together(*works: Callable[[], Any]) -> list[Any]:
    """Run works at the same time and return what each returned.

    The first failure is raised at once, as `asyncio.gather` does. The other works may wait for what
    the failed one would have done; the end of their connection ends them, and nothing waits for
    their threads.
    """
    futures = [_begun(work) for work in works]
    for each in wait(futures, return_when=FIRST_EXCEPTION).done:
        each.result()
    return [each.result() for each in futures]


def _begun(work: Callable[[], Any]) -> Future[Any]:
    """Run a work in a thread of its own, which does not hold up the end of the process."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future


def eventually(condition: Callable[..., Any], *args: Any, patience: float = 120.0) -> Any:
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
