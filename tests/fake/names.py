"""Host names with the addresses that a test wants, and an address that answers nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

__all__ = ["full", "resolving"]


@contextmanager
def full() -> Iterator[tuple[str, int]]:
    """An address that neither takes a connection nor refuses one: its backlog is full."""
    with socket.socket() as listener, ExitStack() as waiting:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            sock = waiting.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex(listener.getsockname())
        yield listener.getsockname()


def resolving(monkeypatch: pytest.MonkeyPatch, **names: list[int]) -> list[str]:
    """Let host names resolve to ports of 127.0.0.1; return the names that are asked for."""
    asked: list[str] = []
    resolve = socket.getaddrinfo

    def resolved(host, *args, **kwargs):
        if host not in names:
            return resolve(host, *args, **kwargs)
        asked.append(host)
        kind = socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, ""
        return [(*kind, ("127.0.0.1", port)) for port in names[host]]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    return asked
