# Generated from src/js_async/client/connection_events.py by codegen/twin.py. Edit that file instead.
"""Iterating over what happens to a connection."""

from __future__ import annotations

from collections import deque
from typing import Final, Self

from twinstream.core.deadline import NEVER, Deadline, Seconds
from twinstream.errors import ConnectionClosed, RequestTimeout
from twinstream.core.connect.connection_events import Closed, ConnectionEvent
from js_sync.runtime.concurrency import LoopHint, Signal
from js_sync.client.transport import Transport

__all__ = ["ConnectionEvents"]

# Nobody may look for hours; the newest ones are worth keeping.
_KEPT: Final = 1000


class ConnectionEvents(LoopHint):
    """The events of one connection; the last one is `Closed`. Keeps the newest 1,000 unread."""

    def __init__(self, transport: Transport) -> None:
        self._transport: Final = transport
        self._events: deque[ConnectionEvent] = deque(maxlen=_KEPT)
        self._signal: Final = Signal()
        self._ended = False

    def _tell(self, event: ConnectionEvent) -> None:
        """Take an event; the connection does it."""
        self._events.append(event)
        self._signal.set()

    def __repr__(self) -> str:
        state = "ended" if self._ended else f"{len(self._events)} unread"
        return f"<ConnectionEvents: {state}>"

    def next(self, timeout: Seconds | None = None) -> ConnectionEvent:
        """Return the next event within `timeout` seconds; None waits for ever.

        Raises `RequestTimeout`, and `ConnectionClosed` after the last one.
        """
        event = self._next(Deadline.after(timeout))
        if event is None:
            raise ConnectionClosed("the connection is closed: no more events")
        return event

    def _next(self, deadline: Deadline) -> ConnectionEvent | None:
        while not self._ended:
            # The flag goes down before the queue is looked into: nothing is missed.
            self._signal.clear()
            try:
                event = self._events.popleft()
            except IndexError:
                pass
            else:
                if isinstance(event, Closed):
                    # Never lowered again: another caller may have taken an earlier event.
                    self._ended = True
                if self._ended or self._events:
                    # For others who wait.
                    self._signal.set()
                return event
            # One of them may have lowered the flag, and taken what came.
            if not self._transport.wait(self._signal, deadline) and deadline.expired():
                raise RequestTimeout("no event in time")
        return None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ConnectionEvent:
        """Return the next event; the iteration ends after `Closed`."""
        event = self._next(NEVER)
        if event is None:
            raise StopIteration
        return event
