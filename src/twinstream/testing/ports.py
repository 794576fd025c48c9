"""Free ports for servers, outside the ephemeral range.

An ephemeral port is free again when its server is killed, and the next connection of any program on
the machine may get it: then the server cannot restart. So ports are chosen below the ephemeral
range (from 32768 up on Linux, higher elsewhere).
"""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from itertools import count
from typing import Final

from twinstream.testing.config import HOST

_FIRST: Final = 15000
# Concurrent programs, such as workers of a test run, choose from different lanes.
_LANES: Final = 80
_LANE: Final = 200
_turn: Final = count()


def free_ports(number: int) -> list[int]:
    """Return unused ports on loopback; raises :class:`OSError` if there are not enough.

    The ports differ from those returned before, as long as there are others.
    """
    first = _FIRST + os.getpid() % _LANES * _LANE
    ports: list[int] = []
    with ExitStack() as stack:
        for _ in range(_LANE):
            holder = stack.enter_context(socket.socket())
            port = first + next(_turn) % _LANE
            try:
                holder.bind((HOST, port))
            except OSError:
                continue
            ports.append(port)
            if len(ports) == number:
                return ports
    raise OSError(f"no {number} free ports from {first} to {first + _LANE - 1}")
