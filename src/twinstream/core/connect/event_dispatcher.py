"""Deliver the events of several threads one at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from twinstream.core.connect.connection_events import Closed, ConnectionEvent

__all__ = ["Announcer"]


class Announcer:
    """A queue that passes events to a callback one at a time. `Closed` is the last event.

    No thread waits. While one thread delivers an event, it also delivers the events that other
    threads add.
    """

    def __init__(self, pass_on: Callable[[ConnectionEvent], None]) -> None:
        self._pass_on: Final = pass_on
        self._due: Final[deque[ConnectionEvent]] = deque()
        # The right to deliver: empty while a thread delivers. pop() is atomic.
        self._turn: Final = deque([True])
        self._over = False

    def tell(self, event: ConnectionEvent) -> None:
        """Deliver an event, or queue it if another event is being delivered."""
        self._due.append(event)
        # Events that other threads added during a delivery are delivered by this thread.
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
