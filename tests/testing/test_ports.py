"""Ports for servers: free ones, that a connection does not get by chance."""

from __future__ import annotations

import socket
import sys
from contextlib import ExitStack
from subprocess import PIPE, Popen, run
from typing import Final

import pytest

from twinstream.testing.config import HOST
from twinstream.testing.ports import free_ports

_ASK: Final = """
from twinstream.testing.ports import free_ports
print(*free_ports(150), flush=True)
input()
"""


def test_ports_are_free_and_differ() -> None:
    found = free_ports(3) + free_ports(3)
    assert len(set(found)) == 6
    for port in found:
        with socket.socket() as holder:
            holder.bind((HOST, port))


def test_ports_lie_below_those_that_systems_hand_out() -> None:
    with socket.socket() as holder:
        holder.bind((HOST, 0))
        assert max(free_ports(10)) < holder.getsockname()[1]


def test_used_port_is_skipped() -> None:
    with socket.socket() as holder:
        [taken] = free_ports(1)
        holder.bind((HOST, taken))
        # More than the range of a process has, so that each of its ports has its turn.
        for _ in range(10):
            assert taken not in free_ports(20)
        with pytest.raises(OSError, match="no 200 free ports"):
            free_ports(200)


def test_processes_share_no_ports() -> None:
    """Not even ports of a server that is down at the moment."""
    found: set[int] = set()
    with ExitStack() as stack:
        for _ in range(6):
            asking = Popen([sys.executable, "-c", _ASK], stdin=PIPE, stdout=PIPE, text=True)
            stack.enter_context(asking)
            stack.callback(asking.kill)
            assert asking.stdout is not None
            ports = {int(each) for each in asking.stdout.readline().split()}
            assert len(ports) == 150
            assert not ports & found
            found |= ports


def test_the_end_of_a_process_says_nothing_of_its_ports() -> None:
    ask = "from twinstream.testing.ports import free_ports; free_ports(1)"
    done = run([sys.executable, "-X", "dev", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stderr == ""
