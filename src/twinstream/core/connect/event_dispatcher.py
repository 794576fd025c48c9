"""Events told one at a time, whichever threads they come from."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from twinstream.core.connect.connection_events import Closed, ConnectionEvent

__all__ = ["Announcer"]


class Announcer:
    """Passes events on in the order in which they come; `Closed` is the last.

    Nobody waits: a thread that comes while another one passes an event on leaves its own event to
    that thread.
    """

    def __init__(self, pass_on: Callable[[ConnectionEvent], None]) -> None:
        self._pass_on: Final = pass_on
        self._due: Final[deque[ConnectionEvent]] = deque()
        # Empty while one is told: taking out of it is one step for all threads.
        self._turn: Final = deque([True])
        self._over = False

    def tell(self, event: ConnectionEvent) -> None:
        """Pass an event on, now or behind those that are being told."""
        self._due.append(event)
        # Looked at again after each: what came meanwhile was left to us.
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
