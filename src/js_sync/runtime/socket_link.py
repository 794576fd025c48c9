"""The seam, second half: the bytes of a connection of the blocking twin, on sockets.

`js_async/_link.py` holds the same names in the same order on asyncio.

There is no reader thread on the way of a message. The thread that waits reads for all
(leader and followers); when its own answer is here it passes the reading on. A keeper thread, the
only one a connection has, reads when nobody does, so that a program that computes for minutes
still answers the server's PING; it steps back as soon as somebody waits in the foreground.

`js_async/_link.py` lists what both guarantee.
"""

from __future__ import annotations

import select
import socket
import time
import warnings
from collections.abc import Callable
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Final

from twinstream.core.connect.addresses import Shuffle
from twinstream.core.deadline import Deadline, monotonic
from twinstream.errors import WrongOwner
from js_sync.runtime.concurrency import Forks, Gate, Signal, close_copy, closed, keep_until_closed, open_gate, spawn
from js_sync.runtime.reader import GLANCE, Reader
from js_sync.runtime.sockets import Wire, connected, has_ended, poll_for, secured

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["Link"]

# Written bytes go out when this much is together …
_HIGH_WATER: Final = 1 << 15
# … or when this long passed since bytes went out last (seconds).
_LINGER: Final = 0.001
# How long a peer that is behind may take for the rest of a connection that was dropped (seconds).
_LATE: Final = 1.0
# The keeper reads when nobody did for this long (seconds).
_KEEPER_NAP: Final = 0.2


def _nothing() -> None:
    pass


class Link(Reader):
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
        super().__init__(on_bytes, busy_poll)
        self._on_end: Final = on_end
        self._forks: Final = Forks.count
        self._waits = 0
        self._closed = False
        # Whether `drain` should be called: never, for `write` blocks while the peer is behind.
        self.is_full = False
        self._nap: Lock | None = None
        self._linger = _LINGER
        Forks.watch(self)

    @property
    def is_open(self) -> bool:
        """Tell whether a socket is open."""
        return self._socket is not None

    @property
    def is_inherited(self) -> bool:
        """Tell whether this process was forked off since the link was made."""
        return self._forks != Forks.count

    @property
    def unsent(self) -> int:
        """How many bytes were written that the peer has not taken, about."""
        return sum(map(len, self._out)) + self._in_hand

    def let_go(self) -> None:
        """Close the copies that a forked child has of the descriptors; called in the child.

        Takes no lock: a thread that does not exist in the child may hold it.
        """
        sock, self._socket = self._socket, None
        if sock is not None:
            close_copy(sock)
        self._waker.let_go()

    def check_owner(self) -> None:
        """Raise `WrongOwner` in a forked process."""
        if self._forks != Forks.count:
            raise WrongOwner("this connection was made before a fork; connect in each process")

    def is_at_end(self) -> bool:
        """Return whether the peer closed the connection, also where no thread has noticed it yet.

        Asked before the first write after a pause, in which perhaps no thread read: what is written
        after the end is lost, and nobody could know whether it arrived.
        """
        sock = self._socket
        # Within its own reading a thread cannot handle the end, which comes after that.
        if sock is not None and (self._reader == get_ident() or not has_ended(sock)):
            return False
        # Whatever was sent a moment ago: the program may know now, so the next write looks too.
        self._sent_at = 0.0
        return True

    def noticed(self) -> None:
        """Return when the end of the socket, of which `write` returned False, was noticed."""
        self._read_to_end()
        # If it was not, for want of time of the thread that reads: the next write is not refused.
        self._sent_at = monotonic()

    def settle(self, deadline: Deadline) -> None:
        """Return when what came over the last socket is handed on; raises OSError."""
        while self._reader:
            if deadline.expired():
                raise TimeoutError("what came over the last link is still being handed on")
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
        closed(sock)
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
                    keep_until_closed(sock)
                    return
        sock.close()
        raise ConnectionError("the connection was closed meanwhile")

    # ---- waiting

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

    @staticmethod
    def wait_behind(of: Callable[[], Link | None], signal: Signal, deadline: Deadline) -> bool:
        """Wait as `wait` does, but read only while no other thread does.

        `of` returns the link, or None once the program dropped it; this holds no reference to it
        while it sleeps.
        """
        while not signal.is_set() and not deadline.expired():
            link = of()
            if link is None:
                break
            waits = link._waits
            del link
            # Never to the very end: what came meanwhile is to be read before the time is over.
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
        closed(sock)

    # ---- writing

    def write(self, data: bytes) -> bool:
        """Put bytes on the way: together with others, before anybody waits or soon after.

        Return whether that was done, as `offer` does.
        """
        return self.offer(data)

    def offer(self, data: bytes, now: bool = False) -> bool:
        """Write, blocking if need be; return whether that was done: not after the socket's end.

        With `now` it goes out at once, before the caller gets ready to wait for the answer.
        """
        if self._forks != Forks.count:
            self.check_owner()
        if self._lingering and self._out and not now:
            # One of many: the keeper is awake and sends within two milliseconds.
            self._out.append(data)
            self._out_size += len(data)
            if self._out_size > _HIGH_WATER:
                self._flush(block=True)
            return True
        paused = monotonic() - self._sent_at > self._linger
        if paused and self.is_at_end():
            return False
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
        elif paused:
            self._flush(block=False)
        else:
            self._ask_keeper()
        return True

    def offer_pieces(self, pieces: tuple[bytes, ...]) -> bool:
        """Write a long message, without joining its pieces; as `offer`."""
        self.check_owner()
        if self.is_at_end():
            return False
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

    def hurry(self) -> None:
        """Send what was written, and from now on everything at once: no keeper will do it."""
        self._linger = -1.0
        self._lingering = False
        self.flush()

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

    def drop(self, flag: Signal) -> None:
        """Send what was written and close the link, which no program holds any more.

        Called by the garbage collector. A peer that is behind gets some time, in a thread of its
        own. `flag` wakes the keeper.
        """
        if self.is_inherited:
            return
        self.flush()
        try:
            if self.unsent:
                spawn(self._close_late, "twinstream-closer")
                return
        except RuntimeError:
            # The interpreter ends: no thread can begin.
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
        """Shut the link for good."""
        with self._mutex:
            self._closed = True
        self.shut()
        # Whoever polls is woken first; a poll on what is closed returns at once.
        self._waker.wake()
        self._waker.close()
