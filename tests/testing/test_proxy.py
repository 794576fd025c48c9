"""The proxy that makes the network bad, between plain sockets."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from twinstream.testing import Proxy

PATIENCE = 120.0


class Line:
    """A client behind a proxy, and the far end that a server would have."""

    def __init__(self, proxy: Proxy, listener: socket.socket) -> None:
        host, port = proxy.url.removeprefix("nats://").split(":")
        self.near = socket.create_connection((host, int(port)), timeout=PATIENCE)
        self.far, _ = listener.accept()
        self.far.settimeout(PATIENCE)

    def close(self) -> None:
        self.near.close()
        self.far.close()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(PATIENCE)
        yield made


@pytest.fixture
def proxy(listener: socket.socket) -> Iterator[Proxy]:
    with Proxy(f"nats://127.0.0.1:{listener.getsockname()[1]}") as running:
        yield running


@pytest.fixture
def line(proxy: Proxy, listener: socket.socket) -> Iterator[Line]:
    made = Line(proxy, listener)
    yield made
    made.close()


def whole(sock: socket.socket) -> bytes:
    """Return all that comes until the other side closes."""
    pieces: list[bytes] = []
    while piece := sock.recv(1 << 16):
        pieces.append(piece)
    return b"".join(pieces)


def hears_nothing(sock: socket.socket) -> bool:
    sock.settimeout(0.2)
    try:
        sock.recv(1)
    except TimeoutError:
        return True
    finally:
        sock.settimeout(PATIENCE)
    return False


def test_bytes_and_the_end_go_both_ways(proxy: Proxy, line: Line) -> None:
    line.near.sendall(b"ask")
    assert line.far.recv(10) == b"ask"
    line.far.sendall(b"answer")
    line.far.close()
    assert whole(line.near) == b"answer"
    assert proxy.accepted == 1


@pytest.mark.parametrize("chunk", [7, 1 << 16])
def test_what_is_on_the_way_arrives_before_the_end(proxy: Proxy, line: Line, chunk: int) -> None:
    proxy.delay, proxy.chunk = 0.1, chunk
    began = time.monotonic()
    line.far.sendall(b"the last words" * 20)
    line.far.close()
    assert whole(line.near) == b"the last words" * 20
    assert time.monotonic() - began >= 0.1


def test_a_black_hole_swallows_the_end_too(proxy: Proxy, line: Line) -> None:
    proxy.black_hole = True
    line.far.sendall(b"x")
    line.far.close()
    assert hears_nothing(line.near)
    proxy.black_hole = False
    assert whole(line.near) == b""


def test_silent_server_still_reads(proxy: Proxy, line: Line) -> None:
    proxy.mute = True
    line.near.sendall(b"ask")
    assert line.far.recv(10) == b"ask"
    line.far.sendall(b"lost")
    assert hears_nothing(line.near)
    proxy.mute = False
    line.far.sendall(b"heard")
    assert line.near.recv(10) == b"heard"


def test_a_cut_ends_the_connections_of_the_moment(
    proxy: Proxy, line: Line, listener: socket.socket
) -> None:
    proxy.cut()
    assert whole(line.near) == whole(line.far) == b""
    after = Line(proxy, listener)
    after.near.sendall(b"x")
    assert after.far.recv(1) == b"x"
    after.close()


def test_refused_client_is_closed_at_once(proxy: Proxy, line: Line) -> None:
    proxy.refuse = True
    host, port = proxy.url.removeprefix("nats://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as turned_away:
        assert whole(turned_away) == b""
    line.near.sendall(b"x")
    assert line.far.recv(1) == b"x"


def test_without_a_server_connections_are_closed(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    listener.close()
    with Proxy(f"nats://127.0.0.1:{port}") as proxy:
        host, own = proxy.url.removeprefix("nats://").split(":")
        with socket.create_connection((host, int(own)), timeout=PATIENCE) as client:
            assert whole(client) == b""
    proxy.stop()
