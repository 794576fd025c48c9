"""Whether a cluster can store a stream on all of its nodes."""

from __future__ import annotations

import json
import socket
import uuid
from typing import Any, Final

from twinstream.testing.config import HOST
from twinstream.testing.fake_wire import Operation, Splitter

__all__ = ["places_streams"]

_NO_PEERS: Final = "no suitable peers"
_TIMEOUT: Final = 5.0


def places_streams(port: int, replicas: int) -> bool:
    """Return whether the JetStream leader places a stream with this number of replicas.

    A client on `port` creates a stream in memory and deletes it. If anonymous clients may not
    connect, or not without TLS, the answer is unknown and the function returns True.
    """
    name = f"twinstream-placement-{uuid.uuid4().hex}"
    config = {"name": name, "subjects": [name], "storage": "memory", "num_replicas": replicas}
    try:
        with _Client(port) as client:
            if client.is_restricted:
                return True
            answer = client.ask(f"$JS.API.STREAM.CREATE.{name}", config)
            if "error" in answer:
                # Any other refusal is about the account, and no wait changes that.
                return _NO_PEERS not in str(answer["error"].get("description"))
            client.ask(f"$JS.API.STREAM.DELETE.{name}", {})
    except (OSError, ValueError):
        return False
    return True


class _Client:
    """A connection that sends one request at a time."""

    def __init__(self, port: int) -> None:
        self._link: Final = socket.create_connection((HOST, port), timeout=_TIMEOUT)
        self._splitter: Final = Splitter()
        self._arrived: Final[list[Operation]] = []
        self._info: Final = self._next("INFO").json

    @property
    def is_restricted(self) -> bool:
        """Whether the server asks for credentials or for TLS."""
        return any(self._info.get(each) for each in ("auth_required", "tls_required"))

    def ask(self, subject: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send a request, and return its answer.

        Raises `ValueError` if the answer is not JSON, for example because there are no responders,
        and `OSError` if the connection ends or no answer arrives in time.
        """
        payload = json.dumps(body).encode()
        lines = 'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB reply 1\r\n'
        request = f"{lines}PUB {subject} reply {len(payload)}\r\n"
        self._link.sendall(request.encode() + payload + b"\r\nUNSUB 1 1\r\n")
        answer: dict[str, Any] = self._next("MSG", "HMSG").json
        return answer

    def _next(self, *verbs: str) -> Operation:
        """Return the next operation with one of the verbs, and skip the operations before it."""
        while True:
            while self._arrived:
                operation = self._arrived.pop(0)
                if operation.verb in verbs:
                    return operation
                if operation.verb == "-ERR":
                    raise ConnectionError(operation.line)
            data = self._link.recv(65_536)
            if not data:
                raise ConnectionError("the server closed the connection")
            self._arrived.extend(self._splitter.feed(data))

    def __enter__(self) -> _Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._link.close()
