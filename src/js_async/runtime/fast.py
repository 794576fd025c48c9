"""Waits of a connection, which end without another iteration of the event loop.

`Signal.sleep` is the readable version: a future for each wait, and a timer of the loop for each
deadline. `tests/fake/test_fast_waits.py` compares both. The fast version is used because a request
takes less CPU time with it, for two reasons:

- A future resumes its task by a callback, which the loop runs in its next iteration, after another
  poll for events. The reader of a connection avoids it: after the reader has processed all received
  data, it resumes the waiting tasks itself.
- Nearly every wait ends long before its deadline. Instead of creating and cancelling a timer for
  each wait, all waits of a connection share one, and each adds a dictionary entry. The timer is
  replaced only when it fires, or when a new wait has an earlier deadline.

With `Signal.sleep` instead, an awaited publish takes 1.15 times the CPU time, `next` 1.20 times,
and a publish of 16 tasks at once 1.7 times. With a timer for each wait it is 1.14, 1.13 and 1.24
times (Python 3.11, the shortest of five interleaved rounds).
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Generator
from contextvars import Context
from typing import TYPE_CHECKING, Final, NoReturn

from twinstream.core.deadline import Deadline, monotonic

if TYPE_CHECKING:
    from js_async.runtime.concurrency import Signal

__all__ = ["FastWaits"]


class FastWaits:
    """The waits of one connection. The reader of the connection encloses each read in a turn.

    The tasks that a turn wakes up resume when it ends.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._process: Final = os.getpid()
        self.is_turn = False
        """Whether a turn is in progress."""
        self.are_many = False
        """Whether the end of a turn resumes several tasks now.

        The data that they send is then written together."""
        self.woken: list[_FastWaiter] = []
        """The waits that ended during the current turn."""
        self._deadlines: Final[dict[_FastWaiter, float]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = math.inf

    async def sleep(self, signal: Signal, deadline: Deadline) -> bool:
        """Wait until the signal is set or the deadline has passed; return whether it is set."""
        if signal.raised:
            return True
        waiter = _FastWaiter(self, self._loop)
        signal.sleepers.append(waiter)
        self._deadlines[waiter] = deadline.at
        if deadline.at < self._rings_at:
            self._ring_at(deadline.at)
        try:
            await waiter
        finally:
            signal.sleepers.remove(waiter)
            del self._deadlines[waiter]
        return signal.raised

    # ---- turns

    def begin_turn(self) -> None:
        """Begin a read. Tasks that are woken up from now on resume when the turn ends."""
        self.is_turn = True

    def end_turn(self) -> None:
        """End a read: resume the tasks that were woken up, in order."""
        self.is_turn = False
        if not self.woken:
            return
        woken, self.woken = self.woken, []
        # If a task is running, no other task can run inside it. The woken tasks then resume in the
        # next iteration.
        if asyncio.current_task(self._loop) is not None:
            for waiter in woken:
                waiter.resume_soon()
            return
        self.are_many = len(woken) > 1
        for waiter in woken:
            try:
                waiter.resume()
            except BaseException as error:
                # Also `SystemExit`, as in a callback of the loop. The other tasks resume.
                if os.getpid() != self._process:
                    # The task forked, and this is the child process. No other task may resume.
                    raise
                # This exception must end the loop. It is raised in a callback, because some event
                # loops treat an exception in a reader as the end of the socket.
                self._loop.call_soon(_raise, error)
        self.are_many = False

    # ---- the timer

    def _ring_at(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at = at
        self._timer = self._loop.call_later(max(0.0, at - monotonic()), self._ring)

    def _ring(self) -> None:
        self._timer, self._rings_at = None, math.inf
        now = monotonic()
        earliest = math.inf
        for waiter, at in self._deadlines.items():
            if at > now:
                earliest = min(earliest, at)
            else:
                waiter.wake()
        if earliest < math.inf:
            self._ring_at(earliest)


def _raise(error: BaseException) -> NoReturn:
    raise error


class _FastWaiter:
    """A single wait of a task. It has the part of a future's interface that asyncio requires.

    If the task is woken up during a turn, it resumes at the end of the turn. Otherwise it resumes
    in the next iteration of the loop.
    """

    __slots__ = (
        "_asyncio_future_blocking",
        "_context",
        "_go_on",
        "_is_cancelled",
        "_is_over",
        "_loop",
        "_message",
        "_waits",
    )

    def __init__(self, waits: FastWaits, loop: asyncio.AbstractEventLoop) -> None:
        self._waits: Final = waits
        # asyncio reads this attribute.
        self._loop: Final = loop
        self._go_on: Callable[[_FastWaiter], object] | None = None
        self._is_over = False
        self._is_cancelled = False

    def wake(self) -> None:
        """End the wait, unless it has ended."""
        if self._is_over:
            return
        self._is_over = True
        if self._go_on is None:
            # The task has not started to wait, because a handler of a system signal or the garbage
            # collector set the signal. When it does, `__await__` returns at once.
            return
        waits = self._waits
        if waits.is_turn:
            waits.woken.append(self)
        else:
            self.resume_soon()

    def resume(self) -> None:
        """Resume the task now. Raises those exceptions of the task that end the loop."""
        if self._go_on is not None:
            self._context.run(self._go_on, self)

    def resume_soon(self) -> None:
        """Resume the task in the next iteration of the loop."""
        if self._go_on is not None:
            self._loop.call_soon(self._go_on, self, context=self._context)

    # ---- methods of a future that asyncio calls

    def __await__(self) -> Generator[_FastWaiter]:
        if not self._is_over:
            # A task recognises a yielded object as a future by this attribute (`asyncio.isfuture`).
            self._asyncio_future_blocking = True
            yield self

    def add_done_callback(
        self, callback: Callable[[_FastWaiter], object], *, context: Context
    ) -> None:
        """Store the callback that resumes the task. Called by asyncio."""
        self._context = context
        self._go_on = callback

    def result(self) -> None:
        """Return None, or raise `CancelledError` if the task was cancelled."""
        if self._is_cancelled:
            raise asyncio.CancelledError(*self._message)

    def cancel(self, msg: object = None) -> bool:
        """End the wait because the task is cancelled; return False if it has ended before."""
        if self._is_over:
            return False
        self._is_over = self._is_cancelled = True
        self._message = () if msg is None else (msg,)
        self.resume_soon()
        return True
