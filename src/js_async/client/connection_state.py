"""The state of a session: connected, disconnected or closed, and the reasons of its changes."""

from __future__ import annotations

from typing import Final

from js_async.client.closable import Drainables
from js_async.runtime.concurrency import Signal
from twinstream.core.client.connection_events import Interrupted
from twinstream.errors import (
    ConnectionClosed,
    ConnectionLost,
    RequestTimeout,
    ServerError,
    TwinstreamError,
)

__all__ = ["ConnectionState"]

_BY_PROGRAM: Final = (
    "the program called `close` or `drain`, or left its `with` block; connect again"
)


class ConnectionState:
    """Whether a session is connected or closed, and why. Callers can wait for the next change."""

    def __init__(self) -> None:
        self.is_connected = False
        self.is_closed = False
        self.epoch = 0
        """The number of connects so far."""
        self.end: BaseException | None = None
        """The reason why the current TCP connection ended, or is about to end; None if unknown."""
        # Why the last attempt to connect failed, or else why the last connection ended.
        self._trouble: BaseException | None = None
        self.change = Signal()
        """The signal that the next change sets. Read it before the state, then wait for it."""
        self.drainables: Final = Drainables()
        """What the end of the connection by `drain` ends first."""

    # ---- changes

    def begin(self) -> None:
        """Record that a new TCP connection is being opened."""
        self.end = None

    def connected(self) -> None:
        """Record that the server has authenticated the client."""
        self.epoch += 1
        self.is_connected = True

    def disconnected(self) -> None:
        """Record that the connection does not work any more."""
        self.is_connected = False

    def note_server_error(self, error: TwinstreamError) -> None:
        """Record an error after which the server disconnects."""
        self.end = error

    def note_end(self, error: Exception | None) -> None:
        """Record the reason why the TCP connection ended; None if the server closed it.

        The server's own reason says more than the reset of the connection that follows it.
        """
        if not isinstance(self.end, ServerError) or isinstance(error, Interrupted):
            self.end = error or self.end or ConnectionLost("the server closed the connection")

    def note_trouble(self, error: BaseException | None) -> None:
        """Record why an attempt to connect failed, or why the connection is being replaced."""
        self._trouble = error

    def closed(self, cause: BaseException | None) -> None:
        """Record that the session is closed: by `cause`, or by the program if that is None."""
        self.end = cause
        self.is_connected = False
        self.is_closed = True

    def wake(self) -> None:
        """Wake up the callers that wait for a change of the state."""
        # Use a new signal for later waits. The old one stays set for the calls that wait for it.
        change, self.change = self.change, Signal()
        change.set()

    # ---- errors

    def closed_error(self) -> ConnectionClosed:
        """Return the error to raise after the session was closed, with the reason if known."""
        because = _BY_PROGRAM if self.end is None else str(self.end)
        error = ConnectionClosed(f"the connection is closed: {because}")
        error.__cause__ = self.end
        return error

    def lost_error(self, what: str) -> ConnectionLost:
        """Return the error to raise if the connection broke before `what` arrived."""
        return ConnectionLost(f"the connection broke before {what} came: {self._last()}")

    def late_error(self) -> RequestTimeout:
        """Return the error to raise if the client did not connect in time."""
        return RequestTimeout(f"not connected in time; last: {self._last()}")

    def _last(self) -> BaseException | None:
        return self.end or self._trouble
