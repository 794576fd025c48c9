"""One timer for everybody who waits on a connection, whatever their deadlines.

Nearly every wait ends by what came, long before its deadline. A timer of the event loop for each,
made and cancelled, is a tenth of the work of a request; here a wait costs an entry in a dictionary,
and the one timer is made anew when it rings or when somebody's deadline is sooner.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final

from js_core.deadline import monotonic

__all__ = ["Alarm"]


class Alarm:
    """Wakes sleepers at their deadlines with the result False."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._sleepers: Final[dict[asyncio.Future[bool], float]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = math.inf

    def set(self, sleeper: asyncio.Future[bool], at: float) -> None:
        """Wake a sleeper at a moment (monotonic; infinite is never), unless `clear` comes first."""
        self._sleepers[sleeper] = at
        if at < self._rings_at:
            self._ring_at(at)

    def clear(self, sleeper: asyncio.Future[bool]) -> None:
        """Forget a sleeper."""
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
            elif not sleeper.done():
                sleeper.set_result(False)
        if earliest < math.inf:
            self._ring_at(earliest)
