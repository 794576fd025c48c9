"""Sockets of the asyncio twin: connect to one of the addresses of a host.

`js_sync/runtime/sockets.py` has the same function, and others that only threads need.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from threading import Thread
from typing import Any

from twinstream.core.client.addresses import Shuffle, resolvable, spread
from twinstream.core.deadline import Deadline
from twinstream.core.on_failure import OnFailure

__all__ = ["connected"]


async def connected(
    host: str, port: int, deadline: Deadline, shuffle: Shuffle | None
) -> socket.socket:
    """Connect to a host and return the non-blocking socket. Raises OSError.

    The function tries one address of the host after another. All addresses share the time until the
    deadline, so that each is tried.
    """
    loop = asyncio.get_running_loop()
    found = spread(await _resolved(loop, host, port, deadline), shuffle)
    failure = OSError(f"{host} has no address")
    for turn, (*kind, _, address) in enumerate(found):
        try:
            async with asyncio.timeout(deadline.remaining() / (len(found) - turn)):
                return await _connected_to(loop, kind, address)
        except OSError as error:
            failure = error
    if isinstance(failure, TimeoutError):
        raise TimeoutError("no connection in time") from None
    raise failure


async def _resolved(
    loop: asyncio.AbstractEventLoop, host: str, port: int, deadline: Deadline
) -> list[Any]:
    """Return the addresses of a host in the format of `getaddrinfo`. Raises OSError."""
    name = resolvable(host)
    try:
        # A numeric address needs no lookup.
        return socket.getaddrinfo(
            name, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        )
    except socket.gaierror:
        pass
    # The lookup cannot be interrupted. The end of the loop and of the program would wait for a
    # thread of the loop's executor, but not for a daemon thread.
    answer: asyncio.Future[list[Any]] = loop.create_future()
    Thread(target=_look_up, args=(loop, answer, name, port), daemon=True).start()
    try:
        async with asyncio.timeout(deadline.remaining()):
            return await answer
    except TimeoutError:
        raise TimeoutError(f"the name {host} was not resolved in time") from None


def _look_up(
    loop: asyncio.AbstractEventLoop, answer: asyncio.Future[list[Any]], name: str, port: int
) -> None:
    """Resolve a host name in a thread, and set the result of `answer` in its event loop."""
    found: list[Any] = []
    failure: Exception | None = None
    try:
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except Exception as error:
        failure = error

    def settle() -> None:
        if answer.done():
            return
        if failure is None:
            answer.set_result(found)
        else:
            answer.set_exception(failure)

    # The loop may have been closed meanwhile.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(settle)


async def _connected_to(
    loop: asyncio.AbstractEventLoop, kind: list[Any], address: tuple[Any, ...]
) -> socket.socket:
    sock = socket.socket(*kind)
    with OnFailure(sock.close):
        sock.setblocking(False)
        await loop.sock_connect(sock, address)
    return sock
