# Generated from src/js_async/client/upkeep.py by codegen/twin.py. Edit that file instead.
"""What the keeper of a connection does: heartbeats, and reconnecting.

The keeper sleeps without a reference to the connection, so that one that the program dropped is
collected, with its thread or task and its descriptors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from random import SystemRandom
from typing import TYPE_CHECKING, Final

from twinstream.core.deadline import Deadline
from twinstream.errors import ConnectionClosed, ConnectionFailed, ConnectionLost, RequestTimeout
from twinstream.core.connect.options import ConnectOptions
from js_sync.runtime.concurrency import Signal
from js_sync.runtime.socket_link import Link

if TYPE_CHECKING:
    from js_sync.client.session import Session

__all__ = ["Upkeep", "keep"]

_RANDOM: Final = SystemRandom()
# How long the end of an event loop may be delayed for what was written (seconds).
_EXIT_TIME: Final = 1.0


class Upkeep:
    """The heartbeats of a session, and its rounds of attempts to reconnect."""

    def __init__(self, session: Session, link: Link, options: ConnectOptions) -> None:
        self.session: Final = session
        self._link: Final = link
        self._interval: Final = options.ping_interval
        self._reconnects: Final = options.reconnect is not None
        self._is_trying = False
        self.next_step = Deadline.after(self._interval)
        """When `step` is to be called, unless the connection breaks before."""

    def step(self, broke: bool) -> None:
        """Beat, or make one round of attempts to reconnect; raises what ends the session."""
        if self._is_trying:
            self._try_again()
        elif broke and not self.session.is_connected:
            self._begin()
        else:
            if not broke:
                self.session.beat()
            self.next_step = Deadline.after(self._interval)

    def _begin(self) -> None:
        end = self.session.failed()
        if not self._reconnects:
            raise ConnectionLost(f"the link broke and reconnecting is off: {end}")
        self._plan(end)

    def _try_again(self) -> None:
        error = self.session.reconnect()
        if error is not None:
            self._plan(error)
            return
        self._is_trying = False
        self.next_step = Deadline.after(self._interval)

    def _plan(self, last: BaseException | None) -> None:
        rounds = self.session.rounds
        if rounds.is_over:
            raise ConnectionFailed(f"gave up after {rounds.count} rounds; last: {last}")
        self._is_trying = True
        self.next_step = Deadline.after(rounds.next_pause(_RANDOM.random()))

    # ---- the end of a program

    def warn_unclosed(self) -> None:
        """Warn, if the session is not closed."""
        self.session.warn_unclosed()

    def flush_at_exit(self, deadline: Deadline) -> None:
        """Send what was written, for a program that ends without `close`.

        Returns when the server confirmed it, at the deadline at the latest. Warns of what is lost.
        """
        session = self.session
        if session.is_closed or self._link.is_inherited:
            return
        self._link.hurry()
        if not session.is_connected:
            return
        with suppress(RequestTimeout, ConnectionLost, ConnectionClosed):
            session.flush(deadline)
        unsent = self._link.unsent
        if unsent:
            text = f"the program ends, and {session.address} did not take the last {unsent} bytes"
            warnings.warn(f"{text}: they are lost", RuntimeWarning, stacklevel=1)


def keep(of: Callable[[], Upkeep | None], link: Callable[[], Link | None], trouble: Signal) -> None:
    """Beat and reconnect, until the session is closed or the program dropped it."""
    upkeep = of()
    try:
        while upkeep is not None and not upkeep.session.is_closed:
            until = upkeep.next_step
            upkeep = None
            Link.wait_behind(link, trouble, until)
            upkeep = of()
            if upkeep is not None and not upkeep.session.is_closed:
                broke = trouble.is_set()
                trouble.clear()
                upkeep.step(broke)
    except Exception as error:
        # Nothing is left to reconnect: close, and say why.
        if upkeep is not None:
            upkeep.session.finish(error)
    except BaseException:
        # Cancelled, as all tasks are when their event loop ends.
        upkeep = of()
        if upkeep is not None:
            upkeep.flush_at_exit(Deadline.after(_EXIT_TIME))
        raise
