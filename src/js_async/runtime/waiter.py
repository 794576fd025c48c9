"""Sleeping in the asyncio twin, and waking without another turn of the event loop.

A future wakes its task by a callback that the loop runs in its next turn, after another look for
events: a sixth of all the steps of an awaited publish. Whoever reads a connection lets the tasks
that it woke go on itself instead, once all that was read is handed out.
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
    """A turn of the loop in which a connection is read: whom it woke goes on at its end."""

    __slots__ = ("_loop", "_process", "is_on", "woken")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._process: Final = os.getpid()
        # Whether reading is under way; set by the reader.
        self.is_on = False
        self.woken: list[Sleeper] = []

    def end(self) -> None:
        """Let the tasks that were woken go on, in their order."""
        self.is_on = False
        if not self.woken:
            return
        woken, self.woken = self.woken, []
        # A task cannot run inside another one.
        inside = asyncio.current_task(self._loop) is not None
        for sleeper in woken:
            if inside:
                sleeper.go_on_soon()
            else:
                self._go_on(sleeper)

    def _go_on(self, sleeper: Sleeper) -> None:
        try:
            sleeper.go_on()
        except BaseException as error:
            if os.getpid() != self._process:
                # Forked off by that task, which ends. No other goes on in a turn of the parent.
                raise
            # What ends the loop: raised where the loop looks for it, not out of a reader, which
            # some loops take for the end of the socket.
            self._loop.call_soon(_raise, error)


def _raise(error: BaseException) -> NoReturn:
    raise error


class Sleeper:
    """One sleep of one task, who awaits it: what asyncio asks of a future, and no more.

    Woken in a turn that is on, its task goes on at the end of that, else in the next one.
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
        """End the sleep, unless it is over."""
        if self.is_over:
            return
        self.is_over = True
        if self._go_on is None:
            # Nobody sleeps yet, and nobody will.
            return
        turn = self._turn
        if turn is not None and turn.is_on:
            turn.woken.append(self)
        else:
            self.go_on_soon()

    def go_on(self) -> None:
        """Let the task go on now; raises what ends the loop."""
        if self._go_on is not None:
            self._context.run(self._go_on, self)

    def go_on_soon(self) -> None:
        """Let the task go on in the next turn."""
        if self._go_on is not None:
            self._loop.call_soon(self._go_on, self, context=self._context)

    # ---- what a task asks of a future

    def __await__(self) -> Generator[Sleeper]:
        if not self.is_over:
            # So a task tells what it is to wait for from what was yielded by mistake.
            self._asyncio_future_blocking = True
            yield self

    def add_done_callback(self, callback: Callable[[Sleeper], object], *, context: Context) -> None:
        """Note how the task goes on."""
        self._context = context
        self._go_on = callback

    def result(self) -> None:
        """Return, or raise that the task was cancelled."""
        if self.is_cancelled:
            raise asyncio.CancelledError(*self._message)

    def cancel(self, msg: object = None) -> bool:
        """End the sleep because the task is cancelled; tell whether it was not over."""
        if self.is_over:
            return False
        self.is_over = self.is_cancelled = True
        self._message = () if msg is None else (msg,)
        self.go_on_soon()
        return True


class Alarm:
    """Wakes sleepers at their deadlines: one timer for a whole connection.

    Nearly every wait ends by what came, long before its deadline. A timer of the loop for each,
    made and cancelled, is a tenth of the work of a request; here a wait costs an entry in a
    dictionary, and the timer is made anew when it rings or when somebody's deadline is sooner.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._sleepers: Final[dict[Sleeper, float]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = math.inf

    def set(self, sleeper: Sleeper, at: float) -> None:
        """Wake a sleeper at a moment (monotonic; infinite is never), unless `clear` comes first."""
        self._sleepers[sleeper] = at
        if at < self._rings_at:
            self._ring_at(at)

    def clear(self, sleeper: Sleeper) -> None:
        """Forget a sleeper."""
        self._sleepers.pop(sleeper, None)

    @property
    def is_set(self) -> bool:
        """Tell whether anybody sleeps."""
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
