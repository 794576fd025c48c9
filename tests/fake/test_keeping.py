"""Sockets that do not release the interpreter lock behave like other sockets."""

from __future__ import annotations

import socket
import struct
import sys
import threading
from contextlib import closing, contextmanager, suppress

import pytest

import js_sync as js
from js_sync.runtime.busy_poll import KeepingSocket
from tests.fake.threads import in_time

LONG = 60.0
"""Seconds after which an interpreter that is kept would be taken away: longer than a test."""
TIMES = 50


@contextmanager
def pair(kind=KeepingSocket):
    near, far = socket.socketpair()
    with kind(near) as sock, far:
        yield sock, far


def test_what_is_sent_arrives_both_ways():
    with pair() as (sock, far):
        assert sock.send(b"one") == 3
        assert far.recv(10) == b"one"
        far.send(b"three")
        assert sock.recv(2) == b"th"
        assert sock.recv(1 << 20) == b"ree"
        for pieces in ([b"one"], [b"tw", memoryview(b"o")], [memoryview(b"x" * 70_000)]):
            whole = b"".join(pieces)
            assert sock.sendmsg(pieces) == len(whole)
            assert far.recv(len(whole), socket.MSG_WAITALL) == whole


def test_it_never_waits():
    with pair() as (sock, far):
        with pytest.raises(BlockingIOError):
            sock.recv(10)
        block, sent = b"x" * 100_000, 0
        with suppress(BlockingIOError):
            for _ in range(100):
                sent += sock.send(block)
        assert 0 < sent < 100 * len(block)
        got = 0
        while got < sent:
            got += len(far.recv(1 << 20))


def test_an_end_is_no_bytes():
    with pair() as (sock, far):
        far.close()
        assert sock.recv(10) == b""


def test_reason_of_an_end_is_reported():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sock = KeepingSocket(socket.create_connection(listener.getsockname()))
        far, _ = listener.accept()
        far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        far.close()
        with sock, pytest.raises(ConnectionResetError, match=r"(?i)reset"):
            in_time(lambda: arrived(sock))


def arrived(sock):
    try:
        return sock.recv(10)
    except BlockingIOError:
        return None


def test_a_closed_one_is_not_that_of_the_next_file():
    with pair() as (sock, far):
        number = sock.fileno()
        sock.close()
        with closing(far.dup()) as other:
            assert other.fileno() == number
            for use in (lambda: sock.recv(10), lambda: sock.send(b"x")):
                with pytest.raises(OSError, match=r"(?i)bad file descriptor"):
                    use()


def kept(sock, far):
    """Return whether a runnable thread got no turn while bytes were sent and received."""
    held, ran = threading.Lock(), threading.Event()

    def run():
        with held:
            ran.set()

    held.acquire()
    other = threading.Thread(target=run)
    other.start()
    far.send(b"x" * TIMES)
    held.release()
    for _ in range(TIMES):
        sock.recv(1)
        sock.send(b"x")
        sock.sendmsg([b"x"])
    mine = not ran.is_set()
    other.join()
    # Nobody waits for room the next time.
    assert far.recv(10 * TIMES)
    return mine


@pytest.mark.skipif(not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="nothing to keep")
def test_the_interpreter_is_kept():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(LONG)
    try:
        with pair() as (sock, far):
            assert kept(sock, far)
        with pair(lambda near: near) as (sock, far):
            assert in_time(lambda: not kept(sock, far), patience=20)
    finally:
        sys.setswitchinterval(interval)


def test_missing_dependency_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "js_sync.runtime.busy_poll", None)
    with pytest.raises(js.BadArgument, match="busy_poll needs ctypes"):
        js.connect("nats://127.0.0.1:1", busy_poll=0.001)
