"""The sockets of the blocking twin: time-outs, TLS, and what their errors mean."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from js_core.deadline import Deadline
from js_core.errors import BadArgument
from js_core.pieces import behind
from js_sync._io import LONGEST

if TYPE_CHECKING:
    from ssl import SSLContext
    from threading import Lock

__all__ = ["connected", "has_bytes", "keeping", "not_ready", "poll_for", "send", "wrap"]

# What TLS raises on a socket that is not ready. By name, because importing ssl takes 10 ms, which
# programs without TLS should not pay.
_TLS_READ: Final = "SSLWantReadError"
_TLS_WRITE: Final = "SSLWantWriteError"


def connected(host: str, port: int, deadline: Deadline) -> socket.socket:
    """Return a socket with a connection; raises OSError."""
    try:
        sock = socket.create_connection((host, port), timeout=_patience(deadline))
    except TimeoutError:
        raise TimeoutError("no connection in time") from None
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _patience(deadline: Deadline) -> float:
    # A socket's timeout of 0 means "do not block", which is not meant.
    return max(0.001, min(deadline.remaining(), LONGEST))


def wrap(
    sock: socket.socket, tls: SSLContext, server_name: str, deadline: Deadline
) -> socket.socket:
    """Go on with TLS; raises OSError, with the socket closed."""
    sock.settimeout(_patience(deadline))
    try:
        return tls.wrap_socket(sock, server_hostname=server_name)
    except BaseException as error:
        sock.close()
        if isinstance(error, TimeoutError):
            raise TimeoutError("no TLS handshake in time") from None
        raise


class Keeping(NamedTuple):
    """What waits need that do not sleep; see `js_sync._keeping`."""

    socket: Callable[[socket.socket], socket.socket]
    give_way: Callable[[], object]


def keeping() -> Keeping:
    """Return it; raises `BadArgument` where Python has no ctypes, which nobody else needs."""
    try:
        from js_sync._keeping import KeepingSocket, give_way
    except ImportError as error:
        raise BadArgument(f"busy_poll needs ctypes, which this Python lacks: {error}") from error
    return Keeping(KeepingSocket, give_way)


def has_bytes(sock: socket.socket) -> bool:
    """Tell whether bytes are there to read; a socket that is closed has none."""
    number = sock.fileno()
    if number < 0:
        return False
    return bool(poll_for(select.POLLIN, number).poll(0))


def poll_for(events: int, *numbers: int) -> select.poll:
    """Return what waits for events of some file descriptors."""
    poll = select.poll()
    for number in numbers:
        poll.register(number, events)
    return poll


def not_ready(error: OSError) -> bool:
    """Tell whether an error says only that a socket is not ready, and nothing is wrong."""
    return isinstance(error, BlockingIOError) or type(error).__name__ in {_TLS_READ, _TLS_WRITE}


def send(
    sock: socket.socket, rest: list[memoryview], entering: Lock | None, block: bool
) -> list[memoryview]:
    """Send, and return what the peer did not take, if `block` is off or the socket was closed.

    With TLS `entering` is held in each call, and the first piece is sent by itself. Raises OSError.
    """
    while rest:
        try:
            if entering is not None:
                with entering:
                    sent = sock.send(rest[0])
            else:
                sent = sock.sendmsg(rest)
            rest = behind(rest, sent)
        except OSError as error:
            if not not_ready(error):
                raise
            number = sock.fileno()
            if not block or number < 0:
                # Below 0: another thread closed it just now.
                return rest
            events = select.POLLIN if _wants_to_read(error) else select.POLLOUT
            # In slices: a socket that another thread closes never gets writable.
            poll_for(events, number).poll(1000)
    return rest


def _wants_to_read(error: OSError) -> bool:
    """Tell whether it is not ready because TLS must read first, also in order to write."""
    return type(error).__name__ == _TLS_READ
