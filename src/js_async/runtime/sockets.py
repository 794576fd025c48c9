"""The sockets of the asyncio twin: making a connection to one of the addresses of a name.

`js_sync/_sockets.py` has the same function, and what else threads need.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from twinstream.core.connect.addresses import Shuffle, spread
from twinstream.core.deadline import Deadline

__all__ = ["connected"]


async def connected(
    host: str, port: int, deadline: Deadline, shuffle: Shuffle | None
) -> socket.socket:
    """Return a socket with a connection, which never waits; raises OSError.

    The addresses of a name share what is left of the time, so that each has its turn.
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
    """Return the addresses of a host, as `getaddrinfo` does."""
    try:
        # A number needs no name server, and so no thread, which would stay as long as the loop.
        return socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        )
    except socket.gaierror:
        return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)


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
