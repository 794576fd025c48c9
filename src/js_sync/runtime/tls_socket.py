"""TLS on a non-blocking socket.

OpenSSL only encrypts and decrypts data in memory. This module reads and writes the socket. An
`ssl.SSLSocket` makes two system calls for each record, and the records of a server are short (1 KiB
at first, 16 KiB at most). This module needs one read for all available data. So reading takes 0.6
of the CPU time of an `ssl.SSLSocket`, and publishing many messages takes 0.7.
"""

from __future__ import annotations

import select
import ssl
from collections.abc import Iterable
from threading import RLock
from typing import TYPE_CHECKING, Final

from js_sync.runtime.polling import poll_for
from twinstream.core.deadline import Deadline

if TYPE_CHECKING:
    import socket

    from typing_extensions import Buffer

__all__ = ["TlsSocket"]

# Maximum size of a record (bytes).
_RECORD: Final = 1 << 14
# Maximum data to encrypt before it is sent (bytes).
_PORTION: Final = 1 << 16
# Size of the header of a record (bytes).
_HEADER: Final = 5


class TlsSocket:
    """A TLS connection with the methods of a non-blocking socket. Each method may raise OSError.

    Its lock is reentrant, because a signal handler may close the `Link` during a call.
    """

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, server_name: str) -> None:
        self._sock: Final = sock
        self._within: Final = RLock()
        self._incoming: Final = ssl.MemoryBIO()
        self._outgoing: Final = ssl.MemoryBIO()
        self._tls: Final = context.wrap_bio(
            self._incoming, self._outgoing, server_hostname=server_name
        )
        # `_unsent`: encrypted data that was not sent yet. `_owed`: how many bytes of the data of an
        # unfinished `send` are already encrypted.
        self._unsent = b""
        self._owed = 0

    def shake_hands(self, deadline: Deadline) -> None:
        """Perform the TLS handshake, which authenticates the peer. Raises OSError."""
        while True:
            try:
                self._tls.do_handshake()
                return
            except ssl.SSLWantReadError:
                pass
            finally:
                # Also send the data after a failure, because it reports the reason to the peer.
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
        """Read exactly one record, and leave the following bytes in the socket.

        They may be the first data after the handshake, which a poll of the socket must report.
        """
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

    # ---- methods of a socket

    def fileno(self) -> int:
        """Return the file descriptor, or -1 if it is closed."""
        return self._sock.fileno()

    def recv(self, bufsize: int) -> bytes:
        """Read at most `bufsize` encrypted bytes and return the decrypted data; empty at the end.

        Raises BlockingIOError if no record is complete.
        """
        with self._within:
            data = self._sock.recv(bufsize)
            if not data:
                return b""
            self._incoming.write(data)
            pieces = self._decrypt()
            if self._outgoing.pending:
                # TLS has to send data, for example after the peer has changed its keys.
                self._answer()
            return b"".join(pieces)

    def _decrypt(self) -> list[bytes]:
        pieces: list[bytes] = []
        try:
            while self._incoming.pending:
                piece = self._tls.read(_RECORD)
                pieces.append(piece)
                if not piece:
                    # The peer has closed the TLS session.
                    break
        except ssl.SSLWantReadError:
            # The end of a record has not arrived yet.
            if not pieces:
                raise BlockingIOError("no record is complete") from None
        return pieces

    def _answer(self) -> None:
        self._unsent += self._outgoing.read()
        try:
            self._push()
        except BlockingIOError:
            # The next `send` sends this data.
            pass

    def send(self, data: Buffer) -> int:
        """Encrypt and send a part of the data; return the size of this part when all of it is sent.

        After a BlockingIOError, call `send` again with data that begins with the same bytes.
        """
        with self._within:
            self._encrypt(memoryview(data)[:_PORTION])
            self._push()
            sent, self._owed = self._owed, 0
            return sent

    def _encrypt(self, data: memoryview) -> None:
        # After a BlockingIOError, the next call skips the bytes that are already encrypted.
        while self._owed < len(data):
            self._owed += self._tls.write(data[self._owed :])
        self._unsent += self._outgoing.read()

    def _push(self) -> None:
        while self._unsent:
            sent = self._sock.send(self._unsent)
            self._unsent = self._unsent[sent:]

    def sendmsg(self, buffers: Iterable[Buffer]) -> int:
        """Send a part of the first buffer, as `send` does."""
        for each in buffers:
            return self.send(each)
        return 0

    def shutdown(self, how: int) -> None:
        """Shut down the connection, which ends a poll of the socket."""
        self._sock.shutdown(how)

    def detach(self) -> int:
        """Detach the file descriptor and return it.

        Takes no lock, because a forked child calls it. A thread of the parent may have held the
        lock during the fork.
        """
        return self._sock.detach()

    def close(self) -> None:
        """Close the socket when no other thread is within a call."""
        with self._within:
            self._sock.close()
