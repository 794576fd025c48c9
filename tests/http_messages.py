"""Requests and answers of HTTP/1.1, as far as a proxy must understand them.

Python's own modules parse the headers as those of an email, which takes most of a proxy's time.
"""

from __future__ import annotations

import select
import socket
from http.client import responses
from io import BufferedIOBase
from typing import Final, Self

from attrs import frozen

__all__ = ["HttpAnswer", "HttpConnection", "HttpHead", "read_head"]

# Seconds until a server counts as silent.
_PATIENCE: Final = 60.0
# Headers of one connection. A proxy has two.
_OWN: Final = ("connection", "expect", "keep-alive", "transfer-encoding")


@frozen
class HttpHead:
    """The first line of a message, and its headers, whose names are in lower case."""

    start: str
    headers: dict[str, str]

    @property
    def length(self) -> int:
        """The size of the body in bytes, if the headers have it."""
        return int(self.headers.get("content-length") or 0)

    @property
    def is_last(self) -> bool:
        """Whether the connection is closed after the message."""
        return self.headers.get("connection", "").lower() == "close"

    def forwarded(self) -> bytes:
        """Return the head as another connection gets it."""
        headers = {name: text for name, text in self.headers.items() if name not in _OWN}
        return _encoded(self.start, headers)


@frozen
class HttpAnswer:
    """An answer. The length of a body is among its headers, unless it answers a HEAD."""

    status: int
    headers: dict[str, str]
    body: bytes = b""

    def encoded(self, method: str) -> bytes:
        """Return the answer to a request with a method."""
        headers = {name: text for name, text in self.headers.items() if name not in _OWN}
        has_body = method != "HEAD" and self.status not in (204, 304)
        if has_body:
            headers["content-length"] = str(len(self.body))
        head = _encoded(f"HTTP/1.1 {self.status} {responses.get(self.status, '')}", headers)
        return head + self.body if has_body else head


class HttpConnection:
    """A connection to a server, which is opened again when the server has closed it."""

    def __init__(self, host: str, port: int) -> None:
        self._address: Final = host, port
        self._socket: socket.socket | None = None
        self._file: BufferedIOBase | None = None

    def ask(self, head: HttpHead, body: bytes) -> HttpAnswer:
        """Return the answer of the server to a request.

        Raises `OSError` if there is none, and `ValueError` if it is not one of HTTP.
        """
        if self._socket is not None and select.select([self._socket], [], [], 0)[0]:
            self.close()  # between two requests, nothing arrives but the end of the connection
        if self._socket is None:
            self._socket = socket.create_connection(self._address, timeout=_PATIENCE)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._file = self._socket.makefile("rb")
        assert self._file is not None
        self._socket.sendall(head.forwarded() + body)
        return self._answer(self._file, head.start.partition(" ")[0])

    def _answer(self, file: BufferedIOBase, method: str) -> HttpAnswer:
        head = read_head(file)
        if head is None:
            raise ConnectionError("the server has closed the connection without an answer")
        status = int(head.start.split(" ", 2)[1])
        is_last = head.is_last
        if method == "HEAD" or status in (204, 304):
            body = b""
        elif head.headers.get("transfer-encoding", "").lower() == "chunked":
            body = _chunked(file)
        elif "content-length" in head.headers:
            body = _read(file, head.length)
        else:
            body, is_last = file.read(), True
        if is_last:
            self.close()
        return HttpAnswer(status, head.headers, body)

    def close(self) -> None:
        """Close the connection, if there is one."""
        for each in (self._file, self._socket):
            if each is not None:
                each.close()
        self._file = self._socket = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_head(file: BufferedIOBase) -> HttpHead | None:
    """Return the next head of a connection, or `None` after the last one."""
    lines = iter(file.readline, b"\r\n")
    start = next(lines, b"")
    if not start:
        return None
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, text = line.decode("latin-1").partition(":")
        if not colon:
            raise ConnectionError("the connection was closed within the headers")
        headers[name.lower()] = text.strip()
    return HttpHead(start.decode("latin-1").rstrip("\r\n"), headers)


def _encoded(start: str, headers: dict[str, str]) -> bytes:
    lines = [start, *(f"{name}: {text}" for name, text in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _read(file: BufferedIOBase, size: int) -> bytes:
    body = file.read(size)
    if len(body) < size:
        raise ConnectionError("the connection was closed within a body")
    return body


def _chunked(file: BufferedIOBase) -> bytes:
    parts: list[bytes] = []
    while size := int(file.readline().partition(b";")[0], 16):
        parts.append(_read(file, size))
        file.readline()
    for line in iter(file.readline, b"\r\n"):
        if not line:
            raise ConnectionError("the connection was closed within a body")
    return b"".join(parts)
