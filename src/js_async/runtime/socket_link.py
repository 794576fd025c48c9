"""A connection that sends and receives bytes, in the asyncio twin.

This module is one half of the seam between the twins; see `concurrency.py`.
`js_sync/runtime/socket_link.py` defines the same names in the same order, based on sockets.
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
from js_async.runtime.fast import FastWaits
from js_async.runtime.sockets import connected
from twinstream.core.client.addresses import Shuffle
from twinstream.core.deadline import Deadline, monotonic
from twinstream.errors import WrongProcessOrLoop

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["Link"]

# Sizes in bytes: `_LONG_READ` is the read size for messages of at least `_LONG_MESSAGE`, and
# `_SHORT_READ` for shorter messages. Long reads halve the CPU time for each message of 16 KiB. But
# short messages are consumed 5 to 10 % faster with short reads, for two reasons. A long read may
# contain all requested messages (about a thousand), so the server has nothing to send while the
# client processes them. And the messages of a long read do not fit into the CPU cache.
_SHORT_READ: Final = 1 << 16
_LONG_READ: Final = 1 << 18
_LONG_MESSAGE: Final = 1 << 10
# The send buffer of the transport counts as full at this size (bytes).
_HIGH_WATER: Final = 1 << 20
# Written data is sent when it reaches this size (bytes), so that the server can start to work.
_TOGETHER: Final = 1 << 15
# Maximum number of requests that share a write if several tasks resume together. One write for each
# request takes 1.4 times the CPU time (64 gets or puts in flight). With one write for all requests,
# the server would be idle until all tasks have resumed.
_SHARED: Final = 16
# `_PAUSE`: after a pause between writes this long (seconds), the next write checks whether the peer
# has closed the connection. `_END`: the poll event for this check, or 0 if the system has none.
# `_NOTICE_TIME`: how long the event loop may take to notice the end of the connection (seconds).
_PAUSE: Final = 0.001
_END: Final[int] = getattr(select, "POLLRDHUP", 0)
_NOTICE_TIME: Final = 0.1
# Time for a slow peer to receive the remaining data (seconds). `_LATE` is for `drop`. `_CLOSE_TIME`
# is for `close`. It is shorter, because the client calls `close` after it has waited for the server
# to confirm its data.
_CLOSE_TIME: Final = 0.25
_LATE: Final = 1.0


def _is_at_end(number: int) -> bool:
    """Return whether the peer of a socket has closed the connection. There may be unread bytes.

    Some systems cannot detect this. For them, and for a closed descriptor, the result is False.
    """
    if not _END or number < 0:
        return False
    poll = select.poll()
    poll.register(number, _END)
    return bool(poll.poll(0))


class _Receiver(asyncio.BufferedProtocol):
    """The protocol object of asyncio, which passes received bytes to a `Link`.

    The same buffer is used for every read. The event loop refers to this object, which has only a
    weak reference to the `Link`. So the `Link` is deleted when the user drops the connection.
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
        """Choose the read size for messages of `size` bytes."""
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
        self._note_full(True)

    def resume_writing(self) -> None:
        self._note_full(False)
        self.writable.set()

    def _note_full(self, is_full: bool) -> None:
        link = self._link()
        if link is not None:
            link.filled(is_full)


def _number_of(transport: asyncio.Transport) -> int:
    """Return the file descriptor of a transport's socket, or -1 if it is closed."""
    sock: socket.socket | None = transport.get_extra_info("socket")
    # With TLS, the socket is None after the underlying transport has ended.
    return -1 if sock is None else sock.fileno()


def _duplicate(transport: asyncio.Transport) -> socket.socket | None:
    """Return a second socket object for a transport's socket, or None if that is impossible."""
    try:
        return socket.socket(fileno=os.dup(_number_of(transport)))
    except OSError:
        return None


def _shut_down(sock: socket.socket | None) -> None:
    """Close a socket, and its connection even if other descriptors of the socket are open.

    None is ignored.
    """
    if sock is not None:
        # `shutdown` raises OSError if the connection has already ended.
        with sock, suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def _abort(transport: asyncio.Transport) -> None:
    """Abort a connection at once, even if other descriptors of its socket are open."""
    _shut_down(_duplicate(transport))
    transport.abort()


