"""Report lost connections in long-running commands, and continue after a reconnect."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Final

from twinstream.cli.screen import alerts
from twinstream.core.hooks import HOOKS, reached

if TYPE_CHECKING:
    from js_sync import Connection, TwinstreamError

# The seconds before a failed request is repeated.
_PAUSE: Final = 0.2
# The seconds for which errors are tolerated while the server has no leader.
# Servers may start an election as late as 9 s after the loss of a leader.
_LEADERLESS: Final = 20.0


class LinkWatch:
    """Prints to standard error when the connection is lost or restored."""

    def __init__(self, nc: Connection) -> None:
        self._nc = nc
        self._epoch = nc.stats.connects
        self._lost = False

    def look(self) -> bool:
        """Print a change of the connection's state, and return whether it is connected."""
        up, epoch = self._nc.is_connected, self._nc.stats.connects
        # After a reconnect between two checks, only the epoch has changed.
        if not self._lost and (not up or epoch != self._epoch):
            alerts().print("the connection to the server is lost; reconnecting", style="yellow")
            self._lost = True
        if self._lost and up:
            alerts().print("the connection to the server is restored", style="yellow")
            self._lost = False
        self._epoch = epoch
        if HOOKS:
            reached("command: connection checked", up)
        return up


class Patience:
    """A guard for requests that tolerates errors during a reconnect or a leader election."""

    def __init__(
        self, nc: Connection, stop: Event, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._nc = nc
        self._stop = stop
        self._clock = clock
        self._since: float | None = None
        self.last_error: TwinstreamError | None = None
        """The tolerated error of the last attempt; None if it succeeded."""

    @contextmanager
    def tried(self) -> Generator[None]:
        """If a request in the block gets no response, suppress its error and wait briefly.

        The error is raised if requests have failed for more than `_LEADERLESS` seconds while the
        connection was up. Other errors are raised unchanged.
        """
        from twinstream.errors.transient import NO_RESPONSE

        try:
            yield
        except NO_RESPONSE as error:
            self.last_error = error
            now = self._clock()
            if not self._nc.is_connected or self._since is None:
                self._since = now
            elif now - self._since > _LEADERLESS:
                raise
            self._stop.wait(_PAUSE)
        else:
            self._since = self.last_error = None
