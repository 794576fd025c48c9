"""Find free ports for servers, outside the ephemeral range.

When a server with an ephemeral port is killed, its port is free, and the next connection of any
program on the machine may get it. Then the server cannot restart. So ports are chosen below the
ephemeral range (from 32768 up on Linux, higher on other systems).
"""

from __future__ import annotations

import os
import socket
import threading
from contextlib import ExitStack
from itertools import count
from typing import Final

from twinstream.testing.config import HOST

_FIRST: Final = 15000
# The ports are divided into `_LANES` ranges of `_LANE` ports, and each process has one of its own.
# Otherwise another process could get the port of a server that is down for a moment. Its clients,
# and the other nodes of its cluster, would then connect to a server of that process.
_LANES: Final = 80
_LANE: Final = 200
_turn: Final = count()
_choosing: Final = threading.Lock()
# The process ID, and the socket that keeps the range for this process. A fork gets another range.
_kept: tuple[int, socket.socket] | None = None


def free_ports(number: int) -> list[int]:
    """Return `number` unused ports on loopback.

    Ports that earlier calls returned are reused only after all other ports in the range of this
    process were tried. Raises `OSError` if there are not enough free ports.
    """
    first = _own_range() + 1
    ports: list[int] = []
    with ExitStack() as stack:
        for _ in range(_LANE - 1):
            holder = stack.enter_context(socket.socket())
            port = first + next(_turn) % (_LANE - 1)
            try:
                holder.bind((HOST, port))
            except OSError:
                continue
            ports.append(port)
            if len(ports) == number:
                return ports
    raise OSError(f"no {number} free ports from {first} to {first + _LANE - 2}")


def _own_range() -> int:
    """Return the first port of the range of this process, which is bound while the process runs.

    Raises `OSError` if other processes have all ranges.
    """
    global _kept
    with _choosing:
        if _kept is None or _kept[0] != os.getpid():
            _kept = os.getpid(), _bound()
        port: int = _kept[1].getsockname()[1]
        return port


def _bound() -> socket.socket:
    for number in range(_LANES):
        # Processes that start at the same time begin with different ranges.
        lane = (os.getpid() + number) % _LANES
        guard = socket.socket()
        try:
            guard.bind((HOST, _FIRST + lane * _LANE))
        except OSError:
            guard.close()
        else:
            return guard
    last = _FIRST + _LANES * _LANE - 1
    raise OSError(f"other processes use all ranges of ports from {_FIRST} to {last}")
