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
# The process ID and the first port of its range. A fork gets another range.
_kept: tuple[int, int] | None = None


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
    """Return the first port of the range of this process, which stays bound until its end.

    Raises `OSError` if other processes have all ranges.
    """
    global _kept
    with _choosing:
        if _kept is None or _kept[0] != os.getpid():
            _kept = os.getpid(), _bound()
        return _kept[1]


def _bound() -> int:
    for number in range(_LANES):
        # Processes that start at the same time begin with different ranges.
        first = _FIRST + (os.getpid() + number) % _LANES * _LANE
        guard = socket.socket()
        try:
            guard.bind((HOST, first))
        except OSError:
            guard.close()
        else:
            # Closed by the end of the process. A socket object would warn that it was not closed.
            guard.detach()
            return first
    last = _FIRST + _LANES * _LANE - 1
    raise OSError(f"other processes use all ranges of ports from {_FIRST} to {last}")
