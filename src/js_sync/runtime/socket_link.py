"""A connection that sends and receives bytes, in the blocking twin.

This module is one half of the seam between the twins; see `concurrency.py`.
`js_async/runtime/socket_link.py` defines the same names in the same order, based on asyncio.

A waiting caller reads the socket itself. If several threads wait, one of them, the leader, reads
for all. When the response of the leader has arrived, another waiting thread becomes the leader. The
keeper, the only background thread of a connection, reads while no other thread waits. So a program
that computes for minutes still answers the server's PING.

docs/architecture.md lists what both twins guarantee ("What the seam guarantees").
"""

from __future__ import annotations

import select
import socket
import time
import warnings
from collections.abc import Callable
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Final

from js_sync.runtime.concurrency import (
    Forks,
    Gate,
    Signal,
    close_copy,
    closed,
    keep_until_closed,
    open_gate,
    spawn,
)
from js_sync.runtime.polling import poll_for
from js_sync.runtime.reader import GLANCE, Reader
from js_sync.runtime.sockets import Wire, connected, has_ended, secured
from twinstream.core.client.addresses import Shuffle
from twinstream.core.deadline import Deadline, monotonic
from twinstream.errors import WrongProcessOrLoop

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["Link"]

# Buffered data is sent when it reaches this size (bytes).
_HIGH_WATER: Final = 1 << 15
# A write also sends the buffered data if the last send was longer ago than this (seconds).
_LINGER: Final = 0.001
# Time for a slow peer to receive the remaining data of a dropped connection (seconds).
_LATE: Final = 1.0
# The keeper starts to read when no thread has waited for this time (seconds).
_KEEPER_NAP: Final = 0.2


def _nothing() -> None:
    pass


