"""A proxy that records the traffic between a client and a real server.

The recording is a text file of JSON lines, one for each protocol operation. It can be read and
edited with a text editor. `replay` converts it to scripts for a `FakeServer`::

    with NatsServer() as server, Recorder(server.port) as recorder:
        ...  # connect to recorder.url, and produce the traffic to record
        recorder.save(path)

    with FakeServer(*replay(path)) as server:
        ...  # connect to server.url, which sends the same frames as the real server

A line is, for example, `{"connection": 1, "from": "client", "line": "SUB a 1"}`. If the operation
has headers or a payload, the line has the members `headers` and `payload` with text, or
`headers_base64` and `payload_base64`. TLS connections cannot be recorded.
"""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Self

from twinstream.testing.fake_wire import Operation, Splitter

__all__ = ["Recorder", "Spoken", "read_recording"]

_HOST: Final = "127.0.0.1"
_READ_SIZE: Final = 1 << 16


class Spoken:
    """One operation of a recording, with its sender and its connection (from 1 up)."""

    def __init__(self, connection: int, by_client: bool, operation: Operation) -> None:
        self.connection: Final = connection
        self.by_client: Final = by_client
        self.operation: Final = operation

    def to_json(self) -> dict[str, Any]:
        """Return the members of the JSON object for this operation in a recording."""
        members: dict[str, Any] = {
            "connection": self.connection,
            "from": "client" if self.by_client else "server",
            "line": self.operation.line,
        }
        for name, data in (
            ("headers", self.operation.headers),
            ("payload", self.operation.payload),
        ):
            if data:
                members.update(_written(name, data))
        return members

    @classmethod
    def from_json(cls, members: dict[str, Any]) -> Spoken:
        """Return the operation that the members of a line describe.

        Raises `KeyError` or `ValueError` for an invalid line.
        """
        operation = Operation(members["line"], _read("headers", members), _read("payload", members))
        return cls(int(members["connection"]), members["from"] == "client", operation)


def _written(name: str, data: bytes) -> dict[str, str]:
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def _read(name: str, members: dict[str, Any]) -> bytes:
    if f"{name}_base64" in members:
        return base64.b64decode(members[f"{name}_base64"])
    text: str = members.get(name, "")
    return text.encode()


def read_recording(path: Path | str) -> list[Spoken]:
    """Return the operations of a recording. Raises `ValueError` for an invalid line."""
    found: list[Spoken] = []
    for number, line in enumerate(Path(path).read_text("utf-8").splitlines(), 1):
        if line.strip():
            try:
                found.append(Spoken.from_json(json.loads(line)))
            except (KeyError, ValueError, TypeError, AttributeError) as error:
                raise ValueError(
                    f"{path}:{number}: not a line of a recording: {error!r}"
                ) from error
    return found


class Recorder:
    """A proxy on a free loopback port that records all operations between clients and a server.

    Args:
        target_port: Port of the server.
    """

    def __init__(self, target_port: int) -> None:
        self._target: Final = (_HOST, target_port)
        self._listener: socket.socket | None = None
        self._sockets: Final[list[socket.socket]] = []
        self._threads: Final[list[threading.Thread]] = []
        self._lock: Final = threading.Lock()
        self._spoken: Final[list[Spoken]] = []

    @property
    def url(self) -> str:
        """The address for clients. Raises `RuntimeError` before `start`."""
        if self._listener is None:
            raise RuntimeError("the recorder has not been started; it has no address")
        return f"nats://{_HOST}:{self._listener.getsockname()[1]}"

    @property
    def spoken(self) -> list[Spoken]:
        """The operations recorded so far, in the order in which the proxy received them."""
        with self._lock:
            return list(self._spoken)

    def save(self, path: Path | str) -> None:
        """Write the operations recorded so far to a file.

        Args:
            path: Path of the file.
        """
        lines = [json.dumps(each.to_json(), ensure_ascii=False) for each in self.spoken]
        Path(path).write_text("".join(f"{line}\n" for line in lines), "utf-8")

    def start(self) -> Self:
        """Start to accept connections, in a thread."""
        if self._listener is None:
            self._listener = socket.create_server((_HOST, 0))
            self._spawn(self._accept, self._listener)
        return self

    def stop(self) -> None:
        """Close the port and all connections. The recorded operations stay available."""
        listener, self._listener = self._listener, None
        if listener is None:
            return
        _shut(listener)
        with self._lock:
            sockets = list(self._sockets)
        for sock in sockets:
            _shut(sock)
        for thread in self._threads:
            thread.join()
        for sock in [listener, *self._sockets]:
            sock.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ---- inside

    def _spawn(self, work: Any, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, name="recorder", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        """Accept clients until the listener is closed, with two threads for each."""
        connection = 0
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target, timeout=5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            connection += 1
            with self._lock:
                self._sockets.extend((client, server))
            self._spawn(self._forward, client, server, connection, True)
            self._spawn(self._forward, server, client, connection, False)

    def _forward(
        self, source: socket.socket, target: socket.socket, connection: int, by_client: bool
    ) -> None:
        """Record and pass on the operations of one direction, until either side closes."""
        splitter = Splitter()
        while True:
            try:
                data = source.recv(_READ_SIZE)
                # Record a request before it is forwarded. Otherwise the other thread could record
                # the response before the request.
                self._record(splitter.feed(data), connection, by_client)
                target.sendall(data)
            except OSError:
                data = b""
            if not data:
                _shut(target)
                return

    def _record(self, operations: Iterable[Operation], connection: int, by_client: bool) -> None:
        with self._lock:
            self._spoken.extend(Spoken(connection, by_client, each) for each in operations)


def _shut(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # the other side has already closed the connection
