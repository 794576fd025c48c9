"""Delivers events one at a time, whichever threads they come from."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from twinstream.core.connect.connection_events import Closed, ConnectionEvent

__all__ = ["Announcer"]


class Announcer:
    """Passes events on in the order of their arrival; `Closed` is the last one.

    No thread waits. If another thread is delivering an event, the caller's event is queued for that
    thread.
    """

    def __init__(self, pass_on: Callable[[ConnectionEvent], None]) -> None:
        self._pass_on: Final = pass_on
        self._due: Final[deque[ConnectionEvent]] = deque()
        # Holds the token of the delivering thread, empty while one delivers. pop() is atomic.
        self._turn: Final = deque([True])
        self._over = False

    def tell(self, event: ConnectionEvent) -> None:
        """Deliver an event, or queue it if another one is being delivered."""
        self._due.append(event)
        # Checked after each delivery: events that arrived meanwhile were queued for this thread.
        while self._due:
            try:
                turn = self._turn.pop()
            except IndexError:
                return
            try:
                self._next()
            finally:
                self._turn.append(turn)

    def _next(self) -> None:
        if not self._due or self._over:
            self._due.clear()
            return
        event = self._due.popleft()
        self._over = isinstance(event, Closed)
        self._pass_on(event)
