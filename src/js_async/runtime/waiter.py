"""Waits of the asyncio twin, which end without another iteration of the event loop.

A future resumes its task by a callback, which the loop runs in its next iteration, after another
poll for events. This detour takes a sixth of all the steps of an awaited publish. The reader of a
connection avoids it: after the reader has processed all received data, it resumes the waiting tasks
itself.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Final, NoReturn

from twinstream.core.deadline import monotonic

__all__ = ["Alarm", "Turn", "Waiter"]


class Turn:
    """One read of a connection. The tasks that the read wakes up resume when the read ends."""

    __slots__ = ("_loop", "_process", "are_many", "is_on", "woken")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._process: Final = os.getpid()
        # Whether a read is in progress. Set by the reader.
        self.is_on = False
        # Whether this turn resumes several tasks now. The data that they send is then written
        # together.
        self.are_many = False
        self.woken: list[Waiter] = []

    def end(self) -> None:
        """End the turn: resume the tasks that were woken up, in order."""
        self.is_on = False
        if not self.woken:
            return
        woken, self.woken = self.woken, []
        # If a task is running, no other task can run inside it. The woken tasks then resume in the
        # next iteration.
        if asyncio.current_task(self._loop) is not None:
            for sleeper in woken:
                sleeper.go_on_soon()
            return
        self.are_many = len(woken) > 1
        for sleeper in woken:
            try:
                sleeper.go_on()
            except BaseException as error:
                # Also `SystemExit`, as in a callback of the loop. The other tasks resume.
                if os.getpid() != self._process:
                    # The task forked, and this is the child process. No other task may resume.
                    raise
                # This exception must end the loop. It is raised in a callback, because some event
                # loops treat an exception in a reader as the end of the socket.
                self._loop.call_soon(_raise, error)
        self.are_many = False


def _raise(error: BaseException) -> NoReturn:
    raise error


class Waiter:
    """A single wait of a task. It has the part of a future's interface that asyncio requires.

    If the task is woken up during a turn, it resumes at the end of the turn. Otherwise it resumes
    in the next iteration of the loop.
    """

    __slots__ = (
        "_asyncio_future_blocking",
        "_context",
        "_go_on",
        "_loop",
        "_message",
        "_turn",
        "is_cancelled",
        "is_over",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, turn: Turn | None = None) -> None:
        self._loop: Final = loop
        self._turn: Final = turn
        self._go_on: Callable[[Waiter], object] | None = None
        self.is_over = False
        self.is_cancelled = False

    def wake(self) -> None:
        """End the wait, unless it has ended."""
        if self.is_over:
            return
        self.is_over = True
        if self._go_on is None:
            # The task has not started to wait. When it does, `__await__` returns at once.
            return
        turn = self._turn
        if turn is not None and turn.is_on:
            turn.woken.append(self)
        else:
            self.go_on_soon()

    def go_on(self) -> None:
        """Resume the task now. Raises those exceptions of the task that end the loop."""
        if self._go_on is not None:
            self._context.run(self._go_on, self)

    def go_on_soon(self) -> None:
        """Resume the task in the next iteration of the loop."""
        if self._go_on is not None:
            self._loop.call_soon(self._go_on, self, context=self._context)

    # ---- methods of a future that asyncio calls

    def __await__(self) -> Generator[Waiter]:
        if not self.is_over:
            # A task recognises a yielded object as a future by this attribute.
            self._asyncio_future_blocking = True
            yield self

    def add_done_callback(self, callback: Callable[[Waiter], object], *, context: Context) -> None:
        """Store the callback that resumes the task. Called by asyncio."""
        self._context = context
        self._go_on = callback

    def result(self) -> None:
        """Return None, or raise `CancelledError` if the task was cancelled."""
        if self.is_cancelled:
            raise asyncio.CancelledError(*self._message)

    def cancel(self, msg: object = None) -> bool:
        """End the wait because the task is cancelled; return False if it has ended before."""
        if self.is_over:
            return False
        self.is_over = self.is_cancelled = True
        self._message = () if msg is None else (msg,)
        self.go_on_soon()
        return True


class Alarm:
    """The timer of a connection, which wakes up waiting tasks at their deadlines.

    Nearly every wait ends long before its deadline. Creating and cancelling a loop timer for each
    wait would be a tenth of the work of a request. So all waits share one timer, and each wait adds
    a dictionary entry. The timer is replaced only when it fires, or when a new wait has an earlier
    deadline.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._sleepers: Final[dict[Waiter, float]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = math.inf

    def set(self, sleeper: Waiter, at: float) -> None:
        """Wake up `sleeper` at the time `at` (monotonic seconds; infinity means never)."""
        self._sleepers[sleeper] = at
        if at < self._rings_at:
            self._ring_at(at)

    def clear(self, sleeper: Waiter) -> None:
        """Do not wake up `sleeper` any more."""
        self._sleepers.pop(sleeper, None)

    def _ring_at(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at = at
        self._timer = self._loop.call_later(max(0.0, at - monotonic()), self._ring)

    def _ring(self) -> None:
        self._timer, self._rings_at = None, math.inf
        now = monotonic()
        earliest = math.inf
        for sleeper, at in self._sleepers.items():
            if at > now:
                earliest = min(earliest, at)
            else:
                sleeper.wake()
        if earliest < math.inf:
            self._ring_at(earliest)
