"""Find free ports for servers, outside the ephemeral range.

When a server with an ephemeral port is killed, its port is free, and the next connection of any
program on the machine may get it. Then the server cannot restart. So ports are chosen below the
ephemeral range (from 32768 up on Linux, higher on other systems).
"""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from itertools import count
from typing import Final

from twinstream.testing.config import HOST

_FIRST: Final = 15000
# The ports are divided into `_LANES` ranges of `_LANE` ports. A process chooses its range by its
# process ID, so that concurrent processes, such as the workers of a test run, use different ranges.
_LANES: Final = 80
_LANE: Final = 200
_turn: Final = count()


def free_ports(number: int) -> list[int]:
    """Return `number` unused ports on loopback.

    Ports that earlier calls returned are reused only after all other ports in the range of this
    process were tried. Raises `OSError` if there are not enough free ports.
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
