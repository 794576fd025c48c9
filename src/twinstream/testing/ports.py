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
# The number of lanes, which are ranges of ports. Concurrent processes, such as the workers of a
# test run, choose ports from different lanes.
_LANES: Final = 80
_LANE: Final = 200
_turn: Final = count()


def free_ports(number: int) -> list[int]:
    """Return unused ports on loopback.

    The ports differ from the ports that earlier calls returned, as long as there are others. Raises
    :class:`OSError` if there are not enough free ports.
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
