"""The send buffer of a `Link` of the blocking twin. One thread at a time sends it.

Theory of interrupts: Ctrl-C may interrupt the program between any two steps. An interrupt may end
the socket, which the client then replaces. But it must not leave a lock acquired, because other
threads would wait for the lock forever.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from threading import RLock, get_ident
from typing import Final

from js_sync.runtime.sockets import Wire, send
from twinstream.core.client.connection_events import Interrupted
from twinstream.core.deadline import monotonic
from twinstream.core.wire.write_buffers import Piece, to_write

__all__ = ["CUT_SHORT", "Sender"]

CUT_SHORT: Final = Interrupted("the program was interrupted while it read or wrote")
"""The error of a `Link` after an interrupt, if it is unknown which bytes were transferred."""


class Sender(ABC):
    """The sending half of a `Link`.

    The subclass handles the end of a socket, and sends the remaining data in the background.
    """

    def __init__(self) -> None:
        self._socket: Wire | None = None
        # The lock is reentrant, so that after an interrupt a thread can call `release` without
        # knowing whether it has acquired the lock.
        self._sending: Final = RLock()
        # The id of the sending thread, or 0.
        self._sender = 0
        # Threads use the list without a lock, because each of these operations is atomic: append an
        # item, copy the list, delete or replace a slice.
        self._out: list[Piece] = []
        self._out_size = 0
        # Number of bytes that the sending thread has taken from the list and is sending.
        self._in_hand = 0
        # The time of the last send (monotonic seconds).
        self._sent_at = 0.0

    @abstractmethod
    def _ask_keeper(self) -> None:
        """Let the background thread send the remaining data in the buffer."""

    @abstractmethod
    def _drop(self, sock: Wire, error: Exception | None) -> None:
        """End a socket, and report `error` if `sock` is the current socket."""

    def _take_turn(self, block: bool) -> bool:
        """Become the sending thread if no thread is sending; return whether this was possible."""
        me = get_ident()
        # A signal handler or the garbage collector may call this method while the same thread is
        # sending. The interrupted call then also sends the new data.
        if self._sender == me or not self._sending.acquire(blocking=block):
            return False
        self._sender = me
        return True

    def _end_turn(self) -> None:
        """Stop being the sending thread. Does nothing in a thread that is not sending."""
        if self._sender == get_ident():
            self._sender = 0
        try:
            self._sending.release()
        except RuntimeError:
            # This thread does not have the lock. An interrupt occurred before it acquired the lock,
            # or after it released the lock.
            pass

    def _send_past(self, data: bytes) -> bool:
        """Send data at once if the buffer is empty and no other thread is sending.

        Return False if the data was neither sent nor buffered. Bytes that the system does not
        accept are buffered. This takes a third of the steps of a write to the buffer.
        """
        sock, me = self._socket, get_ident()
        try:
            # Inlined `_take_turn`.
            if sock is None or self._sender == me or not self._sending.acquire(blocking=False):
                return False
            self._sender = me
            sent = not self._out and self._send_one(sock, data)
            self._end_turn()
            return sent
        except BaseException:
            # An interrupt. If this thread remained the sender, no other thread could send.
            self._end_turn()
            raise

    def _send_one(self, sock: Wire, data: bytes) -> bool:
        try:
            try:
                sent = sock.send(data)
            except BlockingIOError:
                sent = 0
            if sent < len(data):
                # Insert the remaining bytes at the front, before the data of other threads. With
                # TLS, this is necessary even if nothing was sent, because the message may be
                # encrypted already.
                self._out[:0] = [memoryview(data)[sent:]]
                self._out_size += len(data) - sent
                self._ask_keeper()
            return True
        except OSError:
            # The socket has ended. `_flush` will report the reason.
            return False
        except BaseException:
            # An interrupt. It is unknown how much was sent; see `_send_all`.
            self._drop(sock, CUT_SHORT)
            raise

    def _flush(self, *, block: bool) -> None:
        # Only writers may block if the peer does not read. The background thread, which has to
        # detect a dead peer, and a closing thread pass `block=False`, so that they never wait for a
        # blocked writer.
        try:
            while self._out and self._socket is not None:
                # If another thread is sending, it also sends this data, because it checks `_out`
                # after each send.
                if not self._take_turn(block):
                    return
                if not self._send_all(block):
                    self._end_turn()
                    self._ask_keeper()
                    return
                self._end_turn()
        except BaseException:
            # The interrupt may also have occurred within `_take_turn`.
            self._end_turn()
            raise

    def _send_all(self, block: bool) -> bool:
        """Send the buffered data; return whether everything was sent."""
        if (sock := self._socket) is None:
            return True
        rest: list[memoryview] = []
        try:
            pieces, size = self._out[:], self._out_size
            del self._out[: len(pieces)]
            self._out_size = 0
            self._in_hand = size
            rest = send(sock, to_write(pieces, size), block)
        except OSError as error:
            self._drop(sock, error)
        except BaseException:
            # An interrupt. It is unknown how much was sent, so end the socket. Otherwise the peer
            # could take later data for the rest of an incomplete message.
            self._in_hand = 0
            self._drop(sock, CUT_SHORT)
            raise
        self._in_hand = 0
        self._sent_at = monotonic()
        if rest and self._socket is sock:
            self._out[:0] = rest
            self._out_size += sum(map(len, rest))
        return not rest