class Link:
    """The bytes that a connection sends and receives, over one socket at a time.

    `on_bytes` is called with received data. It returns the size of the incomplete message in bytes,
    or 0 if unknown. `on_end` is called once when an opened socket ends, unless this side has closed
    it with `shut`, `drop` or `close`.
    """

    def __init__(
        self,
        on_bytes: Callable[[bytes], int],
        on_end: Callable[[Exception | None], None],
    ) -> None:
        self._on_bytes: Final = on_bytes
        self._on_end: Final = on_end
        self._loop: Final = asyncio.get_running_loop()
        self._waits: Final = FastWaits(self._loop)
        self._forks: Final = Forks.count
        self.last_error: Exception | None = None
        """The error with which the last socket ended, or None if the peer closed it."""
        self._transport: asyncio.Transport | None = None
        self._receiver: _Receiver | None = None
        self.is_full = False
        """Whether the send buffer is full. Callers should await `drain` then."""
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
        """Whether this process was forked after the `Link` was created."""
        return self._forks != Forks.count

    @property
    def unsent(self) -> int:
        """Number of bytes written to the `Link` that were not passed to the system yet."""
        buffered = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return self._out_size + buffered

    def let_go(self) -> None:
        """Close the inherited copy of the descriptor. Called in a forked child.

        The child's transport still uses the number of the descriptor, so `/dev/null` replaces the
        socket under this number. The child's event loop shares its selector with the parent.
        Because of the replacement, the parent's socket stays in the selector even if the child's
        loop removes the number.
        """
        number = -1 if self._transport is None else _number_of(self._transport)
        if number >= 0:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, number, inheritable=False)
            os.close(nothing)

    def check_owner(self) -> None:
        """Raise `WrongProcessOrLoop` if the caller is in a forked child or another event loop."""
        if self._forks != Forks.count:
            raise WrongProcessOrLoop(
                "this connection was created before a fork; connect in each process"
            )
        if asyncio.get_running_loop() is not self._loop:
            raise WrongProcessOrLoop(
                "this connection belongs to another event loop; connect on this one"
            )

    def is_at_end(self) -> bool:
        """Return whether the socket has ended, even if the event loop has not noticed it yet.

        Called before the first write after a pause, because the program may have blocked the loop.
        Data written after the end would be lost, without a way to find out whether it arrived.
        """
        if self._transport is not None and not _is_at_end(_number_of(self._transport)):
            return False
        # The next write has to check again, even without a pause.
        self._wrote_at = 0.0
        return True

    async def noticed(self) -> None:
        """Wait until the event loop has noticed the end of the socket, for `_NOTICE_TIME` at most.

        Called after `write` returned False.
        """
        deadline = Deadline.after(_NOTICE_TIME)
        transport = self._transport
        while transport is not None and self._transport is transport and not deadline.expired():
            # Give the loop one iteration, in which it may call `connection_lost`.
            await asyncio.sleep(0)
        self._wrote_at = monotonic()

    async def settle(self, deadline: Deadline) -> None:
        """Do nothing. In this twin, all data of the previous socket is already processed."""

    async def open(
        self,
        host: str,
        port: int,
        deadline: Deadline,
        tls: SSLContext | None,
        server_name: str,
        shuffle: Shuffle | None = None,
    ) -> None:
        """Connect a socket to a host; with `tls`, start TLS first. Raises OSError.

        The addresses of the host are tried in the order of `spread`. They share the time until the
        deadline.
        """
        receiver = _Receiver(self)
        name = server_name if tls is not None else None
        sock = await connected(host, port, deadline, shuffle)
        try:
            async with asyncio.timeout(deadline.remaining()):
                transport, _ = await self._loop.create_connection(
                    lambda: receiver, sock=sock, ssl=tls, server_hostname=name
                )
        except TimeoutError:
            raise TimeoutError("no connection in time") from None
        self._adopt(transport)
        self._receiver = receiver

    async def start_tls(self, tls: SSLContext, server_name: str, deadline: Deadline) -> None:
        """Switch to TLS on the open socket. Raises OSError."""
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
            _abort(transport)
            raise ConnectionError("the connection was closed meanwhile")
        transport.set_write_buffer_limits(high=_HIGH_WATER)
        self._transport = transport

    async def wait(self, signal: Signal, deadline: Deadline) -> bool:
        """Flush, then wait until the signal is set or the deadline has passed.

        Returns whether the signal is set.
        """
        if self._forks != Forks.count or asyncio.get_running_loop() is not self._loop:
            self.check_owner()
        if self._out and not self._waits.are_many:
            self.flush()
        return await self._waits.sleep(signal, deadline)

    @staticmethod
    async def wait_behind(
        of: Callable[[], Link | None], signal: Signal, deadline: Deadline
    ) -> bool:
        """Wait until the signal is set or the deadline has passed; return whether it is set.

        `of` returns the `Link`, or None if the user dropped the connection. This twin does not call
        it, so the wait keeps no reference to the `Link`.
        """
        return await signal.sleep(deadline)

    def received(self, receiver: _Receiver, data: bytes) -> None:
        """Pass data of the current socket to `on_bytes`, and ignore data of an earlier socket.

        An error in `on_bytes` ends the socket.
        """
        if receiver is not self._receiver and self._receiver is not None:
            return
        self._waits.begin_turn()
        try:
            size = self._on_bytes(data)
            if size:
                receiver.expect(size)
        except Exception as error:
            self.abort(error)
        finally:
            self._waits.end_turn()

    def filled(self, is_full: bool) -> None:
        """Note whether the send buffer is full."""
        self.is_full = is_full

    def ended(self, receiver: _Receiver, error: Exception | None) -> None:
        """Handle the end of the current socket, and ignore the end of an earlier socket."""
        if receiver is self._receiver:
            if self._transport is not None:
                # The peer does not read any more. Abort, so that the transport does not wait until
                # its data is sent.
                _abort(self._transport)
            self._forget_socket(error)

    def abort(self, error: Exception | None) -> None:
        """If a socket is open, abort it and call `on_end` with `error`."""
        if self._transport is not None:
            _abort(self._transport)
            self._forget_socket(error)

    def _forget_socket(self, error: Exception | None) -> None:
        self.last_error = error
        self._transport = None
        self._receiver = None
        self.is_full = False
        self._out.clear()
        self._out_size = 0
        self._on_end(error)

    def write(self, data: bytes, now: bool = False) -> bool:
        """Take data to send, even if the send buffer is full; return False if the socket has ended.

        The data is sent together with other data: before a wait, in the next iteration of the loop,
        or when the buffered data exceeds `_TOGETHER`. With `now` it is sent at once, because the
        caller will wait for a response. But if several tasks resume together, up to `_SHARED` of
        their requests share a write.
        """
        transport = self._transport
        if transport is None:
            return False
        if self._forks != Forks.count or asyncio.get_running_loop() is not self._loop:
            self.check_owner()
        if not self._out:
            at = monotonic()
            if at - self._wrote_at > _PAUSE and self.is_at_end():
                return False
            self._wrote_at = at
            if now and not self._waits.are_many:
                if not transport.is_closing():
                    transport.write(data)
                return True
        self._out.append(data)
        self._out_size += len(data)
        is_due = now and (not self._waits.are_many or len(self._out) >= _SHARED)
        if is_due or self._out_size > _TOGETHER:
            self.flush()
        elif not self._flushing:
            self._flush_soon()
        return True

    def writelines(self, pieces: tuple[bytes, ...]) -> bool:
        """Take the pieces of a long message, and send them at once without joining them.

        Return False if the socket has ended.
        """
        first, *others = pieces
        if not self.write(first):
            return False
        self.flush()
        transport = self._transport
        if transport is not None and not transport.is_closing():
            for piece in others:
                transport.write(piece)
        return True

    def write_soon(self, data: bytes) -> None:
        """Buffer data without any check. It is sent soon, even if the program does nothing more."""
        self._out.append(data)
        self._out_size += len(data)
        self._flush_soon()

    def write_unasked(self, data: bytes) -> None:
        """Send data at once, and never wait for a slow peer: for PINGs and PONGs."""
        self.write_soon(data)
        self.flush()

    def _flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Pass the buffered data to the transport, which sends it."""
        self._flushing = False
        if self._out and self._transport is not None:
            data = b"".join(self._out)
            self._out.clear()
            self._out_size = 0
            # The transport of a broken socket is closing until the loop reports the end in its next
            # iteration. Until then, asyncio would log a warning for each write.
            if not self._transport.is_closing():
                self._transport.write(data)

    def hurry(self) -> None:
        """Send the buffered data when the program ends."""
        self.flush()

    async def drain(self, deadline: Deadline) -> None:
        """Wait until the send buffer is no longer full, or the deadline has passed."""
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
            _abort(transport)

    def drop(self, flag: Signal) -> None:
        """Flush and close the `Link` of a connection that the user dropped.

        Called by the garbage collector in any thread. A slow peer has `_LATE` seconds to read the
        data. Setting `flag` wakes up the connection's background task.
        """
        if self.is_inherited:
            return
        with suppress(RuntimeError):
            # `call_soon_threadsafe` raises RuntimeError if the loop is closed. The transport then
            # closes the socket when it is garbage-collected.
            self._loop.call_soon_threadsafe(self._close_late, flag)

    def _close_late(self, flag: Signal) -> None:
        flag.set()
        self._closed = True
        transport, _ = self._detach()
        if transport is not None:
            transport.close()
            self._loop.call_later(_LATE, _abort, transport)

    async def close(self) -> None:
        """Flush and close the `Link` permanently, and return when the socket is closed.

        If the peer does not read the data, the call closes the socket after `_CLOSE_TIME`.
        """
        self._closed = True
        transport, receiver = self._detach()
        if transport is None or receiver is None:
            return
        # With this second descriptor, the socket can be shut down after the transport has closed
        # its own descriptor.
        same = _duplicate(transport)
        try:
            transport.close()
            await receiver.gone.sleep(Deadline.after(_CLOSE_TIME))
        finally:
            transport.abort()
            _shut_down(same)
