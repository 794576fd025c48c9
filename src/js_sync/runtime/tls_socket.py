"""TLS on a socket that never waits.

OpenSSL works in memory here, between the socket and the link. An `ssl.SSLSocket` asks the system
twice for each record, and a server's records are short (1 KiB at first, 16 KiB at most). Reading
over TLS takes 0.6 of the CPU when one read brings all that is there, publishing many 0.7.
"""

from __future__ import annotations

import select
import ssl
from collections.abc import Iterable
from threading import RLock
from typing import TYPE_CHECKING, Final

from twinstream.core.deadline import Deadline
from js_sync.runtime.sockets import poll_for

if TYPE_CHECKING:
    import socket

    from typing_extensions import Buffer

__all__ = ["TlsSocket"]

# The most that one record holds.
_RECORD: Final = 1 << 14
# Encrypted before it is sent (bytes): as much as a link writes at once.
_PORTION: Final = 1 << 16
_HEADER: Final = 5


class TlsSocket:
    """The calls of a plain socket that never waits, encrypted. Each raises OSError.

    A lock that knows its holder: a signal may come within a call and close the link.
    """

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, server_name: str) -> None:
        self._sock: Final = sock
        self._within: Final = RLock()
        self._incoming: Final = ssl.MemoryBIO()
        self._outgoing: Final = ssl.MemoryBIO()
        self._tls: Final = context.wrap_bio(
            self._incoming, self._outgoing, server_hostname=server_name
        )
        # Encrypted, and not taken by the peer yet; and how much of what `send` was given that is.
        self._unsent = b""
        self._owed = 0

    def shake_hands(self, deadline: Deadline) -> None:
        """Agree on keys with the peer, and check who it is."""
        while True:
            try:
                self._tls.do_handshake()
                return
            except ssl.SSLWantReadError:
                pass
            finally:
                # Also where it failed: the peer is told why.
                self._say(deadline)
            self._incoming.write(self._record(deadline))

    def _say(self, deadline: Deadline) -> None:
        self._unsent += self._outgoing.read()
        while True:
            try:
                self._push()
                return
            except BlockingIOError:
                self._wait(select.POLLOUT, deadline)

    def _record(self, deadline: Deadline) -> bytes:
        """Read one record and nothing behind it, which a poll of the socket would not see."""
        header = self._exactly(_HEADER, deadline)
        return header + self._exactly(int.from_bytes(header[3:], "big"), deadline)

    def _exactly(self, size: int, deadline: Deadline) -> bytes:
        got = b""
        while len(got) < size:
            try:
                data = self._sock.recv(size - len(got))
            except BlockingIOError:
                self._wait(select.POLLIN, deadline)
                continue
            if not data:
                raise ConnectionError("the peer closed the connection within the TLS handshake")
            got += data
        return got

    def _wait(self, events: int, deadline: Deadline) -> None:
        if deadline.expired():
            raise TimeoutError("no TLS handshake in time")
        poll_for(events, self._sock.fileno()).poll(min(deadline.remaining(), 1.0) * 1000)

    # ---- the calls of a socket

    def fileno(self) -> int:
        """Return the number of the file, or -1 if it is closed."""
        return self._sock.fileno()

    def recv(self, bufsize: int) -> bytes:
        """Return what is complete of the next `bufsize` encrypted bytes; nothing is the end."""
        with self._within:
            data = self._sock.recv(bufsize)
            if not data:
                return b""
            self._incoming.write(data)
            pieces = self._decrypt()
            if self._outgoing.pending:
                # TLS has something to say itself: to a peer that changed its keys.
                self._answer()
            return b"".join(pieces)

    def _decrypt(self) -> list[bytes]:
        pieces: list[bytes] = []
        try:
            while self._incoming.pending:
                piece = self._tls.read(_RECORD)
                pieces.append(piece)
                if not piece:
                    # The peer has said that it ends.
                    break
        except ssl.SSLWantReadError:
            # The rest of a record is on its way.
            if not pieces:
                raise BlockingIOError("no record is complete") from None
        return pieces

    def _answer(self) -> None:
        self._unsent += self._outgoing.read()
        try:
            self._push()
        except BlockingIOError:
            # The next `send` takes it along.
            pass

    def send(self, data: Buffer) -> int:
        """Send some of it; return how much, once the peer has taken all of that.

        After a BlockingIOError it is to be called again, with data that begins the same.
        """
        with self._within:
            self._encrypt(memoryview(data)[:_PORTION])
            self._push()
            sent, self._owed = self._owed, 0
            return sent

    def _encrypt(self, data: memoryview) -> None:
        # Called again, it goes on behind what is owed.
        while self._owed < len(data):
            self._owed += self._tls.write(data[self._owed :])
        self._unsent += self._outgoing.read()

    def _push(self) -> None:
        while self._unsent:
            sent = self._sock.send(self._unsent)
            self._unsent = self._unsent[sent:]

    def sendmsg(self, buffers: Iterable[Buffer]) -> int:
        """Send some of the first one, as `send`."""
        for each in buffers:
            return self.send(each)
        return 0

    def shutdown(self, how: int) -> None:
        """End the connection: who polls it wakes up."""
        self._sock.shutdown(how)

    def detach(self) -> int:
        """Return the descriptor and forget it; takes no lock, for a forked child."""
        return self._sock.detach()

    def close(self) -> None:
        """Close; nobody else is within a call."""
        with self._within:
            self._sock.close()
