"""Sockets of the blocking twin: connecting, polling, and sending several pieces."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from js_sync.runtime.concurrency import LONGEST
from js_sync.runtime.polling import poll_for
from twinstream.core.base.hooks import HOOKS, reached
from twinstream.core.connect.addresses import Shuffle, resolvable, spread
from twinstream.core.deadline import Deadline
from twinstream.core.wire.write_buffers import behind
from twinstream.errors import BadArgument

if TYPE_CHECKING:
    from ssl import SSLContext

    from typing_extensions import Buffer

    from js_sync.runtime.tls_socket import TlsSocket

__all__ = ["Wire", "connected", "has_bytes", "has_ended", "keeping", "secured", "send"]

# The poll event of a peer that closed its side, even with unread bytes. Systems without it detect
# only a connection that is closed in both directions.
_END: Final[int] = getattr(select, "POLLRDHUP", 0)


class Wire(Protocol):
    """The socket interface that a link needs, with or without TLS; each call may raise OSError."""

    def fileno(self) -> int:
        """Return the descriptor, or -1 if it is closed."""
        ...

    def recv(self, bufsize: int, /) -> bytes:
        """Return available bytes; empty at the end. Non-blocking, like all methods."""
        ...

    def send(self, data: Buffer, /) -> int:
        """Send some of the data; return how much."""
        ...

    def sendmsg(self, buffers: Iterable[Buffer], /) -> int:
        """Send some of the data; return how much."""
        ...

    def shutdown(self, how: int, /) -> None:
        """Shut down the connection, which wakes up a poll of it."""
        ...

    def detach(self) -> int:
        """Detach and return the descriptor; -1 if it is closed. Takes no lock."""
        ...

    def close(self) -> None:
        """Close the socket."""
        ...


def connected(
    host: str, port: int, deadline: Deadline, shuffle: Shuffle | None = None
) -> socket.socket:
    """Return a connected, non-blocking socket; raises OSError.

    The addresses of a host share the remaining time, so that each of them is tried.
    """
    addresses = socket.getaddrinfo(resolvable(host), port, type=socket.SOCK_STREAM)
    found = spread(addresses, shuffle)
    trouble = OSError(f"{host} has no address")
    for turn, (*kind, _, address) in enumerate(found):
        # Not 0: a socket timeout of 0 means non-blocking.
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


def _connected_to(kind: list[Any], address: tuple[Any, ...], timeout: float) -> socket.socket:
    sock = socket.socket(*kind)
    try:
        sock.settimeout(timeout)
        sock.connect(address)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


def secured(
    sock: socket.socket, tls: SSLContext, server_name: str, deadline: Deadline
) -> TlsSocket:
    """Switch to TLS; raises OSError, with the socket closed."""
    # Imported here: importing ssl takes 10 ms, which programs without TLS should not pay.
    from js_sync.runtime.tls_socket import TlsSocket

    # A new object: a thread that still reads the old one finds it closed.
    inner = socket.socket(fileno=sock.detach())
    try:
        inner.setblocking(False)
        secure = TlsSocket(inner, tls, server_name)
        secure.shake_hands(deadline)
    except BaseException:
        inner.close()
        raise
    return secure


class Keeping(NamedTuple):
    """The tools for busy-polling waits; see `js_sync.runtime.busy_poll`."""

    socket: Callable[[socket.socket], socket.socket]
    give_way: Callable[[], object]


def keeping() -> Keeping:
    """Return the tools; raises `BadArgument` if Python lacks ctypes, which only they need."""
    try:
        from js_sync.runtime.busy_poll import KeepingSocket, give_way
    except ImportError as error:
        raise BadArgument(f"busy_poll needs ctypes, which this Python lacks: {error}") from error
    return Keeping(KeepingSocket, give_way)


def has_bytes(sock: Wire) -> bool:
    """Return whether there are bytes to read; False for a closed socket."""
    number = sock.fileno()
    if number < 0:
        return False
    return bool(poll_for(select.POLLIN, number).poll(0))


def has_ended(sock: Wire) -> bool:
    """Return whether the peer closed the connection or it broke; there may be unread bytes."""
    number = sock.fileno()
    return number < 0 or bool(poll_for(_END, number).poll(0))


def send(sock: Wire, rest: list[memoryview], block: bool) -> list[memoryview]:
    """Send; return what is left, if `block` is off or the socket was closed.

    Raises OSError.
    """
    while rest:
        try:
            rest = behind(rest, sock.sendmsg(rest))
        except BlockingIOError:
            number = sock.fileno()
            if not block or number < 0:
                # Below 0: another thread has just closed the socket.
                return rest
            # Polled in slices, because a socket that another thread closes never becomes writable.
            poll_for(select.POLLOUT, number).poll(1000)
    return rest
