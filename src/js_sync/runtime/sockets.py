"""Functions for the sockets of the blocking twin: connect, poll, and send several pieces."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterable
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, Protocol

from js_sync.runtime.concurrency import LONGEST
from js_sync.runtime.polling import poll_for
from twinstream.core.client.addresses import Shuffle, resolvable, spread
from twinstream.core.deadline import Deadline
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.on_failure import OnFailure
from twinstream.core.wire.write_buffers import behind

if TYPE_CHECKING:
    from ssl import SSLContext

    from typing_extensions import Buffer

    from js_sync.runtime.tls_socket import TlsSocket

__all__ = ["Wire", "connected", "has_bytes", "has_ended", "secured", "send"]

# The poll event for a peer that has closed its side, even if there are unread bytes. Some systems
# lack this event. With 0, a poll reports only connections that are closed in both directions.
_END: Final[int] = getattr(select, "POLLRDHUP", 0)


class Wire(Protocol):
    """The interface of a socket, with or without TLS. No method waits for the peer.

    Each method may raise OSError.
    """

    def fileno(self) -> int:
        """Return the file descriptor, or -1 if it is closed."""
        ...

    def recv(self, bufsize: int, /) -> bytes:
        """Return available bytes. The result is empty at the end of the stream."""
        ...

    def send(self, data: Buffer, /) -> int:
        """Send a part of the data and return the size of this part."""
        ...

    def sendmsg(self, buffers: Iterable[Buffer], /) -> int:
        """Send a part of the data and return the size of this part."""
        ...

    def shutdown(self, how: int, /) -> None:
        """Shut down the connection, which ends a poll of the socket."""
        ...

    def detach(self) -> int:
        """Detach the file descriptor and return it; -1 if it is closed. Takes no lock."""
        ...

    def close(self) -> None:
        """Close the socket."""
        ...


def connected(
    host: str, port: int, deadline: Deadline, shuffle: Shuffle | None = None
) -> socket.socket:
    """Connect to a host and return the non-blocking socket. Raises OSError.

    The function tries one address of the host after another. All addresses share the time until the
    deadline, so that each is tried.
    """
    found = spread(_resolved(host, port, deadline), shuffle)
    trouble = OSError(f"{host} has no address")
    for turn, (*kind, _, address) in enumerate(found):
        # At least 1 ms, because a socket timeout of 0 means non-blocking.
        share = max(0.001, min(deadline.remaining() / (len(found) - turn), LONGEST))
        if HOOKS:
            reached("link: before connect", share)
        try:
            return _connected_to(kind, address, share)
        except OSError as error:
            trouble = error
    if isinstance(trouble, TimeoutError):
        raise TimeoutError("no connection in time") from None
    raise trouble


def _resolved(host: str, port: int, deadline: Deadline) -> list[Any]:
    """Return the addresses of a host in the format of `getaddrinfo`. Raises OSError."""
    name = resolvable(host)
    try:
        # A numeric address needs no lookup.
        return socket.getaddrinfo(
            name, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        )
    except socket.gaierror:
        pass
    found: list[Any] = []
    failed: list[Exception] = []
    ended = Event()

    def look_up() -> None:
        try:
            found.extend(socket.getaddrinfo(name, port, type=socket.SOCK_STREAM))
        except Exception as error:
            failed.append(error)
        ended.set()

    # The lookup cannot be interrupted. The end of the program does not wait for a daemon thread.
    Thread(target=look_up, daemon=True).start()
    if not ended.wait(min(deadline.remaining(), LONGEST)):
        raise TimeoutError(f"the name {host} was not resolved in time")
    if failed:
        raise failed[0]
    return found


def _connected_to(kind: list[Any], address: tuple[Any, ...], timeout: float) -> socket.socket:
    sock = socket.socket(*kind)
    with OnFailure(sock.close):
        sock.settimeout(timeout)
        sock.connect(address)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
    return sock


def secured(
    sock: socket.socket, tls: SSLContext, server_name: str, deadline: Deadline
) -> TlsSocket:
    """Switch a socket to TLS and return the new socket.

    If this fails, the function closes the connection and raises OSError.
    """
    # Importing ssl takes 10 ms. Programs without TLS do not import it.
    from js_sync.runtime.tls_socket import TlsSocket

    # Create a new socket object, because a thread may still use the old one. `detach` closes the
    # old object without closing the connection.
    inner = socket.socket(fileno=sock.detach())
    with OnFailure(inner.close):
        inner.setblocking(False)
        secure = TlsSocket(inner, tls, server_name)
        secure.shake_hands(deadline)
    return secure


def has_bytes(sock: Wire) -> bool:
    """Return whether a read would return at once, with bytes or the end of the stream.

    False for a closed socket.
    """
    number = sock.fileno()
    if number < 0:
        return False
    return bool(poll_for(select.POLLIN, number).poll(0))


def has_ended(sock: Wire) -> bool:
    """Return whether the peer has closed the connection, or the socket is closed or broken.

    There may be unread bytes.
    """
    number = sock.fileno()
    return number < 0 or bool(poll_for(_END, number).poll(0))


def send(sock: Wire, rest: list[memoryview], block: bool) -> list[memoryview]:
    """Send data and return the part that was not sent. Raises OSError.

    With `block`, the function waits until everything is sent, or another thread closes the socket.
    """
    while rest:
        try:
            rest = behind(rest, sock.sendmsg(rest))
        except BlockingIOError:
            number = sock.fileno()
            if not block or number < 0:
                # A negative number: another thread has just closed the socket.
                return rest
            # Limit each poll to a second. If another thread closes the socket, the poll may never
            # report it as writable.
            poll_for(select.POLLOUT, number).poll(1000)
    return rest
