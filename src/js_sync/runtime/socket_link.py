"""The bytes of a connection of the blocking twin: the second half of the seam between the twins.

`js_async/runtime/socket_link.py` has the same names in the same order, on asyncio.

No reader thread stands between the socket and a waiting caller. One of the waiting threads reads
for all (leader and followers). When its own response has arrived it passes the reading on. The
keeper thread, the only one that a connection has, reads while no other thread does, so that a
program that computes for minutes still answers the server's PING. It yields as soon as another
thread waits.

CONTRIBUTING.md lists what both twins guarantee ("What the seam guarantees").
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
from twinstream.core.connect.addresses import Shuffle
from twinstream.core.deadline import Deadline, monotonic
from twinstream.errors import WrongOwner

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["Link"]

# Written bytes are sent when they reach this size (bytes) …
_HIGH_WATER: Final = 1 << 15
# … or when this long has passed since the last send (seconds).
_LINGER: Final = 0.001
# Time for a slow peer to take the rest of the data of a dropped connection (seconds).
_LATE: Final = 1.0
# The keeper reads when no thread has read for this long (seconds).
_KEEPER_NAP: Final = 0.2


def _nothing() -> None:
    pass


class Link(Reader):
    """The bytes of one connection, over one socket at a time.

    `on_bytes` receives the data; its result is ignored. `on_end` is called once when an opened
    socket ends. A wait does not sleep during its first `busy_poll` seconds.
    """

    def __init__(
        self,
        on_bytes: Callable[[bytes], int],
        on_end: Callable[[Exception | None], None],
        busy_poll: float = 0.0,
    ) -> None:
        super().__init__(on_bytes, busy_poll)
        self._on_end: Final = on_end
        self._forks: Final = Forks.count
        self._waits = 0
        self._closed = False
        # Whether `drain` should be called: never, as `write` blocks while the peer is slow.
        self.is_full = False
        self._nap: Lock | None = None
        self._linger = _LINGER
        Forks.watch(self)

    @property
    def is_open(self) -> bool:
        """Whether a socket is open."""
        return self._socket is not None

    @property
    def is_inherited(self) -> bool:
        """Whether this process was forked after the link was created."""
        return self._forks != Forks.count

    @property
    def unsent(self) -> int:
        """Approximate number of written bytes that the peer has not received."""
        return sum(map(len, self._out)) + self._in_hand

    def let_go(self) -> None:
        """Close a forked child's copies of the descriptors. Called in the child.

        Takes no lock: a thread that does not exist in the child may hold it.
        """
        sock, self._socket = self._socket, None
        if sock is not None:
            close_copy(sock)
        self._waker.let_go()

    def check_owner(self) -> None:
        """Raise `WrongOwner` in a forked process."""
        if self._forks != Forks.count:
            raise WrongOwner("this connection was created before a fork; connect in each process")

    def is_at_end(self) -> bool:
        """Return whether the peer closed the connection, even if no thread has noticed it yet.

        Checked before the first write after a pause, in which perhaps no thread read. Data written
        after the end is lost, and it would be unknown whether it arrived.
        """
        sock = self._socket
        # A thread that dispatches data cannot handle the end, which comes after that data.
        if sock is not None and (self._reader == get_ident() or not has_ended(sock)):
            return False
        # Let the next write check again, even without a pause.
        self._sent_at = 0.0
        return True

    def noticed(self) -> None:
        """Wait until the end of the socket, for which `write` returned False, was noticed."""
        self._read_to_end()
        # Do not refuse the next write, even if the reading thread had no time to notice the end.
        self._sent_at = monotonic()

    def settle(self, deadline: Deadline) -> None:
        """Wait until all data of the previous socket is processed; raises OSError."""
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
        """Connect a socket, with TLS from the start if a context is given; raises OSError.

        The addresses of a host share the time, and are tried in the order of `spread`.
        """
        sock = connected(host, port, deadline, shuffle)
        if tls is not None:
            self._adopt(secured(sock, tls, server_name, deadline))
        else:
            self._adopt(sock if self._keeping is None else self._keeping.socket(sock))

    def start_tls(self, tls: SSLContext, server_name: str, deadline: Deadline) -> None:
        """Switch to TLS on the open socket; raises OSError."""
        sock = self._socket
        if not isinstance(sock, socket.socket):
            raise ConnectionError("the connection broke before TLS began")
        self._socket = None
        closed(sock)
        self._adopt(secured(sock, tls, server_name, deadline))

    def _adopt(self, sock: Wire) -> None:
        poll = poll_for(select.POLLIN, sock.fileno(), self._waker.number)
        # Wait for a thread that still sends to the previous socket; its send fails soon.
        with self._sending:
            # Discard data for the previous socket. The first command on this one is CONNECT.
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
        """Flush, then wait for the signal or the deadline; return whether the signal is set."""
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
            # An interrupt may come between any two steps, including those that take the lead. If
            # the lead stayed here, no thread would ever read again.
            if self._reader == get_ident():
                self._step_back()
            self._pass_on()
            raise
        return signal.raised

    @staticmethod
    def wait_behind(of: Callable[[], Link | None], signal: Signal, deadline: Deadline) -> bool:
        """Wait as `wait` does, but read only while no other thread does.

        `of` returns the link, or None if the user dropped it. No reference to the link is held
        while this sleeps.
        """
        while not signal.is_set() and not deadline.expired():
            link = of()
            if link is None:
                break
            waits = link._waits
            del link
            # Not until the deadline: data that arrives meanwhile must be read before it.
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
        """Send what other threads have written and not sent, until they pause."""
        idle = 0
        while idle < 20 and not signal.is_set() and not deadline.expired():
            time.sleep(2 * _LINGER)
            idle = 0 if self._out else idle + 1
            self.flush()
        self._lingering = False
        self.flush()

    # ---- the end of a socket

    def abort(self, error: Exception | None) -> None:
        """Abort the socket; `on_end` is called with the error."""
        sock = self._socket
        if sock is not None:
            self._drop(sock, error)

    def _drop(self, sock: Wire, error: Exception | None) -> None:
        self._end(sock, lambda: self._on_end(error))

    def _end(self, sock: Wire, tell: Callable[[], None]) -> None:
        ended = False
        try:
            with self._mutex:
                if self._socket is not sock:
                    return
                self._socket, ended = None, True
                self._out.clear()
            self._cut(sock)
            tell()
        except BaseException:
            # Interrupted: no other code would report the end.
            if ended:
                self._cut(sock)
                tell()
            raise

    def _cut(self, sock: Wire) -> None:
        # shutdown() first: it wakes up a thread that polls this socket.
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._waker.wake()
        sock.close()
        closed(sock)

    # ---- writing

    def write(self, data: bytes) -> bool:
        """Queue data, to be sent together with other data before a wait, or soon.

        Returns whether it was queued, as `offer` does.
        """
        return self.offer(data)

    def offer(self, data: bytes, now: bool = False) -> bool:
        """Write data, blocking if necessary, and return True, unless the socket has ended.

        With `now` the data is sent at once, before the caller prepares to wait for the response.
        """
        if self._forks != Forks.count:
            self.check_owner()
        if self._lingering and self._out and not now:
            # Part of a series of writes: the keeper is awake and sends within two milliseconds.
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
            # Written meanwhile by a thread that left the sending to this one.
            if self._out:
                self._flush(block=self._out_size > _HIGH_WATER)
            return True
        self._out.append(data)
        self._out_size += len(data)
        if now:
            # Do not wait for a slow peer: the caller has a deadline for the response.
            self._flush(block=False)
        elif self._out_size > _HIGH_WATER:
            self._flush(block=True)
        elif self._lingering:
            # The keeper is awake and sends within two milliseconds, or the caller does so sooner.
            return True
        elif paused:
            self._flush(block=False)
        else:
            self._ask_keeper()
        return True

    def offer_pieces(self, pieces: tuple[bytes, ...]) -> bool:
        """Write a long message without joining its pieces; otherwise like `offer`."""
        self.check_owner()
        if self.is_at_end():
            return False
        self._out.extend(pieces)
        self._out_size += sum(map(len, pieces))
        self._flush(block=True)
        return True

    def post(self, data: bytes) -> None:
        """Send data at once, without ever waiting for the peer."""
        self._out.append(data)
        self._out_size += len(data)
        self._flush(block=False)

    def flush(self) -> None:
        """Send what was written, as far as the peer takes it; the rest follows."""
        self._flush(block=False)

    def hurry(self) -> None:
        """Send what was written, and everything from now on at once: the keeper will not do it."""
        self._linger = -1.0
        self._lingering = False
        self.flush()

    def _ask_keeper(self) -> None:
        """Let the keeper send what is left in the buffer."""
        if self._lingering:
            return
        self._lingering = True
        nap = self._nap
        if nap is not None:
            open_gate(nap)
        elif self._reader_yields:
            self._waker.wake()

    def drain(self, deadline: Deadline) -> None:
        """Wait until the peer has caught up. Does nothing: `write` blocks until then."""

    def shut(self) -> None:
        """Flush and close the socket, without calling `on_end`."""
        self.flush()
        sock = self._socket
        if sock is not None:
            self._end(sock, _nothing)

    def drop(self, flag: Signal) -> None:
        """Flush and close a link that its user dropped.

        Called by the garbage collector. A slow peer gets some time, in a thread of its own. `flag`
        wakes up the keeper.
        """
        if self.is_inherited:
            return
        self.flush()
        try:
            if self.unsent:
                spawn(self._close_late, "twinstream-closer")
                return
        except RuntimeError:
            # The interpreter ends: no thread can be started.
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
        """Close the link for good."""
        with self._mutex:
            self._closed = True
        self.shut()
        # Wake up a polling thread first; a poll of a closed descriptor returns at once.
        self._waker.wake()
        self._waker.close()
