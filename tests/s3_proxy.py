"""A proxy before an S3 server or a catalog, on loopback.

It counts requests, and answers some of them wrongly.

A fault is the answer to a request that the server has carried out, or to one that it never got.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from io import BufferedIOBase
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Final, Literal, Self
from urllib.parse import unquote, urlsplit

from attrs import frozen

from tests.http_messages import HttpAnswer, HttpConnection, HttpHead, read_head

__all__ = ["Fault", "S3Proxy", "S3Request"]

Fault = Literal[
    "200", "409", "412", "500", "501", "503", "time-out", "closed", "lost", "expired", ""
]
"""An answer with this status, none at all, or a connection that is closed, after the request was
carried out; `lost`: the request is not carried out, and the connection is closed; `expired`: it is
not carried out, because the credentials have expired."""

_KEY: Final = re.compile(r"Credential=([^/]+)/")
_CODES: Final = {
    "409": "Conflict",
    "412": "PreconditionFailed",
    "500": "InternalError",
    "501": "NotImplemented",
    "503": "SlowDown",
    "expired": "ExpiredToken",
}


@frozen
class S3Request:
    """A request: its method (`LIST` for the list of keys), its key, and its headers."""

    method: str
    key: str
    headers: dict[str, str]

    @property
    def access_key(self) -> str:
        """The ID of the key with which the request is signed."""
        found = _KEY.search(self.headers.get("authorization", ""))
        return found[1] if found else ""


class S3Proxy:
    """The proxy before the server at `url`. `fault` decides for each request what goes wrong.

    `patience` is the number of seconds for which a request is left without an answer.
    """

    def __init__(
        self,
        url: str,
        fault: Callable[[S3Request], Fault] = lambda _: "",
        patience: float = 4.0,
    ) -> None:
        self.fault = fault
        self.requests: Final[list[S3Request]] = []
        self._target: Final = urlsplit(url)
        self._patience: Final = patience
        self._lock: Final = threading.Lock()
        proxy = self

        class Handler(StreamRequestHandler):
            disable_nagle_algorithm = True

            def handle(self) -> None:
                with suppress(OSError):
                    proxy.serve(self.rfile, self.wfile)

        self._server: Final = ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False

    @property
    def url(self) -> str:
        """The address of the proxy."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def counts(self) -> Counter[str]:
        """Return the number of requests by method."""
        with self._lock:
            return Counter(each.method for each in self.requests)

    def clear(self) -> None:
        """Forget the requests."""
        with self._lock:
            self.requests.clear()

    def serve(self, requests: BufferedIOBase, answers: BufferedIOBase) -> None:
        """Serve one connection until one of its ends closes it."""
        with HttpConnection(self._target.hostname or "", self._target.port or 80) as server:
            while (head := read_head(requests)) is not None:
                if head.headers.get("expect", "").lower() == "100-continue":
                    answers.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                answer = self._answer(head, requests.read(head.length), server)
                if answer is None:
                    return
                answers.write(answer.encoded(head.start.partition(" ")[0]))
                if head.is_last:
                    return

    def _answer(self, head: HttpHead, body: bytes, server: HttpConnection) -> HttpAnswer | None:
        """Return the answer to a request; `None` closes its connection."""
        fault = self.fault(self._noted(head))
        if fault == "lost":
            return None
        if fault == "expired":
            return _failure("403", _CODES[fault])
        try:
            answer = server.ask(head, body)
        except (OSError, ValueError):
            return None
        if fault == "time-out":
            time.sleep(self._patience)
        if fault in ("time-out", "closed"):
            return None
        if fault == "200":
            return HttpAnswer(200, {"etag": '"0"'})
        return _failure(fault, _CODES[fault]) if fault else answer

    def _noted(self, head: HttpHead) -> S3Request:
        method, target, _ = head.start.split(" ")
        parts = urlsplit(target)
        if method == "GET" and "list-type=" in parts.query:
            method = "LIST"
        key = unquote(parts.path).partition("/")[2].partition("/")[2]
        if method == "LIST":
            found = re.search(r"(?:^|&)prefix=([^&]*)", parts.query)
            key = unquote(found[1]) if found else ""
        request = S3Request(method, key, head.headers)
        with self._lock:
            self.requests.append(request)
        return request

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _failure(status: str, code: str) -> HttpAnswer:
    text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>a test</Message></Error>"
    return HttpAnswer(int(status), {"content-type": "application/xml"}, text.encode())
