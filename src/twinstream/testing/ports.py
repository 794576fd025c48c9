"""Ports for servers, from a range that nobody else is given ports from.

A port that the system hands out is free again when its server is killed, and the next connection
of any program on the machine may get it: then the server cannot come back. So ports are picked
below those that systems hand out by themselves (from 32768 up on Linux, higher elsewhere).
"""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from itertools import count
from typing import Final

from twinstream.testing.config import HOST

_FIRST: Final = 15000
# Programs that run side by side, such as workers of a test run, pick from lanes of their own.
_LANES: Final = 80
_LANE: Final = 200
_turn: Final = count()


def free_ports(number: int) -> list[int]:
    """Return ports on loopback that nobody uses; raises :class:`OSError` where there are none.

    They differ from those returned before, as long as there are others.
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
