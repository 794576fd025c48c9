"""Sockets of the asyncio twin: connect to one of the addresses of a host.

`js_sync/runtime/sockets.py` has the same function, and others that only threads need.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from twinstream.core.connect.addresses import Shuffle, resolvable, spread
from twinstream.core.deadline import Deadline

__all__ = ["connected"]


async def connected(
    host: str, port: int, deadline: Deadline, shuffle: Shuffle | None
) -> socket.socket:
    """Connect to a host and return the non-blocking socket. Raises OSError.

    The function tries one address of the host after another. All addresses share the time until the
    deadline, so that each is tried.
    """
    loop = asyncio.get_running_loop()
    found = spread(await _resolved(loop, host, port), shuffle)
    trouble = OSError(f"{host} has no address")
    for turn, (*kind, _, address) in enumerate(found):
        try:
            async with asyncio.timeout(deadline.remaining() / (len(found) - turn)):
                return await _connected_to(loop, kind, address)
        except OSError as error:
            trouble = error
    if isinstance(trouble, TimeoutError):
        raise TimeoutError("no connection in time") from None
    raise trouble


async def _resolved(loop: asyncio.AbstractEventLoop, host: str, port: int) -> Any:
    """Return the addresses of a host in the format of `getaddrinfo`."""
    name = resolvable(host)
    try:
        # A numeric address needs no lookup. A lookup would start a thread in the executor of the
        # loop, and that thread would stay alive until the loop is closed.
        return socket.getaddrinfo(
            name, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        )
    except socket.gaierror:
        return await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)


async def _connected_to(
    loop: asyncio.AbstractEventLoop, kind: list[Any], address: tuple[Any, ...]
) -> socket.socket:
    sock = socket.socket(*kind)
    try:
        sock.setblocking(False)
        await loop.sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock
