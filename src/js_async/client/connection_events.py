"""The iterator over the events of a connection."""

from __future__ import annotations

from collections import deque
from typing import Final, Self

from js_async.client.transport import Transport
from js_async.runtime.concurrency import LoopHint, Signal
from twinstream.core.client.connection_events import Closed, ConnectionEvent
from twinstream.core.deadline import NEVER, Deadline, Seconds
from twinstream.core.hooks import HOOKS, reached
from twinstream.errors import IterationEnded

__all__ = ["ConnectionEvents"]

# A program may leave the iterator unread for hours, so the number of buffered events is limited.
_KEPT: Final = 1000


class ConnectionEvents(LoopHint):
    """An iterator over the events of one connection; `Closed` is the last event.

    It buffers the newest 1,000 unread events and drops older ones.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport: Final = transport
        self._events: deque[ConnectionEvent] = deque(maxlen=_KEPT)
        self._signal: Final = Signal()
        self._ended = False

    def _notify(self, event: ConnectionEvent) -> None:
        """Buffer an event. The connection calls this."""
        self._events.append(event)
        self._signal.set()

    def __repr__(self) -> str:
        state = "ended" if self._ended else f"{len(self._events)} unread"
        return f"<ConnectionEvents: {state}>"

    async def next(self, *, timeout: Seconds | None = None) -> ConnectionEvent | None:
        """Return the next event, or None if none occurred in time.

        Args:
            timeout: The longest wait in seconds; None waits without limit.

        Raises:
            IterationEnded: All events were read, up to `Closed`.
        """
        event = await self._take_event(Deadline.after(timeout))
        if event is None and self._ended:
            raise IterationEnded("the connection is closed: no more events")
        return event

    async def _take_event(self, deadline: Deadline) -> ConnectionEvent | None:
        """Return the next event, or None at the deadline and after the end."""
        while True:
            # Clear the signal before reading the state, so that no change is missed.
            self._signal.clear()
            if HOOKS:
                reached("events: before look", self)
            if self._ended:
                # Set the signal again, so that the other waiting callers end, too.
                self._signal.set()
                return None
            try:
                event = self._events.popleft()
            except IndexError:
                pass
            else:
                if HOOKS:
                    reached("events: event taken", event)
                if isinstance(event, Closed):
                    # Never assign False: another caller may have read `Closed` meanwhile.
                    self._ended = True
                if self._ended or self._events:
                    # Wake up the other waiting callers.
                    self._signal.set()
                return event
            # If the wait ends early without a signal, another caller has cleared the signal and
            # taken the event. Then wait again.
            if not await self._transport.wait(self._signal, deadline) and deadline.expired():
                return None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConnectionEvent:
        """Return the next event; the iteration ends after `Closed`."""
        event = await self._take_event(NEVER)
        if event is None:
            raise StopAsyncIteration
        return event
