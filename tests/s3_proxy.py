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
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, Literal, Self
from urllib.parse import unquote, urlsplit

from attrs import frozen

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

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # one packet for head and body: a second one would wait for 40 ms

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except (ConnectionError, TimeoutError):
                    self.close_connection = True

            def _serve(self) -> None:
                proxy.serve(self)

            def __getattr__(self, name: str) -> Callable[[], None]:
                if name.startswith("do_"):
                    return self._serve
                raise AttributeError(name)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server: Final = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
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

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        request = self._noted(handler)
        fault = self.fault(request)
        if fault == "lost":
            handler.close_connection = True
            return
        if fault == "expired":
            self._fail(handler, "403", _CODES[fault])
            return
        try:
            status, headers, data = self._forward(handler, body)
        except (OSError, HTTPException):
            handler.close_connection = True
            return
        if fault == "time-out":
            time.sleep(self._patience)
        if fault in ("time-out", "closed"):
            handler.close_connection = True
        elif fault == "200":
            self._answer(handler, 200, [("ETag", '"0"')], b"")
        elif fault:
            self._fail(handler, fault, _CODES[fault])
        else:
            self._answer(handler, status, headers, data)

    def _noted(self, handler: BaseHTTPRequestHandler) -> S3Request:
        parts = urlsplit(handler.path)
        method = handler.command
        if method == "GET" and "list-type=" in parts.query:
            method = "LIST"
        key = unquote(parts.path).partition("/")[2].partition("/")[2]
        if method == "LIST":
            found = re.search(r"(?:^|&)prefix=([^&]*)", parts.query)
            key = unquote(found[1]) if found else ""
        headers = {name.lower(): value for name, value in handler.headers.items()}
        request = S3Request(method, key, headers)
        with self._lock:
            self.requests.append(request)
        return request

    def _forward(
        self, handler: BaseHTTPRequestHandler, body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = HTTPConnection(self._target.hostname or "", self._target.port, timeout=60)
        try:
            connection.putrequest(
                handler.command, handler.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in handler.headers.items():
                if name.lower() not in ("connection", "expect"):
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _fail(self, handler: BaseHTTPRequestHandler, status: str, code: str) -> None:
        text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>a test</Message></Error>"
        self._answer(handler, int(status), [("Content-Type", "application/xml")], text.encode())

    @staticmethod
    def _answer(
        handler: BaseHTTPRequestHandler, status: int, headers: list[tuple[str, str]], data: bytes
    ) -> None:
        handler.send_response_only(status)
        is_head = handler.command == "HEAD"
        for name, value in headers:
            if name.lower() in ("transfer-encoding", "connection"):
                continue
            if name.lower() == "content-length" and not is_head:
                continue
            handler.send_header(name, value)
        if not is_head and status != 204:
            handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        if not is_head:
            handler.wfile.write(data)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
