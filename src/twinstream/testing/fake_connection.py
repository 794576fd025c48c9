"""The interface of a script to one client connection of a fake server."""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

from twinstream.testing.fake_script import ScriptError, Stage
from twinstream.testing.fake_wire import Operation, Splitter, header_block, info_line, message_frame

__all__ = ["FakePeer"]

_READ_SIZE: Final = 1 << 16
_SHOWN: Final = 12
# Requests of the API, also of a domain or with a prefix, and those that end a restore.
_API: Final = re.compile(r"\$JS\.(?:[^.]+\.)?(?:API|SNAPSHOT)\.|.*\.API\.")
_API_TYPE: Final = "io.nats.jetstream.api.v1.response"
_INFO: Final[dict[str, Any]] = {
    "server_id": "FAKE",
    "server_name": "fake",
    "version": "2.15.1",
    "proto": 1,
    "headers": True,
    "max_payload": 1 << 20,
    "jetstream": True,
    "client_id": 1,
}


class FakePeer:
    """One client connection, which a script handles step by step.

    A script need not read or answer PINGs itself. The fake server reads all data of the client
    until `stop_reading` is called, and answers the client's PINGs until `stop_answering` is called.
    A step that waits raises `ScriptError` after `timeout` seconds, by default the server's
    `patience`.

    Args:
        sock: The socket of the client's connection.
        stage: What the scripts of one server share.
    """

    def __init__(self, sock: socket.socket, number: int, stage: Stage) -> None:
        self.number: Final = number
        """The number of the connection, from 1 up."""
        self.operations: Final[list[Operation]] = []
        """All operations that the client sent, in order."""
        self._sock: Final = sock
        self._stage: Final = stage
        self._splitter: Final = Splitter()
        self._sending: Final = threading.Lock()
        self._seen = 0
        self._step = 0
        self._every: int | None = None
        self._reads = True
        self._answers = True
        self._left: str | None = None

    # ---- received commands

    def expect(self, pattern: str, *, timeout: float | None = None) -> Operation:
        r"""Return the next operation in whose line a regular expression is found.

        A line is, for example, `PUB orders.new 5` or `SUB _INBOX.x.* 1`. Other operations before
        the matching one are skipped. Raises `ScriptError` if the client disconnects or sends no
        such operation in time. The error lists the operations that were received instead.

        Args:
            pattern: A regular expression.
            timeout: Seconds; the default is the server's `patience`.
        """
        self._step += 1
        start = self._seen

        def find() -> Operation | bool | None:
            for place in range(self._seen, len(self.operations)):
                if re.search(pattern, self.operations[place].line):
                    self._seen = place + 1
                    return self.operations[place]
            return False if self._left is not None else None

        found = self._stage.wait(find, timeout)
        if isinstance(found, Operation):
            return found
        raise self._error(f"expected /{pattern}/", start)

    def expect_pull(self, *, timeout: float | None = None) -> Operation:
        """Return the next pull request. Its property `json` is the request's parsed body.

        Args:
            timeout: Seconds; the default is the server's `patience`.
        """
        return self.expect(r"^H?PUB \S*\.CONSUMER\.MSG\.NEXT\.", timeout=timeout)

    def follow(self) -> Iterator[Operation]:
        """Yield each further operation, until the client disconnects or the server stops."""
        while self._stage.wait(self._has_more, float("inf")):
            self._seen += 1
            yield self.operations[self._seen - 1]

    def _has_more(self) -> bool | None:
        """Return whether there is another operation.

        Without one, the result is `None` while the client is connected and may still send one.
        """
        if len(self.operations) > self._seen:
            return True
        return None if self._left is None else False

    def count(self, pattern: str) -> int:
        """Return the number of operations so far in whose line a regular expression is found.

        Args:
            pattern: A regular expression.
        """
        with self._stage.changed:
            return sum(1 for each in self.operations if re.search(pattern, each.line))

    def fence(self) -> None:
        """Send a PING and wait for the PONG, which confirms that the client has read earlier data.

        Raises `ScriptError` if no PONG arrives in time.
        """
        self.send(b"PING\r\n")
        self.expect(r"^PONG")

    def until_left(self, *, timeout: float | None = None) -> None:
        """Wait until the connection has ended. Raises `ScriptError` if this takes too long.

        Args:
            timeout: Seconds; the default is the server's `patience`.
        """
        self._step += 1
        if self._stage.wait(lambda: self._left, timeout) is None:
            raise self._error("expected the client to disconnect", self._seen)

    # ---- sent commands

    def handshake(self, **info: Any) -> dict[str, Any]:
        """Send INFO with the arguments as members; return the members of the client's CONNECT.

        The PING that clients send after CONNECT is answered even after `stop_answering`.

        Args:
            info: Members of INFO.
        """
        self.info(**info)
        connect: dict[str, Any] = self.expect(r"^CONNECT ").json
        self.expect(r"^PING")
        if not self._answers:
            self.send(b"PONG\r\n")
        return connect

    def info(self, **values: Any) -> None:
        """Send INFO with the fields of a typical server. The arguments replace or add fields.

        Args:
            values: Members of INFO.
        """
        port = self._sock.getsockname()[1]
        self.send(info_line({**_INFO, "host": "127.0.0.1", "port": port, **values}))

    def send(self, data: bytes) -> None:
        """Send bytes unchanged, in pieces if `split` was called.

        Raises `ScriptError` if the connection has ended.

        Args:
            data: The bytes.
        """
        self._step += 1
        with self._sending:
            every = self._every or len(data) or 1
            try:
                for start in range(0, len(data), every):
                    self._sock.sendall(data[start : start + every])
            except OSError as error:
                raise self._error(f"cannot send {data[:60]!r} ({error})", self._seen) from error

    def split(self, every: int | None) -> None:
        """Send later data in pieces of `every` bytes, or in one piece if it is `None`."""
        self._every = every

    def message(
        self,
        to: str,
        data: bytes = b"",
        *,
        subject: str | None = None,
        reply: str = "",
        headers: Mapping[str, object] | None = None,
        status: str = "",
    ) -> None:
        """Send a message to the client's subscription to the subject `to`.

        The message has the subject `subject`, by default `to`. `status` is the text after the
        version in the header block, such as `503`.

        Args:
            to: Subject of the client's subscription.
            data: Payload of the message.
            subject: Subject of the message; None means `to`.
            reply: Subject for replies.
            headers: Headers of the message.
            status: The text after the version in the header block.
        """
        block = header_block(status, headers or {}) if status or headers else b""
        self.send(message_frame(subject or to, self.sid(to), reply, block, data))

    def status(self, pull: Operation | str, code: int, text: str = "", **headers: object) -> None:
        """Send a status to a pull request, or to its reply subject if `pull` is a string.

        `code` and `text` are those of the status, such as 404 and `No Messages`. In the names of
        `headers`, underscores replace hyphens, for example `Nats_Pending_Messages=1`.
        """
        to = pull if isinstance(pull, str) else pull.reply
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.message(to, headers=named, status=f"{code} {text}".strip())

    def deliver(
        self,
        pull: Operation,
        seq: int,
        data: bytes = b"",
        *,
        subject: str = "subject",
        delivered: int = 1,
        pending: int = 0,
        headers: Mapping[str, object] | None = None,
    ) -> str:
        """Send a message in response to a pull request, and return the message's reply subject.

        `seq` is both the stream sequence and the consumer sequence of the message. `delivered` is
        its delivery count, and `pending` is the number of pending messages.

        Args:
            pull: The pull request.
            seq: Sequence of the message in stream and consumer.
            data: Payload of the message.
            subject: Subject of the message.
            delivered: Delivery count of the message.
            pending: Number of pending messages.
            headers: Headers of the message.
        """
        stream, consumer = pull.subject.split(".")[-2:]
        reply = f"$JS.ACK.{stream}.{consumer}.{delivered}.{seq}.{seq}.1700000000000000000.{pending}"
        self.message(pull.reply, data, subject=subject, reply=reply, headers=headers)
        return reply

    def answer(self, request: Operation, answer: bytes | Mapping[str, Any]) -> None:
        """Send the response to a request: bytes, or a mapping as JSON.

        A mapping without `type` gets one if the request is a call of the JetStream API, because
        each response of the API has a `type`.

        Args:
            request: The request, as `expect` returned it.
            answer: The response.
        """
        if not isinstance(answer, bytes):
            typed = {"type": _API_TYPE} if _API.match(request.subject) else {}
            answer = json.dumps({**typed, **answer}).encode()
        self.message(request.reply, answer)

    def error(self, text: str) -> None:
        """Send `-ERR` with a text.

        Args:
            text: The text after `-ERR`.
        """
        self.send(f"-ERR '{text}'\r\n".encode())

    # ---- signals between script and test

    def wait_for(self, sign: str, *, timeout: float | None = None) -> None:
        """Wait until the test has called `FakeServer.tell` with this sign.

        Args:
            sign: A text that test and script agree on.
            timeout: Seconds; the default is the server's `patience`.
        """
        self._step += 1
        if self._stage.wait(lambda: sign in self._stage.given or None, timeout) is None:
            raise self._error(f"the test did not call tell({sign!r})", self._seen)

    def reach(self, sign: str) -> None:
        """Let `FakeServer.reached` return True for this sign from now on.

        Args:
            sign: A text that test and script agree on.
        """
        self._stage.note(lambda: self._stage.reached.add(sign))

    # ---- failures

    def stop_answering(self) -> None:
        """Stop answering PINGs, like an unresponsive server.

        After that, a script may answer PINGs itself. Its answers are then in order with its other
        data, like those of a real server.
        """
        self._answers = False

    def stop_reading(self) -> None:
        """Stop reading, so that the client's writes block."""
        self._reads = False

    def go_on(self) -> None:
        """Resume reading and answering PINGs, after `stop_reading` and `stop_answering`."""

        def change() -> None:
            self._reads = self._answers = True

        self._stage.note(change)

    def close(self) -> None:
        """Close the connection normally."""
        self._end("the script closed the connection")

    def half_close(self) -> None:
        """Close the sending side of the connection, but keep reading.

        The client reads the end of the stream.
        """
        self._sock.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Close the connection with a TCP reset."""
        # With a linger of zero seconds, the kernel drops unsent data and sends RST.
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._end("the script reset the connection", socket.SHUT_RD)

    # ---- helpers

    def _end(self, how: str, sides: int = socket.SHUT_RDWR) -> None:
        self._leave(how)
        try:
            # Wake up the reading thread with `shutdown`, because the kernel does not close a socket
            # while a thread reads from it.
            self._sock.shutdown(sides)
        except OSError:
            pass  # the client has already closed the connection
        self._sock.close()

    def _leave(self, how: str) -> None:
        def change() -> None:
            if self._left is None:
                self._left = how
            self._reads = True

        self._stage.note(change)

    def sid(self, to: str) -> str:
        """Return the ID of the client's first subscription that matches the subject `to`.

        Raises `ScriptError` if there is no such subscription.
        """
        with self._stage.changed:
            operations = list(self.operations)
        listening: dict[str, str] = {}
        for each in operations:
            if each.verb == "SUB":
                listening[each.sid] = each.subject
            elif each.verb == "UNSUB" and len(each.words) == 2:
                # A real server may still send messages for a subscription that has just ended. Keep
                # it, but at the end, so that other subscriptions take precedence.
                listening[each.sid] = listening.pop(each.sid, "")
        for sid, pattern in listening.items():
            if _matches(pattern, to):
                return sid
        raise self._error(
            f"no subscription to {to!r}, only to {list(listening.values())}", self._seen
        )

    def _error(self, what: str, since: int) -> ScriptError:
        """Return an error with the operations received since `since`."""
        with self._stage.changed:
            received = [repr(each) for each in self.operations[since:]][-_SHOWN:]
        rest = self._splitter.rest
        parts = [f"connection {self.number}, step {self._step}: {what}"]
        if self._left is not None:
            parts.append(self._left)
        parts.append("received since the previous step: " + ("; ".join(received) or "nothing"))
        if rest:
            parts.append(f"incomplete: {rest[:60]!r}")
        return ScriptError("\n  ".join(parts))

    def pump(self) -> None:
        """Read and record operations until the connection ends. Each peer has a thread for this."""
        while True:
            self._stage.wait(lambda: self._reads or None, float("inf"))
            try:
                data = self._sock.recv(_READ_SIZE)
            except OSError as error:
                self._leave(f"the connection broke: {error}")
                return
            if not data:
                self._leave("the client closed the connection")
                return
            try:
                found = self._splitter.feed(data)
            except ValueError as error:
                self._end(f"the client violated the protocol: {error}")
                return
            for operation in found:
                # Answer a PING before it is recorded. Once it is recorded, the script receives it
                # and may close the connection. All earlier operations are recorded already, because
                # the PONG confirms them.
                if operation.verb == "PING" and self._answers:
                    self._pong()
                self._note(operation)

    def _note(self, operation: Operation) -> None:
        self._stage.note(lambda: self.operations.append(operation))

    def _pong(self) -> None:
        with self._sending:
            try:
                self._sock.sendall(b"PONG\r\n")
            except OSError:
                pass  # the next read reports that the connection is closed


def _matches(pattern: str, subject: str) -> bool:
    wild = {"*": r"[^.]+", ">": r".+"}
    regex = r"\.".join(wild.get(token, re.escape(token)) for token in pattern.split("."))
    return re.fullmatch(regex, subject) is not None
