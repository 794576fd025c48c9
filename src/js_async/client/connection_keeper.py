"""The keeper of a connection: a background loop that sends heartbeats and reconnects.

While the keeper sleeps, it has no strong reference to the connection, so that a connection without
references in the program is garbage-collected. This also ends the keeper and closes the file
descriptors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import ref

from js_async.runtime.concurrency import Signal, Task, before_exit, spawn
from js_async.runtime.socket_link import Link
from twinstream.core.deadline import Deadline
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.on_failure import AsyncOnFailure
from twinstream.errors import (
    ConnectionClosed,
    ConnectionFailed,
    ConnectionLost,
    RequestTimeout,
)

if TYPE_CHECKING:
    from random import Random

    from twinstream.core.client.current_server import CurrentServer
    from twinstream.core.client.options import ConnectOptions

__all__ = ["EXIT_TIME", "ConnectionKeeper", "shuffle"]

EXIT_TIME: Final = 1.0
"""The longest time that a flush may delay the end of the program (seconds)."""


class KeptConnection(Protocol):
    """The part of a session's interface that the keeper uses."""

    @property
    def is_connected(self) -> bool:
        """Whether the connection is established now."""
        ...

    @property
    def is_closed(self) -> bool:
        """Whether the session is closed."""
        ...

    def beat(self) -> None:
        """Send a heartbeat PING, or abort the connection if the last heartbeat got no PONG."""
        ...

    def failed(self) -> BaseException | None:
        """Record that the connection was lost; return the reason."""
        ...

    async def reconnect(self) -> BaseException | None:
        """Try to connect to each server once. Return None if one accepts, else the error.

        Raises `AuthenticationFailed` if further attempts are pointless.
        """
        ...

    async def flush(self, deadline: Deadline) -> None:
        """Wait until the server has processed everything that was sent so far."""
        ...

    async def finish(self, cause: BaseException | None) -> None:
        """Close the session. `cause` is the error that ended it, or None."""
        ...


class ConnectionKeeper:
    """The keeper of a session: when to send the next heartbeat, or to try to reconnect.

    If the program drops the connection without closing it, this object closes its socket.
    """

    def __init__(
        self, session: KeptConnection, server: CurrentServer, link: Link, options: ConnectOptions
    ) -> None:
        self.session: Final = session
        self._server: Final = server
        self._link: Final = link
        self._interval: Final = options.ping_interval
        self._reconnects: Final = options.reconnect is not None
        self._is_trying = False
        self.next_step = Deadline.after(self._interval)
        """The time of the next `step`, unless the connection is lost earlier."""
        self.connection_lost: Final = Signal()
        """Set when the connection is lost or closed, which wakes up the keeper."""
        self._keeper: Task | None = None
        self._warned = False

    def start(self) -> None:
        """Start the keeper."""
        # Weak references: only the user's reference keeps a connection alive.
        work = partial(_keep_connected, ref(self), ref(self._link), self.connection_lost)
        self._keeper = spawn(work, "twinstream-keeper")
        before_exit(self)

    async def join(self, deadline: Deadline) -> None:
        """Wait until the keeper has ended, unless it is the caller."""
        keeper = self._keeper
        if keeper is not None and not keeper.is_current():
            await keeper.join(deadline)

    async def step(self, broke: bool) -> None:
        """Send a heartbeat, start reconnecting, or make one round of reconnect attempts.

        `broke` is True if the connection was just lost or closed. Raises `ConnectionLost` if
        reconnecting is off, `ConnectionFailed` if the last round failed, and
        `AuthenticationFailed` if a server refused the same credentials twice.
        """
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
        rounds = self._server.rounds
        if rounds.is_over:
            raise ConnectionFailed(f"gave up after {rounds.count} rounds; last: {last}")
        self._is_trying = True
        self.next_step = Deadline.after(rounds.next_pause(_random().random()))

    # ---- the end of a program or of its last reference

    def __del__(self) -> None:
        if not (self.session.is_closed or self._link.is_inherited):
            self._link.drop(self.connection_lost)
            self.warn_unclosed()

    def warn_unclosed(self) -> None:
        """Warn, once, that the user did not close the connection.

        Called when the connection is garbage-collected, and at the end of the program.
        """
        is_closed = self._keeper is None or self.session.is_closed or self._link.is_inherited
        if self._warned or is_closed:
            return
        self._warned = True
        address = self._server.address
        text = f"unclosed connection to {address}: close it, or use it in a `with` block"
        # The source is not this object, because tracemalloc of Python 3.11 cannot report where an
        # object with a `__dict__` was created. This signal was created in `__init__`.
        warnings.warn(text, ResourceWarning, stacklevel=1, source=self.connection_lost)

    async def flush_at_exit(self, deadline: Deadline) -> None:
        """Flush the connection of a program that ends without `close`.

        Returns when the server has processed all data, or at the deadline. Warns about lost bytes.
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
            address = self._server.address
            text = f"the program ends, and {address} did not take the last {unsent} bytes"
            warnings.warn(f"{text}: they are lost", RuntimeWarning, stacklevel=1)


async def _keep_connected(
    of: Callable[[], ConnectionKeeper | None],
    link: Callable[[], Link | None],
    connection_lost: Signal,
) -> None:
    """Send heartbeats and reconnect, until the session is closed or garbage-collected.

    `of` and `link` are weak references, and `connection_lost` is set when the connection is lost or
    closed. If the program ends first, flush the connection.
    """
    # If the program or its event loop ends, send the buffered data before.
    async with AsyncOnFailure(partial(_flush, of)):
        await _step_until_closed(of, link, connection_lost)


async def _flush(of: Callable[[], ConnectionKeeper | None]) -> None:
    upkeep = of()
    if upkeep is not None:
        await upkeep.flush_at_exit(Deadline.after(EXIT_TIME))


async def _step_until_closed(
    of: Callable[[], ConnectionKeeper | None],
    link: Callable[[], Link | None],
    connection_lost: Signal,
) -> None:
    """Keep a session connected until it closes.

    `of` returns the keeper, or None after the garbage collector removed it. No reference to the
    keeper is kept during a wait, so that a connection that the program dropped can be removed.
    """
    upkeep = of()
    try:
        while upkeep is not None and not upkeep.session.is_closed:
            until = upkeep.next_step
            upkeep = None
            await Link.wait_behind(link, connection_lost, until)
            upkeep = of()
            if upkeep is not None and not upkeep.session.is_closed:
                broke = connection_lost.is_set()
                if HOOKS:
                    reached("keeper: before clear", upkeep)
                if broke:
                    # Otherwise this could clear a loss that another thread reports just now.
                    connection_lost.clear()
                await upkeep.step(broke)
    except Exception as error:
        # Reconnecting is off or was given up: close the session with this reason.
        if upkeep is not None:
            await upkeep.session.finish(error)


# ---- randomness


def shuffle(items: list[Any]) -> None:
    """Shuffle a list in place."""
    if len(items) > 1:
        _random().shuffle(items)


def _random() -> Random:
    """Return a random generator whose state forked processes do not share."""
    # Imported late: `random` and its dependencies take longer to import than this package.
    from random import SystemRandom

    return SystemRandom()
