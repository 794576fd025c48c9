"""The bytes of a connection of the asyncio twin: the second half of the seam between the twins.

`js_sync/runtime/socket_link.py` has the same names in the same order, on sockets.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from weakref import ref

from js_async.runtime.concurrency import Forks, Signal
from js_async.runtime.sockets import connected
from js_async.runtime.waiter import Alarm, Sleeper, Turn
from twinstream.core.base.hooks import HOOKS, reached
from twinstream.core.connect.addresses import Shuffle
from twinstream.core.deadline import Deadline, monotonic
from twinstream.errors import WrongOwner

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["Link"]

# Read sizes (bytes). A long read holds a thousand short messages: all that were requested, while
# the server waits, and more than the CPU cache keeps. Consuming is 5 to 10 % faster with short
# reads. With messages of 16 KiB the long reads take half the CPU for each.
_SHORT_READ: Final = 1 << 16
_LONG_READ: Final = 1 << 18
_LONG_MESSAGE: Final = 1 << 10
_HIGH_WATER: Final = 1 << 20
# Written bytes are sent when they reach this size, so that the server works meanwhile (bytes).
_TOGETHER: Final = 1 << 15
# Requests of tasks that resume together share writes, this many at a time. One write for each takes
# 1.4 times the CPU with 64 gets or puts in flight; one for all leaves the server idle meanwhile.
_SHARED: Final = 16
# After a pause this long (seconds) the peer may have disconnected; the poll event for that, if the
# system has it; and how long the loop may take to notice it (seconds).
_PAUSE: Final = 0.001
_END: Final[int] = getattr(select, "POLLRDHUP", 0)
_NOTICE_TIME: Final = 0.1
# Time for a slow peer to take the rest of the data (seconds): at the close, after the wait for the
# server's confirmation, and after the connection was dropped.
_CLOSE_TIME: Final = 0.25
_LATE: Final = 1.0


def _nothing() -> None:
    pass


# The system tends to wake up a server on the CPU of the process that wrote to it. While that
# process busy-polls for the response, the server would get its turn 3 ms later.
_give_way: Final[Callable[[], None]] = getattr(os, "sched_yield", _nothing)


def _is_at_end(number: int) -> bool:
    """Return whether the peer of a socket closed the connection; there may be unread bytes."""
    if not _END or number < 0:
        return False
    poll = select.poll()
    poll.register(number, _END)
    return bool(poll.poll(0))


class _Receiver(asyncio.BufferedProtocol):
    """Hands received bytes to a link; the buffer is reused for each read.

    The event loop holds this object, which holds the link weakly, so that only the user keeps the
    link alive.
    """

    def __init__(self, link: Link) -> None:
        self._link = ref(link)
        self._long = memoryview(bytearray(_LONG_READ))
        self._short = self._view = self._long[:_SHORT_READ]
        self.writable = Signal()
        self.writable.set()
        self.gone = Signal()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._view

    def buffer_updated(self, nbytes: int) -> None:
        link = self._link()
        if link is not None:
            link.received(self, bytes(self._view[:nbytes]))

    def expect(self, size: int) -> None:
        """Choose the read size for messages of this size (bytes)."""
        self._view = self._long if size >= _LONG_MESSAGE else self._short

    def eof_received(self) -> bool:
        self._ended(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.writable.set()
        self.gone.set()
        self._ended(exc)

    def _ended(self, error: Exception | None) -> None:
        link = self._link()
        if link is not None:
            link.ended(self, error)

    def pause_writing(self) -> None:
        self.writable.clear()
        self._fill(True)

    def resume_writing(self) -> None:
        self._fill(False)
        self.writable.set()

    def _fill(self, is_full: bool) -> None:
        link = self._link()
        if link is not None:
            link.is_full = is_full


def _number_of(transport: asyncio.Transport) -> int:
    """Return the descriptor of a transport's socket, -1 if it is closed."""
    sock: socket.socket | None = transport.get_extra_info("socket")
    # None for TLS, when the underlying transport has ended.
    return -1 if sock is None else sock.fileno()


