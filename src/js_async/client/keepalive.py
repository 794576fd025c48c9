"""The PINGs of a connection, and the signals that its PONGs set."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from js_async.runtime.concurrency import Signal
from js_async.runtime.socket_link import Link
from twinstream.core.client.connection_events import Interrupted
from twinstream.core.on_failure import OnFailure
from twinstream.core.wire.protocol import PING
from twinstream.errors import ConnectionLost

__all__ = ["KeepAlive"]


class KeepAlive:
    """The PINGs in flight, each with a signal, in the order in which they were sent.

    The server answers PINGs in order, so each PONG sets the oldest signal.
    """

    def __init__(self, link: Link) -> None:
        self._link: Final = link
        self._waiting: deque[Signal] = deque()
        self._beat: Signal | None = None

    def restart(self) -> Signal:
        """Begin a new connection: forget all PINGs, and return the signal of its first PONG.

        The caller then sends the PING that follows CONNECT. Signals of an earlier connection are
        not set; the callers that wait for them check the epoch.
        """
        first = Signal()
        self._waiting = deque((first,))
        self._beat = None
        return first

    def send(self, is_current: Callable[[], bool]) -> Signal | None:
        """Send a PING and return the signal of its PONG, or None if the connection is lost.

        `is_current` returns False if the connection of the caller was lost, even if the client has
        reconnected since.
        """
        with OnFailure(self._abort):
            flag = self._expect()
            if is_current():
                self._link.write_unasked(PING)
                return flag
            # The connection was lost before the signal was added, so no PONG will set it.
            self._forget(flag)
        return None

    def _abort(self) -> None:
        # The call was interrupted, perhaps before the PING was sent. PONGs are matched to signals
        # by their order, so the next PONG could set the wrong signal.
        self._link.abort(Interrupted("the program was interrupted while it sent a PING"))

    def beat(self, interval: float) -> None:
        """Send a heartbeat PING, or abort the connection if the last heartbeat got no PONG.

        `interval` is the time in seconds since the previous heartbeat.
        """
        if self._beat is not None and not self._beat.is_set():
            self._link.abort(ConnectionLost(f"no answer to a PING within {interval:g} s"))
            return
        self._beat = self._expect()
        self._link.write_unasked(PING)

    def _expect(self) -> Signal:
        flag = Signal()
        self._waiting.append(flag)
        return flag

    def _forget(self, flag: Signal) -> None:
        try:
            self._waiting.remove(flag)
        except ValueError:
            # `restart` has cleared the list for a new connection.
            pass

    def came(self) -> None:
        """Process a PONG: set the oldest signal."""
        try:
            flag = self._waiting.popleft()
        except IndexError:
            # The PONG answers a PING of a previous connection.
            return
        flag.set()

    def wake(self) -> None:
        """Set all signals, because no PONG will arrive."""
        while self._waiting:
            self.came()
