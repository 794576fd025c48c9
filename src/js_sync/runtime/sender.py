"""What a link of the blocking twin has to send, and the thread whose turn it is to send it.

An interrupt (Ctrl-C) may come between any two steps. It may end the link, which is made anew, but
nobody must wait for a turn that is never given back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from threading import RLock, get_ident
from typing import Final

from twinstream.core.deadline import monotonic
from twinstream.core.wire.write_buffers import Piece, to_write
from js_sync.runtime.sockets import Wire, send

__all__ = ["CUT_SHORT", "Sender"]

CUT_SHORT: Final = ConnectionError("the program was interrupted while it read or wrote")
"""Why a link ends where nobody knows which bytes were taken."""


class Sender(ABC):
    """The half of a link that sends; the link says how it ends, and who sends what is left."""

    def __init__(self) -> None:
        self._socket: Wire | None = None
        # A lock that knows its holder: whoever was interrupted gives it back if it was taken.
        self._sending: Final = RLock()
        self._sender = 0
        # Appending, copying and cutting a list are one step each, whatever other threads do.
        self._out: list[Piece] = []
        self._out_size = 0
        # What the thread that sends has taken out of the list (bytes).
        self._in_hand = 0
        self._sent_at = 0.0

    @abstractmethod
    def _ask_keeper(self) -> None:
        """Let the keeper send what is left here."""

    @abstractmethod
    def _drop(self, sock: Wire, error: Exception | None) -> None:
        """End a socket."""

    def _take_turn(self, block: bool) -> bool:
        """Be the one who sends, if nobody else is; tell whether."""
        me = get_ident()
        # In the middle of its own sending, called by a signal or the garbage collector: what was
        # written is taken along.
        if self._sender == me or not self._sending.acquire(blocking=block):
            return False
        self._sender = me
        return True

    def _end_turn(self) -> None:
        """Let others send; whoever does not is no hindrance."""
        if self._sender == get_ident():
            self._sender = 0
        try:
            self._sending.release()
        except RuntimeError:
            # Interrupted before it was taken, or after it was given back.
            pass

    def _send_past(self, data: bytes) -> bool:
        """Send at once, in a third of the steps, while nothing else is to be sent; tell whether."""
        sock = self._socket
        try:
            if sock is None or not self._take_turn(block=False):
                return False
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
                # First in the list, before anybody else's: TLS has begun with these bytes.
                self._out[:0] = [memoryview(data)[sent:]]
                self._out_size += len(data) - sent
                self._ask_keeper()
            self._sent_at = monotonic()
            return True
        except OSError:
            # Its end: the usual way finds out why.
            return False
        except BaseException:
            self._drop(sock, CUT_SHORT)
            raise

    def _flush(self, *, block: bool) -> None:
        # Only writers may be held up by a peer that does not read. The keeper, who finds out that
        # it is dead, and whoever closes must not wait behind them.
        try:
            while self._out and self._socket is not None:
                # Whoever sends now takes this along: the look at `_out` comes after the release.
                if not self._take_turn(block):
                    return
                if not self._send_all(block):
                    self._end_turn()
                    self._ask_keeper()
                    return
                self._end_turn()
        except BaseException:
            # An interrupt may come between any two steps, those of taking the turn included.
            self._end_turn()
            raise

    def _send_all(self, block: bool) -> bool:
        """Send what is here; tell whether all of it went."""
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
            # Nobody knows how much went out: more behind it could be taken for a part of it.
            self._drop(sock, CUT_SHORT)
            raise
        self._in_hand = 0
        self._sent_at = monotonic()
        if rest and self._socket is sock:
            self._out[:0] = rest
            self._out_size += sum(map(len, rest))
        return not rest
