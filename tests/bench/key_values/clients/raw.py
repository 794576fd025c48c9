"""The limit: a blocking socket that sends the same messages and waits for the same responses.

It has one subject for each response, as the clients do, and checks nothing.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count, islice
from typing import Any
from urllib.parse import urlsplit

__all__ = ["get", "get_many", "opened", "put", "put_many"]

_INBOX = b"_INBOX.raw"
_OPTIONS = {"verbose": False, "headers": True, "no_responders": True, "protocol": 1}
_GREETING = b"CONNECT %b\r\nSUB %b.* 1\r\nPING\r\n" % (json.dumps(_OPTIONS).encode(), _INBOX)
_READ = 1 << 16
# How each response begins, with and without headers.
_RESPONSE = b"MSG %b." % _INBOX


class Bucket:
    """A socket, and the subjects of a bucket."""

    def __init__(self, url: str, bucket: str) -> None:
        parts = urlsplit(url)
        self._socket = socket.create_connection((parts.hostname or "", parts.port or 0))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(_GREETING)
        while b"PONG" not in self._socket.recv(_READ):
            pass
        self._numbers = count()
        self._key = f"$KV.{bucket}.".encode()
        self._get = f"$JS.API.DIRECT.GET.KV_{bucket}.$KV.{bucket}.".encode()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def put(self, key: str, value: bytes) -> bytes:
        """Return the message that stores a value."""
        return self._request(self._key, key, value)

    def get(self, key: str) -> bytes:
        """Return the message that requests a value."""
        return self._request(self._get, key, b"")

    def _request(self, prefix: bytes, key: str, body: bytes) -> bytes:
        number = next(self._numbers)
        parts = (prefix, key.encode(), _INBOX, number, len(body), body)
        return b"PUB %b%b %b.%d %d\r\n%b\r\n" % parts

    def ask(self, request: bytes) -> bytes:
        """Send a message and return the bytes of its response."""
        self._socket.sendall(request)
        got = self._socket.recv(_READ)
        while len(got) < _whole(got):
            got += self._socket.recv(_READ)
        return got

    def ask_many(self, requests: Iterator[bytes], window: int) -> int:
        """Send messages, a number of them in flight; return how many responses came."""
        seen, sent, tail = 0, 0, b""
        while (more := list(islice(requests, seen + window - sent))) or sent > seen:
            sent += len(more)
            if more:
                self._socket.sendall(b"".join(more))
            data = tail + self._socket.recv(_READ)
            seen += data.count(_RESPONSE)
            # Too short for a whole one: what is cut is counted with the next read.
            tail = data[1 - len(_RESPONSE) :]
        return seen


def _whole(got: bytes) -> int:
    """Return the size of the response that begins with these bytes."""
    end = got.find(b"\r\n")
    return len(got) + 1 if end < 0 else end + 4 + int(got[got.rindex(b" ", 0, end) : end])


@contextmanager
def opened(url: str, bucket: str) -> Iterator[Any]:
    """Connect and open a bucket."""
    made = Bucket(url, bucket)
    try:
        yield made
    finally:
        made.close()


def put(bucket: Bucket, key: str, value: bytes) -> None:
    """Store a value."""
    bucket.ask(bucket.put(key, value))


def get(bucket: Bucket, key: str) -> bytes:
    """Return the response that contains a value."""
    return bucket.ask(bucket.get(key))


def put_many(bucket: Bucket, items: Iterable[tuple[str, bytes]], window: int) -> int:
    """Store values; return how many were stored."""
    return bucket.ask_many((bucket.put(key, value) for key, value in items), window)


def get_many(bucket: Bucket, keys: Iterable[str], window: int) -> int:
    """Read values; return how many there are."""
    return bucket.ask_many((bucket.get(key) for key in keys), window)
