"""The keeper of a connection: heartbeats and reconnecting.

The keeper sleeps without a reference to the connection, so that a connection that its user dropped
is garbage-collected, with its thread or task and its file descriptors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from js_async.runtime.concurrency import Signal
from js_async.runtime.socket_link import Link
from twinstream.core.deadline import Deadline
from twinstream.errors import ConnectionClosed, ConnectionFailed, ConnectionLost, RequestTimeout

if TYPE_CHECKING:
    from random import Random

    from twinstream.core.connect.options import ConnectOptions
    from twinstream.core.connect.server_pool import Rounds, ServerAddress

__all__ = ["Upkeep", "keep", "shuffle"]

# How long the end of an event loop may be delayed to flush (seconds).
_EXIT_TIME: Final = 1.0


class Kept(Protocol):
    """The interface that the keeper needs of a session."""

    @property
    def is_connected(self) -> bool:
        """Whether the connection is established now."""
        ...

    @property
    def is_closed(self) -> bool:
        """Whether the session is closed."""
        ...

    @property
    def rounds(self) -> Rounds:
        """The rounds of reconnect attempts."""
        ...

    @property
    def address(self) -> ServerAddress:
        """The address of the server."""
        ...

    def beat(self) -> None:
        """Send a PING, and detect that the previous one was not answered."""
        ...

    def failed(self) -> BaseException | None:
        """Record that the connection was lost; return the reason."""
        ...

    async def reconnect(self) -> BaseException | None:
        """Try all servers once; return the last error, or None when connected."""
        ...

    async def flush(self, deadline: Deadline) -> None:
        """Wait until the server has processed what was sent."""
        ...

    async def finish(self, cause: BaseException | None) -> None:
        """Close the session for good."""
        ...

    def warn_unclosed(self) -> None:
        """Warn if the session is not closed."""
        ...


class Upkeep:
    """The heartbeats of a session, and its rounds of reconnect attempts."""

    def __init__(self, session: Kept, link: Link, options: ConnectOptions) -> None:
        self.session: Final = session
        self._link: Final = link
        self._interval: Final = options.ping_interval
        self._reconnects: Final = options.reconnect is not None
        self._is_trying = False
        self.next_step = Deadline.after(self._interval)
        """When to call `step`, unless the connection is lost before."""

    async def step(self, broke: bool) -> None:
        """Send a heartbeat, or make one round of reconnect attempts; raise a fatal error."""
        if self._is_trying:
            await self._try_again()
        elif broke and not self.session.is_connected:
            self._begin()
        else:
            if not broke:
                self.session.beat()
            self.next_step = Deadline.after(self._interval)

    def _begin(self) -> None:
        end = self.session.failed()
        if not self._reconnects:
            raise ConnectionLost(f"the connection broke and reconnecting is off: {end}")
        self._plan(end)

    async def _try_again(self) -> None:
        error = await self.session.reconnect()
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
        self.next_step = Deadline.after(rounds.next_pause(_random().random()))

    # ---- the end of a program

    def warn_unclosed(self) -> None:
        """Warn if the session is not closed."""
        self.session.warn_unclosed()

    async def flush_at_exit(self, deadline: Deadline) -> None:
        """Flush what was written, for a program that ends without `close`.

        Returns when the server has confirmed it, or at the deadline. Warns about lost bytes.
        """
        session = self.session
        if session.is_closed or self._link.is_inherited:
            return
        self._link.hurry()
        if not session.is_connected:
            return
        with suppress(RequestTimeout, ConnectionLost, ConnectionClosed):
            await session.flush(deadline)
        unsent = self._link.unsent
        if unsent:
            text = f"the program ends, and {session.address} did not take the last {unsent} bytes"
            warnings.warn(f"{text}: they are lost", RuntimeWarning, stacklevel=1)


async def keep(
    of: Callable[[], Upkeep | None], link: Callable[[], Link | None], trouble: Signal
) -> None:
    """Send heartbeats and reconnect, until the session is closed or its user dropped it."""
    upkeep = of()
    try:
        while upkeep is not None and not upkeep.session.is_closed:
            until = upkeep.next_step
            upkeep = None
            await Link.wait_behind(link, trouble, until)
            upkeep = of()
            if upkeep is not None and not upkeep.session.is_closed:
                broke = trouble.is_set()
                trouble.clear()
                await upkeep.step(broke)
    except Exception as error:
        # Reconnecting has ended: close with this reason.
        if upkeep is not None:
            await upkeep.session.finish(error)
    except BaseException:
        # Cancelled, like all tasks at the end of their event loop.
        upkeep = of()
        if upkeep is not None:
            await upkeep.flush_at_exit(Deadline.after(_EXIT_TIME))
        raise


# ---- randomness


def shuffle(items: list[Any]) -> None:
    """Put a list into random order."""
    if len(items) > 1:
        _random().shuffle(items)


def _random() -> Random:
    """Return the generator of the system, which forked processes do not share."""
    # Imported here: with its dependencies it takes longer to import than this package.
    from random import SystemRandom

    return SystemRandom()
