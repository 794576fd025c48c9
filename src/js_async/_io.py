"""The seam: everything of the asyncio twin that touches asyncio.

`js_sync/_io.py` holds the same names in the same order on sockets and threads. A diff of the two
files is the whole list of intended differences between the twins.
"""

from __future__ import annotations

import asyncio
import os
from asyncio import CancelledError, Lock
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
)
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from js_core.deadline import NEVER, Deadline
from js_core.errors import WrongOwner

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = [
    "CancelledError",
    "Handler",
    "Link",
    "Lock",
    "Opening",
    "Signal",
    "Stream",
    "Task",
    "call",
    "each",
    "opening",
    "sleep",
    "spawn",
]

T = TypeVar("T")

Handler = Callable[[T], Awaitable[object]]
"""A function of the user that takes one thing and is awaited."""

Stream = AsyncGenerator[T]
"""What a generator function of the SDK returns."""

_READ_SIZE: Final = 1 << 18
_HIGH_WATER: Final = 1 << 20


class Opening(Generic[T]):
    """Something being opened: await it, or use it in `async with`, which closes it."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._opened: Any = None

    def __await__(self) -> Generator[Any, None, T]:
        return self._work.__await__()

    async def __aenter__(self) -> T:
        self._opened = await self._work
        return self._opened  # type: ignore[no-any-return]

    async def __aexit__(self, *_: object) -> None:
        await self._opened.close()


def opening(work: Coroutine[Any, Any, T]) -> Opening[T]:
    """Return the thing being opened."""
    return Opening(work)


async def each(items: Iterable[T] | AsyncIterable[T]) -> AsyncGenerator[T]:
    """Iterate over what may be an ordinary or an asynchronous iterable."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


async def call(handler: Handler[T], item: T) -> None:
    """Run a function of the user."""
    await handler(item)


class Signal:
    """A flag that waiters sleep on."""

    __slots__ = ("_raised", "_sleepers")

    def __init__(self) -> None:
        self._raised = False
        self._sleepers: list[asyncio.Future[bool]] = []

    def is_set(self) -> bool:
        """Tell whether the flag is up."""
        return self._raised

    def set(self) -> None:
        """Raise the flag and wake who sleeps on it."""
        self._raised = True
        for sleeper in self._sleepers:
            if not sleeper.done():
                sleeper.set_result(True)

    def clear(self) -> None:
        """Lower the flag."""
        self._raised = False

    async def sleep(self, deadline: Deadline) -> bool:
        """Sleep until the flag is up or the deadline passes; tell which."""
        if self._raised:
            return True
        loop = asyncio.get_running_loop()
        sleeper: asyncio.Future[bool] = loop.create_future()
        self._sleepers.append(sleeper)
        alarm = None
        if deadline is not NEVER:
            alarm = loop.call_later(deadline.remaining(), _give_up, sleeper)
        try:
            await sleeper
        finally:
            self._sleepers.remove(sleeper)
            if alarm is not None:
                alarm.cancel()
        return self._raised


# How often this process was forked off: tells a connection that it is its parent's, without a
# system call for every message.
_forks = 0


def _note_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_note_fork)


def _give_up(sleeper: asyncio.Future[bool]) -> None:
    if not sleeper.done():
        sleeper.set_result(False)


