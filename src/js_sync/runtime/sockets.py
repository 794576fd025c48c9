"""The sockets of the blocking twin: making one, and sending all of several pieces."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from twinstream.core.connect.addresses import Shuffle, spread
from twinstream.core.deadline import Deadline
from twinstream.errors import BadArgument
from twinstream.core.wire.write_buffers import behind
from js_sync.runtime.concurrency import LONGEST

if TYPE_CHECKING:
    from ssl import SSLContext

    from typing_extensions import Buffer

    from js_sync.runtime.tls_socket import TlsSocket

__all__ = ["Wire", "connected", "has_bytes", "has_ended", "keeping", "poll_for", "secured", "send"]

# The event of a peer that sends no more, also while bytes are unread. Where a system lacks it, only
# a connection that is closed in both directions is noticed so.
_END: Final[int] = getattr(select, "POLLRDHUP", 0)


class Wire(Protocol):
    """What a link asks of its socket, with TLS or without; each call raises OSError."""

    def fileno(self) -> int:
        """Return the number of the file, or -1 if it is closed."""
        ...

    def recv(self, bufsize: int, /) -> bytes:
        """Return what is here; nothing is the end. Never waits, as all of these."""
        ...

    def send(self, data: Buffer, /) -> int:
        """Send some of it; return how much."""
        ...

    def sendmsg(self, buffers: Iterable[Buffer], /) -> int:
        """Send some of these; return how much."""
        ...

    def shutdown(self, how: int, /) -> None:
        """End the connection: who polls it wakes up."""
        ...

    def detach(self) -> int:
        """Return the descriptor and forget it; -1 if it is closed. Takes no lock."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


def connected(
    host: str, port: int, deadline: Deadline, shuffle: Shuffle | None = None
) -> socket.socket:
    """Return a socket with a connection, which never waits; raises OSError.

    The addresses of a name share what is left of the time, so that each has its turn.
    """
    found = spread(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), shuffle)
    trouble = OSError(f"{host} has no address")
    for turn, (*kind, _, address) in enumerate(found):
        # A socket's timeout of 0 means "do not block", which is not meant.
        share = max(0.001, min(deadline.remaining() / (len(found) - turn), LONGEST))
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
    """Go on with TLS; raises OSError, with the socket closed."""
    # Here, because importing ssl takes 10 ms, which programs without TLS should not pay.
    from js_sync.runtime.tls_socket import TlsSocket

    # Another object: a thread that still reads the one that was given finds it closed.
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
    """What waits need that do not sleep; see `js_sync.runtime.busy_poll`."""

    socket: Callable[[socket.socket], socket.socket]
    give_way: Callable[[], object]


def keeping() -> Keeping:
    """Return it; raises `BadArgument` where Python has no ctypes, which nobody else needs."""
    try:
        from js_sync.runtime.busy_poll import KeepingSocket, give_way
    except ImportError as error:
        raise BadArgument(f"busy_poll needs ctypes, which this Python lacks: {error}") from error
    return Keeping(KeepingSocket, give_way)


def has_bytes(sock: Wire) -> bool:
    """Tell whether bytes are there to read; a socket that is closed has none."""
    number = sock.fileno()
    if number < 0:
        return False
    return bool(poll_for(select.POLLIN, number).poll(0))


def has_ended(sock: Wire) -> bool:
    """Return whether the peer closed the connection or it broke; bytes may be left to read."""
    number = sock.fileno()
    return number < 0 or bool(poll_for(_END, number).poll(0))


def poll_for(events: int, *numbers: int) -> select.poll:
    """Return what waits for events of some file descriptors."""
    poll = select.poll()
    for number in numbers:
        poll.register(number, events)
    return poll


def send(sock: Wire, rest: list[memoryview], block: bool) -> list[memoryview]:
    """Send, and return what the peer did not take, if `block` is off or the socket was closed.

    Raises OSError.
    """
    while rest:
        try:
            rest = behind(rest, sock.sendmsg(rest))
        except BlockingIOError:
            number = sock.fileno()
            if not block or number < 0:
                # Below 0: another thread closed it just now.
                return rest
            # In slices: a socket that another thread closes never gets writable.
            poll_for(select.POLLOUT, number).poll(1000)
    return rest
