"""Waiting in the asyncio twin, and waking up without another iteration of the event loop.

A future wakes up its task with a callback that the loop runs in its next iteration, after another
poll for events. That is a sixth of all the steps of an awaited publish. The reader of a connection
instead resumes the tasks that it woke up itself, after it has dispatched all that was read.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Final, NoReturn

from twinstream.core.deadline import monotonic

__all__ = ["Alarm", "Sleeper", "Turn"]


class Turn:
    """A loop iteration in which a connection is read; tasks woken up in it resume at its end."""

    __slots__ = ("_loop", "_process", "are_many", "is_on", "woken")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._process: Final = os.getpid()
        # Whether reading is in progress; set by the reader.
        self.is_on = False
        # Whether several tasks resume now, so that what they send is written together.
        self.are_many = False
        self.woken: list[Sleeper] = []

    def end(self) -> None:
        """Resume the tasks that were woken up, in order."""
        self.is_on = False
        if not self.woken:
            return
        woken, self.woken = self.woken, []
        # A task cannot run inside another one.
        if asyncio.current_task(self._loop) is not None:
            for sleeper in woken:
                sleeper.go_on_soon()
            return
        self.are_many = len(woken) > 1
        for sleeper in woken:
            try:
                sleeper.go_on()
            except BaseException as error:
                if os.getpid() != self._process:
                    # The task forked, and this is the child process. No other task may resume.
                    raise
                # This exception ends the loop. It is raised in a callback, as some loops treat
                # an exception in a reader as the end of the socket.
                self._loop.call_soon(_raise, error)
        self.are_many = False


def _raise(error: BaseException) -> NoReturn:
    raise error


class Sleeper:
    """One wait of one task: the subset of a future's interface that asyncio requires.

    If it is woken up during a turn, its task resumes at the end of the turn, otherwise in the next
    iteration.
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
        self._go_on: Callable[[Sleeper], object] | None = None
        self.is_over = False
        self.is_cancelled = False

    def wake(self) -> None:
        """End the wait, unless it is over."""
        if self.is_over:
            return
        self.is_over = True
        if self._go_on is None:
            # No task waits yet, and none will.
            return
        turn = self._turn
        if turn is not None and turn.is_on:
            turn.woken.append(self)
        else:
            self.go_on_soon()

    def go_on(self) -> None:
        """Resume the task now; raises exceptions that end the loop."""
        if self._go_on is not None:
            self._context.run(self._go_on, self)

    def go_on_soon(self) -> None:
        """Resume the task in the next iteration."""
        if self._go_on is not None:
            self._loop.call_soon(self._go_on, self, context=self._context)

    # ---- the interface that a task requires of a future

    def __await__(self) -> Generator[Sleeper]:
        if not self.is_over:
            # With this attribute a task distinguishes a future from any other yielded object.
            self._asyncio_future_blocking = True
            yield self

    def add_done_callback(self, callback: Callable[[Sleeper], object], *, context: Context) -> None:
        """Set the callback that resumes the task."""
        self._context = context
        self._go_on = callback

    def result(self) -> None:
        """Return; raise `CancelledError` if the task was cancelled."""
        if self.is_cancelled:
            raise asyncio.CancelledError(*self._message)

    def cancel(self, msg: object = None) -> bool:
        """End the wait because the task is cancelled; return False if it was over before."""
        if self.is_over:
            return False
        self.is_over = self.is_cancelled = True
        self._message = () if msg is None else (msg,)
        self.go_on_soon()
        return True


class Alarm:
    """Wakes up waiters at their deadlines, with one timer for a whole connection.

    Nearly every wait ends long before its deadline. A loop timer for each, created and cancelled,
    is a tenth of the work of a request. Here a wait costs a dictionary entry, and the timer is only
    replaced when it fires, or for an earlier deadline.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._sleepers: Final[dict[Sleeper, float]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = math.inf

    def set(self, sleeper: Sleeper, at: float) -> None:
        """Wake up a waiter at a time (monotonic; infinite is never), unless it is cleared first."""
        self._sleepers[sleeper] = at
        if at < self._rings_at:
            self._ring_at(at)

    def clear(self, sleeper: Sleeper) -> None:
        """Remove a waiter."""
        self._sleepers.pop(sleeper, None)

    @property
    def is_set(self) -> bool:
        """Whether there are waiters."""
        return bool(self._sleepers)

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