class Link(Reader):
    """The bytes that a connection sends and receives, over one socket at a time.

    `on_bytes` is called with received data; its result is ignored. `on_end` is called once when an
    opened socket ends, unless this side has closed it with `shut`, `drop` or `close`.
    """

    def __init__(
        self,
        on_bytes: Callable[[bytes], int],
        on_end: Callable[[Exception | None], None],
    ) -> None:
        super().__init__(on_bytes)
        self._on_end: Final = on_end
        self._forks: Final = Forks.count
        self._waits = 0
        self._closed = False
        self.last_error: Exception | None = None
        """The error with which the last socket ended, or None if the peer closed it."""
        self.is_full = False
        """Whether callers should call `drain`. Always False, because `write` itself blocks."""
        self._nap: Lock | None = None
        self._linger = _LINGER
        Forks.watch(self)

    @property
    def is_open(self) -> bool:
        """Whether a socket is open."""
        return self._socket is not None

    @property
    def is_inherited(self) -> bool:
        """Whether this process was forked after the `Link` was created."""
        return self._forks != Forks.count

    @property
    def unsent(self) -> int:
        """Number of bytes written to the `Link` that were not passed to the system yet."""
        return sum(map(len, self._out)) + self._in_hand

    def let_go(self) -> None:
        """Close the inherited copies of the descriptors. Called in a forked child.

        Takes no lock, because another thread of the parent may have held the lock during the fork.
        """
        sock, self._socket = self._socket, None
        if sock is not None:
            close_copy(sock)
        self._waker.let_go()

    def check_owner(self) -> None:
        """Raise `WrongProcessOrLoop` if the caller is in a forked child."""
        if self._forks != Forks.count:
            raise WrongProcessOrLoop(
                "this connection was created before a fork; connect in each process"
            )

    def is_at_end(self) -> bool:
        """Return whether the socket has ended, even if no thread has noticed it yet.

        Called before the first write after a pause, because perhaps no thread has read in the
        pause. Data written after the end would be lost, without a way to find out whether it
        arrived.
        """
        sock = self._socket
        # If this thread is the reader, it is processing data now. It cannot handle the end yet,
        # which comes after this data.
        if sock is not None and (self._reader == get_ident() or not has_ended(sock)):
            return False
        # The next write has to check again, even without a pause.
        self._sent_at = 0.0
        return True

    def noticed(self) -> None:
        """Wait until a thread has noticed the end of the socket, for a limited time.

        Called after `write` returned False.
        """
        self._read_to_end()
        # Set this so that the next write is possible, even if the reading thread has not noticed
        # the end within that time.
        self._sent_at = monotonic()

    def settle(self, deadline: Deadline) -> None:
        """Wait until all data of the previous socket is processed. Raises OSError."""
        while self._reader:
            if deadline.expired():
                raise TimeoutError("data of the previous connection is still being processed")
            time.sleep(GLANCE)

    def open(
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
        sock = connected(host, port, deadline, shuffle)
        self._adopt(sock if tls is None else secured(sock, tls, server_name, deadline))

    def start_tls(self, tls: SSLContext, server_name: str, deadline: Deadline) -> None:
        """Switch to TLS on the open socket. Raises OSError."""
        sock = self._socket
        if not isinstance(sock, socket.socket):
            raise ConnectionError("the connection broke before TLS began")
        self._socket = None
        closed(sock)
        self._adopt(secured(sock, tls, server_name, deadline))

    def _adopt(self, sock: Wire) -> None:
        poll = poll_for(select.POLLIN, sock.fileno(), self._waker.number)
        # Wait for the thread that may still send to the previous socket. Its send will fail soon.
        with self._sending:
            # Discard data for the previous socket. The first command on the new one is CONNECT.
            self._out.clear()
            self._out_size = 0
            with self._mutex:
                if not self._closed:
                    self._poll = poll
                    self._socket = sock
                    keep_until_closed(sock)
                    return
        sock.close()
        raise ConnectionError("the connection was closed meanwhile")

    # ---- waiting

    def wait(self, signal: Signal, deadline: Deadline) -> bool:
        """Flush, then wait until the signal is set or the deadline has passed.

        Returns whether the signal is set.
        """
        if self._forks != Forks.count:
            self.check_owner()
        if self._out:
            self._flush(block=False)
        self._waits += 1
        try:
            while not signal.raised and deadline.at > monotonic():
                if self._try_to_lead(yields=False):
                    self._lead(signal, deadline)
                    self._step_back()
                else:
                    self._follow(signal, deadline)
            if not signal.raised:
                self._look(signal)
            if self._sleepers:
                self._pass_on()
        except BaseException:
            # The interrupt may have occurred just after this thread became the reader. If it
            # remained the reader, no other thread would ever read.
            if self._reader == get_ident():
                self._step_back()
            self._pass_on()
            raise
        return signal.raised

    @staticmethod
    def wait_behind(of: Callable[[], Link | None], signal: Signal, deadline: Deadline) -> bool:
        """Wait in the background; return whether the signal is set.

        The calling thread, the keeper, reads only while no other thread waits. It also sends data
        that other threads have buffered. `of` returns the `Link`, or None if the user dropped the
        connection. While this method sleeps, it keeps no reference to the `Link`.
        """
        while not signal.is_set() and not deadline.expired():
            link = of()
            if link is None:
                break
            waits = link._waits
            del link
            # Sleep for at most half of the time that is left. In the other half, the keeper reads
            # data that has arrived, so that the data is processed before the deadline.
            Link._doze(of, signal, min(max(deadline.remaining() / 2, 0.001), _KEEPER_NAP))
            link = of()
            if link is None:
                break
            if link._lingering:
                link._send_for_others(signal, deadline)
            elif waits == link._waits:
                del link
                Link.stand_in(of, signal, deadline)
        return signal.is_set()

    @staticmethod
    def _doze(of: Callable[[], Link | None], signal: Signal, timeout: float) -> None:
        with Gate(signal) as gate:
            link = of()
            if link is None:
                return
            link._nap = gate.lock
            rests = not link._lingering
            del link
            if rests:
                gate.pause(timeout)
            link = of()
            if link is not None:
                link._nap = None

    def _send_for_others(self, signal: Signal, deadline: Deadline) -> None:
        """Send data that other threads have buffered, until they write nothing for 40 ms."""
        idle = 0
        while idle < 20 and not signal.is_set() and not deadline.expired():
            time.sleep(2 * _LINGER)
            idle = 0 if self._out else idle + 1
            self.flush()
        self._lingering = False
        self.flush()

    # ---- the end of a socket

    def abort(self, error: Exception | None) -> None:
        """If a socket is open, abort it and call `on_end` with `error`."""
        sock = self._socket
        if sock is not None:
            self._drop(sock, error)

    def _drop(self, sock: Wire, error: Exception | None) -> None:
        self._end(sock, error, lambda: self._on_end(error))

    def _end(self, sock: Wire, error: Exception | None, tell: Callable[[], None]) -> None:
        is_due = False
        try:
            with self._mutex:
                if self._socket is not sock:
                    return
                # Set the reason first: other threads read it when they find no socket.
                self.last_error = error
                self._socket, is_due = None, True
                self._out.clear()
            self._cut(sock)
            tell()
            is_due = False
        finally:
            # After an interrupt. No other code would report the end.
            if is_due:
                self._cut(sock)
                tell()

    def _cut(self, sock: Wire) -> None:
        # shutdown() comes first, because it wakes up a thread that polls this socket.
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._waker.wake()
        sock.close()
        closed(sock)

    # ---- writing

    def write(self, data: bytes, now: bool = False) -> bool:
        """Take data to send; return False if the socket has ended.

        Blocks while the peer is slow. The data is sent together with other data: before a wait, by
        the keeper, when the buffered data exceeds `_HIGH_WATER`, or after a pause between writes.
        With `now` it is sent at once, because the caller will wait for a response.
        """
        if self._forks != Forks.count:
            self.check_owner()
        if self._lingering and self._out and not now:
            # The data is part of a series of writes. The keeper is awake and sends it within two
            # milliseconds.
            self._out.append(data)
            self._out_size += len(data)
            if self._out_size > _HIGH_WATER:
                self._flush(block=True)
            return True
        at = monotonic()
        paused = at - self._sent_at > self._linger
        if paused and self.is_at_end():
            return False
        if now and not self._out and self._send_past(data):
            self._sent_at = at
            # While this thread sent its data, another thread may have buffered data. That thread
            # did not send it, because it expects the sending thread to do so.
            if self._out:
                self._flush(block=self._out_size > _HIGH_WATER)
            return True
        self._out.append(data)
        self._out_size += len(data)
        if now:
            # Do not block while the peer is slow, because the caller has a deadline for the
            # response.
            self._flush(block=False)
        elif self._out_size > _HIGH_WATER:
            self._flush(block=True)
        elif self._lingering:
            # The keeper is awake and sends within two milliseconds. If the caller waits before
            # that, its wait sends the data.
            return True
        elif paused:
            self._flush(block=False)
        else:
            self._ask_keeper()
        return True

    def writelines(self, pieces: tuple[bytes, ...]) -> bool:
        """Take the pieces of a long message, and send them at once without joining them.

        Blocks while the peer is slow. Return False if the socket has ended.
        """
        self.check_owner()
        if self.is_at_end():
            return False
        self._out.extend(pieces)
        self._out_size += sum(map(len, pieces))
        self._flush(block=True)
        return True

    def write_soon(self, data: bytes) -> None:
        """Buffer data without any check. It is sent soon, even if the program does nothing more.

        Takes no lock, because the garbage collector may call this while the same thread has one.
        """
        if self._forks == Forks.count and self._socket is not None:
            self._out.append(data)
            self._out_size += len(data)
            self._ask_keeper()

    def write_unasked(self, data: bytes) -> None:
        """Send data at once, and never wait for a slow peer: for PINGs and PONGs."""
        self.write_soon(data)
        self.flush()

    def flush(self) -> None:
        """Send the buffered data that the system accepts now.

        The keeper sends the remaining data.
        """
        self._flush(block=False)

    def hurry(self) -> None:
        """Send the buffered data, and from now on all data at once, without the keeper.

        Called when the program ends, because the keeper may not run any more.
        """
        self._linger = -1.0
        self._lingering = False
        self.flush()

    def _ask_keeper(self) -> None:
        """Let the keeper send the remaining data in the buffer."""
        if self._lingering:
            return
        self._lingering = True
        nap = self._nap
        if nap is not None:
            open_gate(nap)
        elif self._reader_yields:
            self._waker.wake()

    def drain(self, deadline: Deadline) -> None:
        """Do nothing. In this twin, `write` itself blocks while the peer is slow."""

    def shut(self) -> None:
        """Flush and close the socket, without calling `on_end`."""
        self.flush()
        sock = self._socket
        if sock is not None:
            self._end(sock, None, _nothing)

    def drop(self, flag: Signal) -> None:
        """Flush and close the `Link` of a connection that the user dropped.

        Called by the garbage collector. If the peer is slow, a new thread sends the remaining data
        for `_LATE` seconds. Setting `flag` wakes up the keeper.
        """
        if self.is_inherited:
            return
        self.flush()
        try:
            if self.unsent:
                spawn(self._close_late, "twinstream-closer")
                return
        except RuntimeError:
            # The interpreter is ending, so no thread can be started.
            pass
        finally:
            flag.set()
        self.close()

    def _close_late(self) -> None:
        deadline = Deadline.after(_LATE)
        while self.unsent and self.is_open and not deadline.expired():
            time.sleep(2 * _LINGER)
            self.flush()
        unsent = self.unsent
        self.close()
        if unsent:
            text = f"a connection was dropped without `close`, and its last {unsent} bytes are lost"
            warnings.warn(text, RuntimeWarning, stacklevel=1)

    def close(self) -> None:
        """Flush and close the `Link` permanently."""
        with self._mutex:
            self._closed = True
        self.shut()
        # Wake up a polling thread first. If it polls again, the poll returns at once because the
        # descriptor is closed.
        self._waker.wake()
        self._waker.close()
