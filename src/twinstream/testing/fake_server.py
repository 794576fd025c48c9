"""A fake NATS server. Its scripts can send any bytes at any time, to test error handling.

A script is a function that handles one client connection step by step. Its argument is a
`FakePeer`, which represents the connection::

    def one_message_then_trouble(peer: FakePeer) -> None:
        peer.handshake()
        pull = peer.expect_pull()
        peer.deliver(pull, seq=1, data=b"hello")
        peer.status(pull, 409, "Leadership Change")
        again = peer.expect_pull()
        peer.deliver(again, seq=2)

    with FakeServer(one_message_then_trouble) as server:
        with js_sync.connect(server.url) as connection:
            consumer = connection.jetstream().bind_consumer("S", "c")
            ...

Scripts run in their own threads, so the test may block or run an event loop. The end of the block
raises `ScriptError` if the client did not do what a script expects. The error names the step, and
lists the operations that were received instead.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from twinstream.testing.fake_connection import FakePeer
from twinstream.testing.fake_script import ScriptError, Stage
from twinstream.testing.fake_wire import Operation

__all__ = ["FakeServer", "Script"]

Script = Callable[[FakePeer], object]
"""A function that handles one connection of a fake server."""

_HOST: Final = "127.0.0.1"


class FakeServer:
    """A fake server on a free loopback port that runs scripts.

    Args:
        scripts: one script per connection, in the order in which clients connect.
        rest: the script of all further connections. By default, further connections are closed and
            reported as failures.
        patience: the default timeout of a step in seconds. The end of the block also waits for
            running scripts, at most for this time.
    """

    def __init__(
        self, *scripts: Script, rest: Script | None = None, patience: float = 20.0
    ) -> None:
        self._scripts: Final = scripts
        self._rest: Final = rest
        self._stage: Final = Stage(patience)
        self._peers: Final[list[FakePeer]] = []
        self._running = 0
        self._threads: Final[list[threading.Thread]] = []
        self._listener: socket.socket | None = None

    @property
    def port(self) -> int:
        """The port for clients. Raises `RuntimeError` before `start`."""
        if self._listener is None:
            raise RuntimeError("the fake server has not been started; it has no port")
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"nats://{_HOST}:{self.port}"

    # ---- for the test

    def tell(self, sign: str) -> None:
        """Let scripts that wait for this sign (`FakePeer.wait_for`) continue.

        Args:
            sign: A text that test and script agree on.
        """
        self._stage.note(lambda: self._stage.given.add(sign))

    def reached(self, sign: str) -> bool:
        """Return whether a script has called `FakePeer.reach` with this sign.

        Args:
            sign: A text that test and script agree on.
        """
        with self._stage.changed:
            return sign in self._stage.reached

    @property
    def connections(self) -> int:
        """The number of connections so far."""
        return len(self._peers)

    def operations(self, pattern: str = "") -> list[Operation]:
        """Return the clients' operations in whose line a regular expression is found.

        The operations are sorted by connection.

        Args:
            pattern: A regular expression.
        """
        with self._stage.changed:
            every = [each for peer in self._peers for each in peer.operations]
        return [each for each in every if re.search(pattern, each.line)]

    @property
    def failures(self) -> list[ScriptError]:
        """The failures of scripts so far."""
        with self._stage.changed:
            return list(self._stage.failures)

    # ---- life

    def start(self) -> Self:
        """Start to accept connections, in a thread."""
        if self._listener is None:
            self._listener = socket.create_server((_HOST, 0))
            self._spawn(self._accept, self._listener)
        return self

    def stop(self, *, wait: bool = True) -> None:
        """Close the port and all connections, and end the threads.

        With `wait`, the call first waits for running scripts, and for clients that have not
        connected yet, at most `patience` seconds. Raises `ScriptError` if a script has failed, or
        if there are more scripts than connections.
        """
        listener = self._listener
        if listener is None:
            return
        if wait and not self.failures:
            self._stage.wait(self._is_done)
        self._stage.note(lambda: setattr(self._stage, "is_over", True))
        # Connect to the port, to wake up the thread in accept() on every platform. shutdown() would
        # wake it up on Linux only.
        try:
            socket.create_connection(listener.getsockname(), timeout=1).close()
        except OSError:
            pass
        for peer in self._peers:
            peer.close()
        for thread in self._threads:
            thread.join()
        listener.close()
        self._listener = None
        self._raise_failures()

    def _is_done(self) -> bool | None:
        connected = len(self._peers) >= len(self._scripts)
        return (connected and self._running == 0) or bool(self._stage.failures) or None

    def _raise_failures(self) -> None:
        missing = [
            ScriptError(f"connection {number} was not opened, but there is a script for it")
            for number in range(len(self._peers) + 1, len(self._scripts) + 1)
        ]
        failures = self.failures + missing
        if failures:
            raise ScriptError("\n".join(str(each) for each in failures)) from failures[0]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.stop(wait=error is None)
        except ScriptError as failure:
            if error is None:
                raise
            error.add_note(f"the fake server's script: {failure}")

    # ---- inside

    def _spawn(self, work: Callable[..., object], *arguments: object) -> None:
        thread = threading.Thread(
            target=work, args=arguments, name=f"fake-server-{len(self._threads)}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        """Accept connections until the listener is closed or the server stops."""
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with self._stage.changed:
                over = self._stage.is_over
            if over:
                sock.close()
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open(FakePeer(sock, len(self._peers) + 1, self._stage))

    def _open(self, peer: FakePeer) -> None:
        """Start the threads of a connection: one reads from it, and one plays its script."""
        given = self._scripts[peer.number - 1 : peer.number]
        script = given[0] if given else self._rest

        def enter() -> None:
            self._peers.append(peer)
            self._running += script is not None

        self._stage.note(enter)
        self._spawn(peer.pump)
        if script is not None:
            self._spawn(self._play, script, peer)
            return
        text = f"connection {peer.number} was opened, but there is no script for it"
        self._fail(ScriptError(text), peer)

    def _play(self, script: Script, peer: FakePeer) -> None:
        try:
            script(peer)
        except ScriptError as error:
            self._fail(error, peer)
        except Exception as error:
            failure = ScriptError(f"connection {peer.number}: the script raised {error!r}")
            failure.__cause__ = error
            self._fail(failure, peer)
        finally:
            self._stage.note(lambda: setattr(self, "_running", self._running - 1))

    def _fail(self, error: ScriptError, peer: FakePeer) -> None:
        """Store a failure, and close the connection so that the client does not wait forever."""
        self._stage.note(lambda: self._stage.failures.append(error))
        peer.close()
