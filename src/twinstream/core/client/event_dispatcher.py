"""Deliver the events of several threads one at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from twinstream.core.client.connection_events import Closed, ConnectionEvent

__all__ = ["EventDispatcher"]


class EventDispatcher:
    """A queue that passes events to a callback one at a time.

    No thread waits. While one thread delivers an event, other threads only add theirs, and the
    first thread delivers those, too. Events after `Closed` are discarded.
    """

    def __init__(self, pass_on: Callable[[ConnectionEvent], None]) -> None:
        self._pass_on: Final = pass_on
        self._due: Final[deque[ConnectionEvent]] = deque()
        # Contains one item, except while a thread delivers. A thread may deliver if it could pop
        # the item. pop() is atomic, so no other thread can do so at the same time.
        self._turn: Final = deque([True])
        self._over = False

    def tell(self, event: ConnectionEvent) -> None:
        """Deliver an event, or queue it if another event is being delivered."""
        self._due.append(event)
        # The loop also delivers events that other threads add during a delivery.
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
