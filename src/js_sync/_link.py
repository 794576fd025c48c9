"""The seam, second half: the bytes of a connection of the blocking twin, on sockets.

`js_async/_link.py` holds the same names in the same order on asyncio.

There is no reader thread on the way of a message. The thread that waits reads for all
(leader and followers); when its own answer is here it passes the reading on. A keeper thread, the
only one a connection has, reads when nobody does, so that a program that computes for minutes
still answers the server's PING; it steps back as soon as somebody waits in the foreground.
"""

from __future__ import annotations

import select
import socket
import time
from collections import deque
from collections.abc import Callable
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Final

from js_core.addresses import Shuffle
from js_core.deadline import Deadline, monotonic
from js_core.errors import WrongOwner
from js_sync._io import LONGEST, Forks, Gate, Signal, Waker, open_gate
from js_sync._sender import CUT_SHORT, Sender
from js_sync._sockets import Wire, connected, has_bytes, keeping, poll_for, secured

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["Link"]

# Below the allocator's threshold for mapped memory: recv() of more pays a page fault each time.
_READ_SIZE: Final = 1 << 16
# A peer that never pauses must not keep a time-out from being told.
_LAST_READS: Final = 256
# Nor must a peer whose bytes take long to read, or another thread that reads but gets no time from
# the machine (seconds).
_LAST_WAIT: Final = 1.0
_GLANCE: Final = 0.0005
# Written bytes go out when this much is together …
_HIGH_WATER: Final = 1 << 15
# … or when this long passed since bytes went out last (seconds).
_LINGER: Final = 0.001
# The keeper reads when nobody did for this long (seconds).
_KEEPER_NAP: Final = 0.2


def _nothing() -> None:
    pass


