"""The PINGs of a connection, and the signals of those that wait for a PONG."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from js_async.runtime.concurrency import Signal
from js_async.runtime.socket_link import Link
from twinstream.core.wire.protocol import PING
from twinstream.errors import ConnectionLost

__all__ = ["Pings"]


class Pings:
    """Sends PINGs and keeps a signal for each one in flight, in sending order.

    A server answers PINGs in order, so each PONG sets the oldest signal.
    """

    def __init__(self, link: Link) -> None:
        self._link: Final = link
        self._waiting: deque[Signal] = deque()
        self._beat: Signal | None = None

    def restart(self) -> Signal:
        """Start over with the PING that authenticates a new connection, before it is sent.

        Signals of an earlier connection are left alone: their owners check the epoch.
        """
        first = Signal()
        self._waiting = deque((first,))
        self._beat = None
        return first

    def send(self, is_current: Callable[[], bool]) -> Signal | None:
        """Send a PING and return the signal of its PONG, or None if the connection is lost.

        `is_current` returns whether the connection is still the intended one.
        """
        try:
            flag = self._expect()
            if is_current():
                self._link.post(PING)
                return flag
            # The connection was lost before the signal was listed, so no PONG will set it.
            self._forget(flag)
        except BaseException:
            # Interrupted. PONGs are counted, and it is unknown whether this one will come.
            self._link.abort(ConnectionError("the program was interrupted while it sent a PING"))
            raise
        return None

    def beat(self, interval: float) -> None:
        """Send a heartbeat PING, or abort the connection if the previous one was not answered.

        `interval` is the time since the previous one in seconds.
        """
        if self._beat is not None and not self._beat.is_set():
            self._link.abort(ConnectionLost(f"no answer to a PING within {interval:g} s"))
            return
        self._beat = self._expect()
        self._link.post(PING)

    def _expect(self) -> Signal:
        flag = Signal()
        self._waiting.append(flag)
        return flag

    def _forget(self, flag: Signal) -> None:
        try:
            self._waiting.remove(flag)
        except ValueError:
            # A new connection began meanwhile.
            pass

    def came(self) -> None:
        """Process a PONG."""
        try:
            flag = self._waiting.popleft()
        except IndexError:
            # The PONG answers a PING of a previous connection.
            return
        flag.set()

    def wake(self) -> None:
        """Set all signals: no PONG will come."""
        while self._waiting:
            self.came()
