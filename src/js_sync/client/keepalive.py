# Generated from src/js_async/client/keepalive.py by codegen/twin.py. Edit that file instead.
"""The PINGs over a link: sending them, and the flags of those whose PONGs have not come."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from twinstream.errors import ConnectionLost
from twinstream.core.wire.protocol import PING
from js_sync.runtime.concurrency import Signal
from js_sync.runtime.socket_link import Link

__all__ = ["Pings"]


class Pings:
    """Sends PINGs, with a flag for each under way; a server answers them in order."""

    def __init__(self, link: Link) -> None:
        self._link: Final = link
        self._waiting: deque[Signal] = deque()
        self._beat: Signal | None = None

    def restart(self) -> Signal:
        """Begin anew with the PING that logs in to another link, before it is sent.

        Flags of an earlier link are left alone: who noted one looks whether the link is the same.
        """
        first = Signal()
        self._waiting = deque((first,))
        self._beat = None
        return first

    def send(self, is_current: Callable[[], bool]) -> Signal | None:
        """Send a PING and return the flag of its PONG, or None if the link broke meanwhile.

        `is_current` tells whether the link is still the one that is meant.
        """
        try:
            flag = self._expect()
            if is_current():
                self._link.post(PING)
                return flag
            # It broke before the flag was listed, so nobody raises that.
            self._forget(flag)
        except BaseException:
            # Interrupted. PONGs are counted, and nobody knows whether there will be this one.
            self._link.abort(ConnectionError("the program was interrupted while it sent a PING"))
            raise
        return None

    def beat(self, interval: float) -> None:
        """Send the PING of a heartbeat, or cut the link when the last one has no answer yet.

        `interval` is the time since the last one in seconds.
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
            # Another link began meanwhile.
            pass

    def came(self) -> None:
        """Take a PONG."""
        try:
            flag = self._waiting.popleft()
        except IndexError:
            # It answers a PING from before a link broke.
            return
        flag.set()

    def wake(self) -> None:
        """Wake all who wait: no PONG comes."""
        while self._waiting:
            self.came()
