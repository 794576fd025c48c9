"""Ports for servers: free ones, that a connection does not get by chance."""

from __future__ import annotations

import socket

import pytest

from tests.tuned import Tuned
from twinstream.testing.config import HOST
from twinstream.testing.ports import free_ports


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


def test_used_port_is_skipped(tuned: Tuned) -> None:
    tuned("port lane", 4)
    with socket.socket() as holder:
        [taken] = free_ports(1)
        holder.bind((HOST, taken))
        assert taken not in free_ports(3)
        with pytest.raises(OSError, match="no 4 free ports"):
            free_ports(4)
