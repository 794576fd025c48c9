"""Host names with addresses that a test chooses, and an address that does not answer."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

__all__ = ["full", "replacing", "resolving"]


@contextmanager
def full() -> Iterator[tuple[str, int]]:
    """An address that neither accepts a connection nor refuses one: its backlog is full."""
    with socket.socket() as listener, ExitStack() as waiting:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            sock = waiting.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex(listener.getsockname())
        yield listener.getsockname()


def replacing(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[Callable[[], Any], str], Any]
) -> None:
    """Let `answer` resolve host names; it receives the system's function, too."""
    resolve = socket.getaddrinfo

    def resolved(host: str, *args: Any, **kwargs: Any) -> Any:
        return answer(lambda: resolve(host, *args, **kwargs), host)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)


def resolving(monkeypatch: pytest.MonkeyPatch, **names: list[int]) -> list[str]:
    """Resolve host names to ports of 127.0.0.1; return the list of the resolved names."""
    asked: list[str] = []

    def answer(resolve: Callable[[], Any], host: str) -> Any:
        if host not in names:
            return resolve()
        asked.append(host)
        kind = socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, ""
        return [(*kind, ("127.0.0.1", port)) for port in names[host]]

    replacing(monkeypatch, answer)
    return asked
