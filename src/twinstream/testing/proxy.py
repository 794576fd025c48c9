"""A byte proxy between a client and a server that simulates a bad network."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections import deque
from typing import Final, Self
from urllib.parse import urlsplit

from twinstream.testing.config import HOST

_CHUNK: Final = 1 << 16
_TICK: Final = 0.01


class _Pipe:
    """One direction of one connection: chunks in flight, each with its time of delivery."""

    def __init__(
        self, source: socket.socket, target: socket.socket, *, to_client: bool = False
    ) -> None:
        self.source = source
        self.target = target
        self.to_client = to_client
        self.waiting: deque[tuple[float, bytes]] = deque()
        self.closed_at: float | None = None
        """The time at which the target may be closed, or `None` while the source is open.

        All chunks are forwarded first.
        """
        self.ended = False


class Proxy:
    """A proxy between clients and one server, to be used as a context manager.

    Clients connect to `url`. These attributes may be set at any time:

    - `delay`: seconds that bytes take in each direction;
    - `black_hole`: read all bytes and forward none, and keep connections open even if one
      side closes them;
    - `mute`: the same as `black_hole`, but only for the server's bytes. The server receives
      requests, but the client receives no responses;
    - `refuse`: close new connections at once;
    - `chunk`: forward at most this many bytes at a time.

    `accepted` is the number of connections that the proxy has forwarded to the server. `cut` breaks
    the current connections.

    Args:
        server_url: URL of the server.
    """

    def __init__(self, server_url: str) -> None:
        parts = urlsplit(server_url)
        self._server: Final = (parts.hostname or HOST, parts.port or 4222)
        self.delay = 0.0
        self.black_hole = False
        self.mute = False
        self.refuse = False
        self.chunk = _CHUNK
        self.accepted = 0
        self._cutting = False
        self._pipes: list[_Pipe] = []
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket()
        self._listener.bind((HOST, 0))
        self._running = False
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"nats://{HOST}:{self._listener.getsockname()[1]}"

    def start(self) -> Self:
        """Start to accept connections, in a thread."""
        self._listener.listen()
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._running = True
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Close the port and all connections, and end the thread."""
        self._running = False
        if self._thread is not None:
            self._thread.join()
        for pipe in list(self._pipes):
            self._close(pipe)
        self._listener.close()
        self._selector.close()

    def cut(self) -> None:
        """Break the current connections, perhaps in the middle of a frame.

        The proxy still accepts new connections, unless `refuse` is set.
        """
        self._cutting = True
        while self._cutting and self._running:
            time.sleep(_TICK / 10)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- inside: one thread accepts, reads and forwards

    def _run(self) -> None:
        """Accept, read and forward until the proxy is stopped. All pipes share this thread."""
        while self._running:
            if self._cutting:
                for pipe in list(self._pipes):
                    self._close(pipe)
                self._cutting = False
            for key, _ in self._selector.select(self._patience()):
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    self._read(key.data)
            self._forward()

    def _patience(self) -> float:
        busy = any(pipe.waiting or pipe.closed_at is not None for pipe in self._pipes)
        return _TICK / 10 if busy else _TICK

    def _accept(self) -> None:
        """Accept a client, connect to the server, and pass on data in both directions."""
        client, _ = self._listener.accept()
        if self.refuse:
            client.close()
            return
        try:
            server = socket.create_connection(self._server, timeout=5)
        except OSError:
            client.close()
            return
        self.accepted += 1
        for source, target in ((client, server), (server, client)):
            source.setblocking(False)
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pipe = _Pipe(source, target, to_client=source is server)
            self._pipes.append(pipe)
            self._selector.register(source, selectors.EVENT_READ, pipe)

    def _read(self, pipe: _Pipe) -> None:
        """Read from the source of a pipe. The data, or its end, is due after `delay` seconds."""
        if pipe.ended:
            return
        try:
            data = pipe.source.recv(min(self.chunk, _CHUNK))
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            pipe.closed_at = time.monotonic() + self.delay
            self._selector.unregister(pipe.source)
        elif not self._drops(pipe):
            pipe.waiting.append((time.monotonic() + self.delay, data))

    def _drops(self, pipe: _Pipe) -> bool:
        return self.black_hole or (self.mute and pipe.to_client)

    def _forward(self) -> None:
        """Send the data of all pipes that is due, and close pipes whose end is due."""
        now = time.monotonic()
        for pipe in list(self._pipes):
            while pipe.waiting and pipe.waiting[0][0] <= now and not pipe.ended:
                at, data = pipe.waiting.popleft()
                try:
                    sent = pipe.target.send(data)
                except BlockingIOError:
                    sent = 0
                except OSError:
                    self._close(pipe)
                    break
                if sent < len(data):
                    pipe.waiting.appendleft((at, data[sent:]))
                    break
            has_ended = pipe.closed_at is not None and pipe.closed_at <= now and not pipe.waiting
            if has_ended and not self._drops(pipe):
                self._close(pipe)

    def _close(self, pipe: _Pipe) -> None:
        for other in [each for each in self._pipes if each.source in (pipe.source, pipe.target)]:
            other.ended = True
            self._pipes.remove(other)
            if other.closed_at is None:
                self._selector.unregister(other.source)
            other.source.close()