class Task:
    """Work that runs beside its starter."""

    def __init__(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._task = asyncio.get_running_loop().create_task(work, name=name)

    def is_current(self) -> bool:
        """Tell whether the caller is this work itself."""
        return asyncio.current_task() is self._task

    async def join(self, deadline: Deadline) -> bool:
        """Return when the work is done or the deadline passed; tell which."""
        timeout = None if deadline is NEVER else deadline.remaining()
        done, _ = await asyncio.wait([self._task], timeout=timeout)
        return bool(done)


def spawn(work: Callable[[], Coroutine[Any, Any, None]], name: str) -> Task:
    """Start work beside the caller."""
    return Task(work(), name)


async def sleep(delay: float) -> None:
    """Do nothing for `delay` seconds."""
    await asyncio.sleep(delay)


class _Receiver(asyncio.BufferedProtocol):
    """Hands received bytes to a link; the buffer is used again for each read."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._buffer = bytearray(_READ_SIZE)
        self._view = memoryview(self._buffer)
        self.writable = Signal()
        self.writable.set()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._view

    def buffer_updated(self, nbytes: int) -> None:
        self._link.received(self, bytes(self._view[:nbytes]))

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.writable.set()
        self._link.ended(self, exc)

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()


class Link:
    """The bytes of one connection, over one socket at a time.

    `on_bytes` gets what arrives; `on_end` is told once when a socket that was opened ends.
    """

    def __init__(
        self, on_bytes: Callable[[bytes], None], on_end: Callable[[Exception | None], None]
    ) -> None:
        self._on_bytes: Final = on_bytes
        self._on_end: Final = on_end
        self._loop: Final = asyncio.get_running_loop()
        self._forks: Final = _forks
        self._transport: asyncio.Transport | None = None
        self._receiver: _Receiver | None = None
        self._out: deque[bytes] = deque()
        self._flushing = False

    @property
    def is_open(self) -> bool:
        """Tell whether a socket is open."""
        return self._transport is not None

    def check_owner(self) -> None:
        """Raise `WrongOwner` in a forked process and on another event loop."""
        if self._forks != _forks:
            raise WrongOwner("this connection was made before a fork; connect in each process")
        if asyncio.get_running_loop() is not self._loop:
            raise WrongOwner("this connection belongs to another event loop; connect on this one")

    async def open(
        self, host: str, port: int, deadline: Deadline, tls: SSLContext | None, server_name: str
    ) -> None:
        """Connect a socket, with TLS from the start where a context is given; raises OSError."""
        receiver = _Receiver(self)
        name = server_name if tls is not None else None
        try:
            async with asyncio.timeout(deadline.remaining()):
                transport, _ = await self._loop.create_connection(
                    lambda: receiver, host, port, ssl=tls, server_hostname=name
                )
        except TimeoutError:
            raise TimeoutError("no connection in time") from None
        transport.set_write_buffer_limits(high=_HIGH_WATER)
        self._receiver = receiver
        self._transport = transport

    async def start_tls(self, tls: SSLContext, server_name: str, deadline: Deadline) -> None:
        """Go on with TLS on the open socket; raises OSError."""
        if self._transport is None or self._receiver is None:
            raise ConnectionError("the link broke before TLS began")
        try:
            async with asyncio.timeout(deadline.remaining()):
                transport = await self._loop.start_tls(
                    self._transport, self._receiver, tls, server_hostname=server_name
                )
        except TimeoutError:
            raise TimeoutError("no TLS handshake in time") from None
        if transport is None:
            raise ConnectionError("the link broke during the TLS handshake")
        transport.set_write_buffer_limits(high=_HIGH_WATER)
        self._transport = transport

    async def wait(self, signal: Signal, deadline: Deadline) -> bool:
        """Send what was written, then sleep until the flag is up or the deadline passes."""
        self.check_owner()
        if self._out:
            self.flush()
        return await signal.sleep(deadline)

    async def wait_behind(self, signal: Signal, deadline: Deadline) -> bool:
        """Wait as `wait` does, on behalf of nobody in the foreground."""
        return await signal.sleep(deadline)

    def received(self, receiver: _Receiver, data: bytes) -> None:
        """Pass on bytes of the current socket; any error in there ends the link."""
        if receiver is not self._receiver and self._receiver is not None:
            return
        try:
            self._on_bytes(data)
        except Exception as error:
            self.abort(error)

    def ended(self, receiver: _Receiver, error: Exception | None) -> None:
        """Note the end of a socket."""
        if receiver is self._receiver:
            self._drop(error)

    def abort(self, error: Exception | None) -> None:
        """Cut the socket now; `on_end` is told why."""
        if self._transport is not None:
            self._transport.abort()
            self._drop(error)

    def _drop(self, error: Exception | None) -> None:
        self._transport = None
        self._receiver = None
        self._out.clear()
        self._on_end(error)

    def write(self, data: bytes) -> None:
        """Put bytes on the way: together with others, before anybody waits or soon after."""
        self._out.append(data)
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self.flush)

    def post(self, data: bytes) -> None:
        """Put bytes on the way at once, without ever waiting for the peer."""
        self._out.append(data)
        self.flush()

    def flush(self) -> None:
        """Send what was written."""
        self._flushing = False
        if self._out and self._transport is not None:
            data = b"".join(self._out)
            self._out.clear()
            self._transport.write(data)

    @property
    def is_full(self) -> bool:
        """Tell whether the peer is so far behind that `drain` should be awaited."""
        return self._receiver is not None and not self._receiver.writable.is_set()

    async def drain(self, deadline: Deadline) -> None:
        """Return when the peer keeps up with what is written."""
        receiver = self._receiver
        if receiver is not None and not receiver.writable.is_set():
            await receiver.writable.sleep(deadline)

    async def shut(self) -> None:
        """Send what was written and close the socket; `on_end` is not told."""
        transport, self._transport = self._transport, None
        self._receiver = None
        if transport is not None:
            if self._out:
                transport.write(b"".join(self._out))
            transport.close()
        self._out.clear()

    async def close(self) -> None:
        """Shut the link for good."""
        await self.shut()