class Link(Sender):
    """The bytes of one connection, over one socket at a time.

    `on_bytes` gets what arrives, whatever it returns; `on_end` is told once when a socket that was
    opened ends. A wait does not sleep in its first `busy_poll` seconds.
    """

    def __init__(
        self,
        on_bytes: Callable[[bytes], int],
        on_end: Callable[[Exception | None], None],
        busy_poll: float = 0.0,
    ) -> None:
        super().__init__()
        self._on_bytes: Final = on_bytes
        self._on_end: Final = on_end
        self._busy_poll: Final = busy_poll
        self._keeping: Final = keeping() if busy_poll else None
        self._forks: Final = Forks.count
        self._poll = select.poll()
        self._waker: Final = Waker()
        # Guards who reads and who sleeps; never held over I/O.
        self._mutex: Final = Lock()
        # The thread that reads, 0 for none.
        self._reader = 0
        self._reader_yields = False
        self._sleepers: deque[Lock] = deque()
        self._waits = 0
        self._reads = 0
        self._closed = False
        # Whether `drain` should be called: never, for `write` blocks while the peer is behind.
        self.is_full = False
        self._nap: Lock | None = None
        self._lingering = False

    @property
    def is_open(self) -> bool:
        """Tell whether a socket is open."""
        return self._socket is not None

    def check_owner(self) -> None:
        """Raise `WrongOwner` in a forked process."""
        if self._forks != Forks.count:
            raise WrongOwner("this connection was made before a fork; connect in each process")

    def settle(self, deadline: Deadline) -> None:
        """Return when what came over the last socket is handed on; raises OSError."""
        while self._reader:
            if deadline.expired():
                raise TimeoutError("what came over the last link is still being handed on")
            time.sleep(_GLANCE)

    def open(
        self,
        host: str,
        port: int,
        deadline: Deadline,
        tls: SSLContext | None,
        server_name: str,
        shuffle: Shuffle | None = None,
    ) -> None:
        """Connect a socket, with TLS from the start where a context is given; raises OSError.

        The addresses of a name share the time, and are tried in the order of `spread`.
        """
        sock = connected(host, port, deadline, shuffle)
        if tls is not None:
            self._adopt(secured(sock, tls, server_name, deadline))
        else:
            self._adopt(sock if self._keeping is None else self._keeping.socket(sock))

    def start_tls(self, tls: SSLContext, server_name: str, deadline: Deadline) -> None:
        """Go on with TLS on the open socket; raises OSError."""
        sock = self._socket
        if not isinstance(sock, socket.socket):
            raise ConnectionError("the link broke before TLS began")
        self._socket = None
        self._adopt(secured(sock, tls, server_name, deadline))

    def _adopt(self, sock: Wire) -> None:
        poll = poll_for(select.POLLIN, sock.fileno(), self._waker.number)
        # Whoever still sends to the last socket is waited for: that has ended, so it is soon.
        with self._sending:
            # Written for the last socket. The first words on this one are CONNECT.
            self._out.clear()
            self._out_size = 0
            with self._mutex:
                if not self._closed:
                    self._poll = poll
                    self._socket = sock
                    return
        sock.close()
        raise ConnectionError("the connection was closed meanwhile")

    # ---- reading: leader and followers

    def _receive(self, sock: Wire) -> None:
        """Read once."""
        try:
            self._take_in(sock)
        except BaseException:
            # Interrupted (an `Exception` is dealt with below): bytes may be lost, or half taken.
            self._drop(sock, CUT_SHORT)
            raise

    def _take_in(self, sock: Wire) -> None:
        try:
            data = sock.recv(_READ_SIZE)
        except BlockingIOError:
            return
        except OSError as error:
            self._drop(sock, error)
            return
        if not data:
            self._drop(sock, None)
            return
        self._reads += 1
        try:
            self._on_bytes(data)
        except Exception as error:
            self._drop(sock, error)

    def _lead(self, signal: Signal, deadline: Deadline) -> None:
        """Read for all until the own flag is up, the deadline passes or the socket ends."""
        waker = self._waker
        waker.busy = False
        signal.sleepers.append(waker)
        try:
            if self._keeping is not None and not self._reader_yields:
                until = min(monotonic() + self._busy_poll, deadline.at)
                self._spin(self._keeping.give_way, signal, until)
            while not signal.raised:
                sock, left = self._socket, deadline.at - monotonic()
                if sock is None or left <= 0:
                    break
                if self._reader_yields and (self._sleepers or self._lingering):
                    break
                for number, _ in self._poll.poll(min(left, LONGEST) * 1000):
                    if number == waker.number:
                        waker.drain()
                    else:
                        waker.busy = True
                        self._receive(sock)
                        # Before the look at the flag: who raises it now wakes this.
                        waker.busy = False
        finally:
            waker.busy = False
            signal.sleepers.remove(waker)

    def _spin(self, give_way: Callable[[], object], signal: Signal, until: float) -> None:
        """Read for all without sleeping, until the own flag is up, that moment or another waits."""
        self._waker.busy = True
        while not signal.raised and not self._sleepers and monotonic() < until:
            sock = self._socket
            if sock is None:
                break
            give_way()
            self._receive(sock)
        # Before the next look at the flag, as everywhere.
        self._waker.busy = False

    def _look(self, signal: Signal) -> None:
        """Read what is there, before it is said that nothing came in time.

        The program may have come back to this connection when the time was over already.
        """
        last, end = self._reads + _LAST_READS, monotonic() + _LAST_WAIT
        while not self._try_to_lead(yields=False):
            # Somebody else reads, and perhaps had no time yet for what is here.
            if signal.raised or self._reads > last or monotonic() > end or not self._is_behind():
                return
            time.sleep(_GLANCE)
        try:
            for _ in range(_LAST_READS):
                if monotonic() > end:
                    break
                sock = self._socket
                ready = [number for number, _ in self._poll.poll(0)]
                if signal.raised or sock is None or sock.fileno() not in ready:
                    break
                self._waker.busy = True
                self._receive(sock)
        finally:
            self._waker.busy = False
        self._step_back()

    def _is_behind(self) -> bool:
        """Tell whether bytes are here that whoever reads has not handed on."""
        sock = self._socket
        # In this order: he notes that he is at it before he takes bytes out of the socket.
        return sock is not None and (has_bytes(sock) or self._waker.busy)

    def _try_to_lead(self, yields: bool) -> bool:
        with self._mutex:
            if self._reader or self._socket is None:
                return False
            self._reader = get_ident()
            self._reader_yields = yields
            return True

    def _step_back(self) -> None:
        with self._mutex:
            self._reader = 0
            self._reader_yields = False
            heir = self._sleepers[0] if self._sleepers else None
        if heir is not None:
            open_gate(heir)

    def _pass_on(self) -> None:
        """Wake one sleeper to read, unless somebody reads."""
        with self._mutex:
            if self._reader or not self._sleepers:
                return
            gate = self._sleepers[0]
        open_gate(gate)

    def _follow(self, signal: Signal, deadline: Deadline) -> None:
        """Sleep until the own flag is up, the deadline passes or it is the turn to read."""
        with Gate(signal) as gate:
            try:
                with self._mutex:
                    if not self._reader and self._socket is not None:
                        return
                    self._sleepers.append(gate.lock)
                if self._reader_yields:
                    self._waker.wake()
                gate.pause(deadline.remaining())
                self._wake_up(gate)
            except BaseException:
                # Interrupted, perhaps before it was listed or when it was not any more.
                self._wake_up(gate)
                raise

    def _wake_up(self, gate: Gate) -> None:
        with self._mutex:
            if gate.lock in self._sleepers:
                self._sleepers.remove(gate.lock)

    def wait(self, signal: Signal, deadline: Deadline) -> bool:
        """Send what was written, then sleep until the flag is up or the deadline passes."""
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
            # An interrupt may come between any two steps, those of taking the lead included: if it
            # stayed here, nobody would ever read again.
            if self._reader == get_ident():
                self._step_back()
            self._pass_on()
            raise
        return signal.raised

    def wait_behind(self, signal: Signal, deadline: Deadline) -> bool:
        """Wait as `wait` does, but read only while nobody in the foreground does."""
        while not signal.is_set() and not deadline.expired():
            waits = self._waits
            # Never to the very end: what came meanwhile is to be read before the time is over.
            self._doze(signal, min(max(deadline.remaining() / 2, 0.001), _KEEPER_NAP))
            if self._lingering:
                self._linger(signal, deadline)
            elif waits == self._waits and self._try_to_lead(yields=True):
                try:
                    self._lead(signal, deadline)
                finally:
                    self._step_back()
        return signal.is_set()

    def _doze(self, signal: Signal, timeout: float) -> None:
        with Gate(signal) as gate:
            self._nap = gate.lock
            if not self._lingering:
                gate.pause(timeout)
            self._nap = None

    def _linger(self, signal: Signal, deadline: Deadline) -> None:
        """Send what others wrote and nobody sent, until they pause."""
        idle = 0
        while idle < 20 and not signal.is_set() and not deadline.expired():
            time.sleep(2 * _LINGER)
            idle = 0 if self._out else idle + 1
            self.flush()
        self._lingering = False
        self.flush()

    # ---- the end of a socket

    def abort(self, error: Exception | None) -> None:
        """Cut the socket now; `on_end` is told why."""
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
            # Interrupted, and nobody else would do it.
            if ended:
                self._cut(sock)
                tell()
            raise

    def _cut(self, sock: Wire) -> None:
        # shutdown() first: it wakes a thread that polls this socket.
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._waker.wake()
        sock.close()

    # ---- writing

    def write(self, data: bytes) -> None:
        """Put bytes on the way: together with others, before anybody waits or soon after."""
        self.offer(data)

    def offer(self, data: bytes, now: bool = False) -> bool:
        """Write; tell whether it was done, which here it always is: this blocks if need be.

        With `now` it goes out at once, before the caller gets ready to wait for the answer.
        """
        if self._forks != Forks.count:
            self.check_owner()
        if now and not self._out and self._send_past(data):
            # Written meanwhile by somebody who left it to whoever was sending.
            if self._out:
                self._flush(block=self._out_size > _HIGH_WATER)
            return True
        self._out.append(data)
        self._out_size += len(data)
        if now:
            # Not waiting for a peer that is behind: the caller has a deadline for the answer.
            self._flush(block=False)
        elif self._out_size > _HIGH_WATER:
            self._flush(block=True)
        elif self._lingering:
            # The keeper is awake and sends within two milliseconds, or the caller sooner.
            return True
        elif monotonic() - self._sent_at > _LINGER:
            self._flush(block=False)
        else:
            self._ask_keeper()
        return True

    def offer_pieces(self, pieces: tuple[bytes, ...]) -> bool:
        """Write a long message, without joining its pieces; as `offer`."""
        self.check_owner()
        self._out.extend(pieces)
        self._out_size += sum(map(len, pieces))
        self._flush(block=True)
        return True

    def post(self, data: bytes) -> None:
        """Put bytes on the way at once, without ever waiting for the peer."""
        self._out.append(data)
        self._out_size += len(data)
        self._flush(block=False)

    def flush(self) -> None:
        """Send what was written, as far as the peer takes it; the rest follows."""
        self._flush(block=False)

    def _ask_keeper(self) -> None:
        """Let the keeper send what is left here."""
        if self._lingering:
            return
        self._lingering = True
        nap = self._nap
        if nap is not None:
            open_gate(nap)
        elif self._reader_yields:
            self._waker.wake()

    def drain(self, deadline: Deadline) -> None:
        """Return when the peer keeps up with what is written: `write` blocks until then."""

    def shut(self) -> None:
        """Send what was written and close the socket; `on_end` is not told."""
        self.flush()
        sock = self._socket
        if sock is not None:
            self._end(sock, _nothing)

    def close(self) -> None:
        """Shut the link for good."""
        with self._mutex:
            self._closed = True
        self.shut()
        # Whoever polls is woken first; a poll on what is closed returns at once.
        self._waker.wake()
        self._waker.close()
