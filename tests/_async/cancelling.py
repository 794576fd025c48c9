"""Cancel a coroutine at each point where it may be suspended.

A call is run step by step and cancelled at its first suspension, at its second, and so on, in two
ways: while it waits, and when the awaited result has just arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from typing import Any

import pytest

WAITING, READY = "while it waits", "when it may go on"


WAYS = pytest.mark.parametrize("way", [WAITING, READY])


class Before:
    """An awaitable that runs an action before the waiting task is notified."""

    def __init__(self, future: Any, act: Callable[[], object]) -> None:
        self.future = future
        self.act = act
        self.get_loop = asyncio.get_running_loop
        self.cancel = future.cancel
        self.result = future.result
        # So a task knows what it may wait for.
        self._asyncio_future_blocking = True

    def add_done_callback(self, callback: Callable[[Any], object], *, context: Context) -> None:
        def both(_: object) -> None:
            self.act()
            callback(self)

        self.future.add_done_callback(both, context=context)


class Steps:
    """Run a coroutine and cancel its task at one of its suspensions, counted from 1."""

    def __init__(self, work: Coroutine[Any, Any, Any], stop_at: int, way: str) -> None:
        self.work = work
        self.stop_at = stop_at
        self.way = way
        self.suspensions = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        task = asyncio.current_task()
        assert task is not None
        step: Callable[[], Any] = lambda: self.work.send(None)  # noqa: E731
        while True:
            try:
                future = step()
            except StopIteration as end:
                return end.value
            self.suspensions += 1
            if self.suspensions == self.stop_at:
                # Before the task itself is notified: it is cancelled with its result at hand.
                if self.way == READY and future is not None:
                    future = Before(future, task.cancel)
                else:
                    task.cancel()
            try:
                value = yield future
            except BaseException as error:
                step = lambda error=error: self.work.throw(error)  # noqa: E731
            else:
                step = lambda value=value: self.work.send(value)  # noqa: E731


async def cancelled_at(work: Coroutine[Any, Any, Any], stop_at: int, way: str) -> tuple[bool, bool]:
    """Run work; return whether it had that many suspensions, and whether it was cancelled."""
    steps = Steps(work, stop_at, way)

    async def run() -> Any:
        return await steps

    task = asyncio.create_task(run())
    await asyncio.wait([task], timeout=20)
    assert task.done(), "a cancelled call must end"
    if not task.cancelled():
        task.result()
    return steps.suspensions >= stop_at, task.cancelled()
