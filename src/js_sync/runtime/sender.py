"""The send buffer of a link of the blocking twin, and the turns of threads to send it.

An interrupt (Ctrl-C) may come between any two steps. It may end the connection, which reconnects,
but it must never leave a turn taken, for which other threads would wait forever.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from threading import RLock, get_ident
from typing import Final

from js_sync.runtime.sockets import Wire, send
from twinstream.core.deadline import monotonic
from twinstream.core.wire.write_buffers import Piece, to_write

__all__ = ["CUT_SHORT", "Sender"]

CUT_SHORT: Final = ConnectionError("the program was interrupted while it read or wrote")
"""Why a link ends when it is unknown which bytes were sent or processed."""


class Sender(ABC):
    """The sending half of a link. The link handles its end and sends the rest of the buffer."""

    def __init__(self) -> None:
        self._socket: Wire | None = None
        # Reentrant: after an interrupt a thread can release it without knowing whether it holds it.
        self._sending: Final = RLock()
        self._sender = 0
        # Appending, copying and slicing a list are atomic, whatever other threads do.
        self._out: list[Piece] = []
        self._out_size = 0
        # What the sending thread has taken out of the list (bytes).
        self._in_hand = 0
        self._sent_at = 0.0

    @abstractmethod
    def _ask_keeper(self) -> None:
        """Let the keeper send what is left in the buffer."""

    @abstractmethod
    def _drop(self, sock: Wire, error: Exception | None) -> None:
        """End a socket."""

    def _take_turn(self, block: bool) -> bool:
        """Become the sending thread if there is none; return whether that was done."""
        me = get_ident()
        # A signal handler or the garbage collector may call this within the thread's own sending;
        # the outer call then sends what was written.
        if self._sender == me or not self._sending.acquire(blocking=block):
            return False
        self._sender = me
        return True

    def _end_turn(self) -> None:
        """Let others send. No effect if this thread does not send."""
        if self._sender == get_ident():
            self._sender = 0
        try:
            self._sending.release()
        except RuntimeError:
            # Interrupted before the lock was acquired, or after it was released.
            pass

    def _send_past(self, data: bytes) -> bool:
        """Send at once, in a third of the steps, if the queue is empty; return whether it was."""
        sock, me = self._socket, get_ident()
        try:
            # As `_take_turn` does.
            if sock is None or self._sender == me or not self._sending.acquire(blocking=False):
                return False
            self._sender = me
            sent = not self._out and self._send_one(sock, data)
            self._end_turn()
            return sent
        except BaseException:
            self._end_turn()
            raise

    def _send_one(self, sock: Wire, data: bytes) -> bool:
        try:
            try:
                sent = sock.send(data)
            except BlockingIOError:
                sent = 0
            if sent < len(data):
                # Inserted at the front of the list, because TLS has begun with these bytes.
                self._out[:0] = [memoryview(data)[sent:]]
                self._out_size += len(data) - sent
                self._ask_keeper()
            return True
        except OSError:
            # The end of the socket: the regular path determines the reason.
            return False
        except BaseException:
            self._drop(sock, CUT_SHORT)
            raise

    def _flush(self, *, block: bool) -> None:
        # Only writers may block on a peer that does not read. The keeper, which detects that the
        # peer is dead, and a closing thread must not wait behind them.
        try:
            while self._out and self._socket is not None:
                # Another thread sends this data, too: it checks `_out` after the release.
                if not self._take_turn(block):
                    return
                if not self._send_all(block):
                    self._end_turn()
                    self._ask_keeper()
                    return
                self._end_turn()
        except BaseException:
            # An interrupt may come between any two steps, including those that take the turn.
            self._end_turn()
            raise

    def _send_all(self, block: bool) -> bool:
        """Send the buffer; return whether everything was sent."""
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
            # It is unknown how much was sent: data after it could be taken for a part of it.

            self._drop(sock, CUT_SHORT)
            raise
        self._in_hand = 0
        self._sent_at = monotonic()
        if rest and self._socket is sock:
            self._out[:0] = rest
            self._out_size += sum(map(len, rest))
        return not rest