def _duplicate(transport: asyncio.Transport) -> socket.socket | None:
    """Return another descriptor of a transport's socket, if it is open and one is available."""
    try:
        return socket.socket(fileno=os.dup(_number_of(transport)))
    except OSError:
        return None


def _shut_down(sock: socket.socket | None) -> None:
    """Shut down the connection, even if the socket has other descriptors."""
    if sock is not None:
        # Suppress the OSError of a connection that has ended already.
        with sock, suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def _cut(transport: asyncio.Transport) -> None:
    """Abort a connection."""
    _shut_down(_duplicate(transport))
    transport.abort()


class Link:
    """The bytes of one connection, over one socket at a time.

    `on_bytes` receives the data and returns the size of the incomplete message (bytes; 0 if
    unknown). `on_end` is called once when an opened socket ends. During the first `busy_poll`
    seconds of a wait the loop does not sleep.
    """

    def __init__(
        self,
        on_bytes: Callable[[bytes], int],
        on_end: Callable[[Exception | None], None],
        busy_poll: float = 0.0,
    ) -> None:
        self._on_bytes: Final = on_bytes
        self._on_end: Final = on_end
        self._busy_poll: Final = busy_poll
        self._polls_until = 0.0
        self._polling = False
        self._loop: Final = asyncio.get_running_loop()
        self._alarm: Final = Alarm(self._loop)
        self._turn: Final = Turn(self._loop)
        self._forks: Final = Forks.count
        self._transport: asyncio.Transport | None = None
        self._receiver: _Receiver | None = None
        # Whether the send buffer is full, so that `drain` should be awaited.
        self.is_full = False
        self._out: deque[bytes] = deque()
        self._out_size = 0
        self._flushing = False
        self._closed = False
        self._wrote_at = 0.0
        Forks.watch(self)

    @property
    def is_open(self) -> bool:
        """Whether a socket is open."""
        return self._transport is not None

    @property
    def is_inherited(self) -> bool:
        """Whether this process was forked after the link was created."""
        return self._forks != Forks.count

    @property
    def unsent(self) -> int:
        """Approximate number of written bytes that the peer has not received."""
        buffered = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return self._out_size + buffered

    def let_go(self) -> None:
        """Close a forked child's copy of the descriptor. Called in the child.

        The descriptor is replaced by another file, as the transport still uses its number. The
        event loop's own descriptors are shared with the parent, so whatever the child does with
        them must not reach the socket.
        """
        number = -1 if self._transport is None else _number_of(self._transport)
        if number >= 0:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, number, inheritable=False)
            os.close(nothing)

    def check_owner(self) -> None:
        """Raise `WrongOwner` in a forked process and on another event loop."""
        if self._forks != Forks.count:
            raise WrongOwner("this connection was created before a fork; connect in each process")
        if asyncio.get_running_loop() is not self._loop:
            raise WrongOwner("this connection belongs to another event loop; connect on this one")

    def is_at_end(self) -> bool:
        """Return whether the peer closed the connection, even if the loop has not noticed it.

        Checked before the first write after a pause, in which the program may have blocked the
        loop. Data written after the end is lost, and it would be unknown whether it arrived.
        """
        if self._transport is not None and not _is_at_end(_number_of(self._transport)):
            return False
        # Let the next write check again, even without a pause.
        self._wrote_at = 0.0
        return True

    async def noticed(self) -> None:
        """Wait until the end of the socket, for which `write` returned False, was noticed."""
        deadline = Deadline.after(_NOTICE_TIME)
        transport = self._transport
        while transport is not None and self._transport is transport and not deadline.expired():
            await asyncio.sleep(0)
        self._wrote_at = monotonic()

    async def settle(self, deadline: Deadline) -> None:
        """Wait until all data of the previous socket is processed: always the case here."""

    async def open(
        self,
        host: str,
        port: int,
        deadline: Deadline,
        tls: SSLContext | None,
        server_name: str,
        shuffle: Shuffle | None = None,
    ) -> None:
        """Connect a socket, with TLS from the start if a context is given; raises OSError.

        The addresses of a host share the time, and are tried in the order of `spread`.
        """
        receiver = _Receiver(self)
        name = server_name if tls is not None else None
        try:
            async with asyncio.timeout(deadline.remaining()):
                sock = await connected(host, port, deadline, shuffle)
                transport, _ = await self._loop.create_connection(
                    lambda: receiver, sock=sock, ssl=tls, server_hostname=name
                )
        except TimeoutError:
            raise TimeoutError("no connection in time") from None
        self._adopt(transport)
        self._receiver = receiver

    async def start_tls(self, tls: SSLContext, server_name: str, deadline: Deadline) -> None:
        """Switch to TLS on the open socket; raises OSError."""
        if self._transport is None or self._receiver is None:
            raise ConnectionError("the connection broke before TLS began")
        try:
            async with asyncio.timeout(deadline.remaining()):
                transport = await self._loop.start_tls(
                    self._transport, self._receiver, tls, server_hostname=server_name
                )
        except TimeoutError:
            raise TimeoutError("no TLS handshake in time") from None
        if transport is None:
            raise ConnectionError("the connection broke during the TLS handshake")
        self._adopt(transport)

    def _adopt(self, transport: asyncio.Transport) -> None:
        if self._closed:
            _cut(transport)
            raise ConnectionError("the connection was closed meanwhile")
        transport.set_write_buffer_limits(high=_HIGH_WATER)
        self._transport = transport

    async def wait(self, signal: Signal, deadline: Deadline) -> bool:
        """Flush, then wait for the signal or the deadline; return whether the signal is set."""
        if self._forks != Forks.count or asyncio.get_running_loop() is not self._loop:
            self.check_owner()
        if self._out and not self._turn.are_many:
            self.flush()
        if signal.raised:
            return True
        # Same as `Signal.sleep`, with the link's one timer instead of a timer for each wait.
        sleeper = Sleeper(self._loop, self._turn)
        signal.sleepers.append(sleeper)
        self._alarm.set(sleeper, deadline.at)
        if self._busy_poll:
            self._polls_until = monotonic() + self._busy_poll
            if not self._polling:
                self._poll()
        try:
            await sleeper
        finally:
            signal.sleepers.remove(sleeper)
            self._alarm.clear(sleeper)
        return signal.raised

    def _poll(self) -> None:
        """Keep the loop polling for events without sleeping, while a wait has just begun."""
        if HOOKS:
            reached("link: before spin", self._polls_until)
        self._polling = self._alarm.is_set and monotonic() < self._polls_until
        if self._polling:
            _give_way()
            self._loop.call_soon(self._poll)

    @staticmethod
    async def wait_behind(
        of: Callable[[], Link | None], signal: Signal, deadline: Deadline
    ) -> bool:
        """Wait for the signal or the deadline; return whether the signal is set.

        `of` returns the link, or None if the user dropped it; no reference is held here.
        """
        return await signal.sleep(deadline)

    def received(self, receiver: _Receiver, data: bytes) -> None:
        """Pass on data of the current socket; an error in `on_bytes` ends the link."""
        if receiver is not self._receiver and self._receiver is not None:
            return
        turn = self._turn
        turn.is_on = True
        try:
            size = self._on_bytes(data)
            if size:
                receiver.expect(size)
        except Exception as error:
            self.abort(error)
        finally:
            turn.end()

    def ended(self, receiver: _Receiver, error: Exception | None) -> None:
        """Handle the end of a socket."""
        if receiver is self._receiver:
            if self._transport is not None:
                # The peer reads no more, so unsent data must not delay the end.
                _cut(self._transport)
            self._drop(error)

    def abort(self, error: Exception | None) -> None:
        """Abort the socket; `on_end` is called with the error."""
        if self._transport is not None:
            _cut(self._transport)
            self._drop(error)

    def _drop(self, error: Exception | None) -> None:
        self._transport = None
        self._receiver = None
        self.is_full = False
        self._out.clear()
        self._out_size = 0
        self._on_end(error)

    def write(self, data: bytes) -> bool:
        """Queue data, to be sent together with other data before a wait, or soon.

        Returns whether it was queued, as `offer` does, but also queues when the buffer is full.
        """
        if not self._out and self._has_left():
            return False
        self._out.append(data)
        self._out_size += len(data)
        if self._out_size > _TOGETHER:
            self.flush()
        elif not self._flushing:
            self._flushing = True
            self._loop.call_soon(self.flush)
        return True

    def offer(self, data: bytes, now: bool = False) -> bool:
        """Write data and return True, unless the buffer is full or the socket has ended.

        With `now` the data is sent at once, before the caller prepares to wait for the response.
        """
        transport = self._transport
        if self.is_full or transport is None:
            return False
        if self._forks != Forks.count or asyncio.get_running_loop() is not self._loop:
            self.check_owner()
        if not self._out:
            # Inlined `_has_left`, and below `flush`: this runs for every request.
            at = monotonic()
            if at - self._wrote_at > _PAUSE and self.is_at_end():
                return False
            self._wrote_at = at
            if now and not self._turn.are_many:
                if not transport.is_closing():
                    transport.write(data)
                return True
        # Inlined `write`: this runs for every acknowledgement.
        self._out.append(data)
        self._out_size += len(data)
        if self._out_size > _TOGETHER or (now and self._is_due()):
            self.flush()
        elif not self._flushing:
            self._flushing = True
            self._loop.call_soon(self.flush)
        return True

    def _is_due(self) -> bool:
        """Whether to send a request now: not while tasks resume that may add more."""
        return not self._turn.are_many or len(self._out) >= _SHARED

    def _has_left(self) -> bool:
        """Check for the end of the socket, at the end of a pause."""
        now = monotonic()
        if now - self._wrote_at > _PAUSE and self.is_at_end():
            return True
        self._wrote_at = now
        return False

    def offer_pieces(self, pieces: tuple[bytes, ...]) -> bool:
        """Write a long message without joining its pieces; otherwise like `offer`."""
        if self.is_full or self._transport is None:
            return False
        self.check_owner()
        if self._has_left():
            return False
        self.flush()
        if not self._transport.is_closing():
            for piece in pieces:
                self._transport.write(piece)
        return True

    def post(self, data: bytes) -> None:
        """Send data at once, without ever waiting for the peer."""
        self._out.append(data)
        self.flush()

    def flush(self) -> None:
        """Send what was written."""
        self._flushing = False
        if self._out and self._transport is not None:
            data = b"".join(self._out)
            self._out.clear()
            self._out_size = 0
            # The loop reports a broken socket in its next iteration. Until then asyncio would log a
            # warning for each write.
            if not self._transport.is_closing():
                self._transport.write(data)

    def hurry(self) -> None:
        """Send what was written, as the program ends."""
        self.flush()

    async def drain(self, deadline: Deadline) -> None:
        """Wait until the peer has caught up with what was written."""
        receiver = self._receiver
        if receiver is not None and not receiver.writable.is_set():
            await receiver.writable.sleep(deadline)

    def _detach(self) -> tuple[asyncio.Transport | None, _Receiver | None]:
        self.flush()
        found = self._transport, self._receiver
        self._transport = self._receiver = None
        self.is_full = False
        self._out.clear()
        self._out_size = 0
        return found

    async def shut(self) -> None:
        """Close the socket now, without calling `on_end`."""
        transport, _ = self._detach()
        if transport is not None:
            _cut(transport)

    def drop(self, flag: Signal) -> None:
        """Flush and close a link that its user dropped.

        Called by the garbage collector, in any thread. A slow peer gets some time. `flag` wakes up
        the keeper.
        """
        if self.is_inherited:
            return
        with suppress(RuntimeError):
            # If the loop is closed, asyncio closes the socket with the transport.
            self._loop.call_soon_threadsafe(self._close_late, flag)

    def _close_late(self, flag: Signal) -> None:
        flag.set()
        self._closed = True
        transport, _ = self._detach()
        if transport is not None:
            transport.close()
            self._loop.call_later(_LATE, _cut, transport)

    async def close(self) -> None:
        """Flush and close the link for good.

        Returns when the socket is closed, soon even if the peer does not read.
        """
        self._closed = True
        transport, receiver = self._detach()
        if transport is None or receiver is None:
            return
        # Used to shut the socket down after the transport has closed its descriptor.
        same = _duplicate(transport)
        try:
            transport.close()
            await receiver.gone.sleep(Deadline.after(_CLOSE_TIME))
        finally:
            transport.abort()
            _shut_down(same)
