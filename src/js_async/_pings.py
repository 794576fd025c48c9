"""The PINGs of a link whose PONGs have not come, in their order."""

from __future__ import annotations

from collections import deque

from js_async._io import Signal

__all__ = ["Pings"]


class Pings:
    """A flag for each PING under way; a server answers them in order."""

    def __init__(self) -> None:
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

    def expect(self) -> Signal:
        """Return the flag of a PING that is sent next."""
        flag = Signal()
        self._waiting.append(flag)
        return flag

    def expect_beat(self) -> bool:
        """List a PING of the heartbeat as `expect` does; False while the last has no answer."""
        if self._beat is not None and not self._beat.is_set():
            return False
        self._beat = self.expect()
        return True

    def forget(self, flag: Signal) -> None:
        """Take back the flag of a PING that is not sent after all."""
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
