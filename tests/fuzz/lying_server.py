"""A server that lies: it answers as a NATS server does, then not quite, then not at all."""

from __future__ import annotations

import json
import re
import socket
import threading
from random import Random
from typing import Any, Final, Self

from tests.fuzz.grammar import ANSWERS, INFO, Grammar

__all__ = ["LyingServer"]

_PUB: Final = re.compile(rb"(H?)PUB (\S+) (?:(\S+) )?(?:(\d+) )?(\d+)\r\n")
_SUB: Final = re.compile(rb"SUB (\S+) (?:\S+ )?(\d+)\r\n")
_MOST: Final = 1 << 20
_PLACE: Final = b"$JS.ACK.S.c.1.2.3.1700000000000000000.4 "
_KINDS: Final = (
    (b".STREAM.NAMES", "stream_names"),
    (b".STREAM.MSG.GET.", "stream_msg_get"),
    (b".STREAM.", "stream_info"),
    (b".CONSUMER.", "consumer_info"),
)


class LyingServer:
    """Listens on loopback; `honesty` is the share of answers that are as they should be."""

    def __init__(self, seed: int, honesty: float) -> None:
        self._grammar: Final = Grammar(seed)
        self._random: Final = Random(seed)
        self._honesty: Final = honesty
        self._listener: Final = socket.create_server(("127.0.0.1", 0))
        self._threads: Final[list[threading.Thread]] = []
        self._sockets: Final[list[socket.socket]] = []
        self._mutex: Final = threading.Lock()
        self._is_over = False
        self.connections = 0

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"nats://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._mutex:
            for sock in self._sockets:
                _end(sock)
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive(), "the lying server did not end"

    def _start(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._is_over:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            # Pieces go out at once: the client is to see them apart, and soon.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._mutex:
                self._sockets.append(sock)
                self.connections += 1
            if self._is_over:
                _end(sock)
            self._start(self._serve, sock)

    def _serve(self, sock: socket.socket) -> None:
        try:
            with sock:
                self._converse(sock)
        except OSError:
            return

    def _converse(self, sock: socket.socket) -> None:
        honest = {**INFO, "connect_urls": [], "nonce": ""}
        info = b"INFO " + json.dumps(honest).encode() + b"\r\n"
        # Most clients are to get beyond the greeting.
        sock.sendall(self._grammar.mutated(info) if self._random.random() < 0.1 else info)
        inboxes: dict[bytes, bytes] = {}
        held = b""
        while data := sock.recv(1 << 16):
            held += data
            if len(held) > _MOST:
                return
            *lines, held = held.split(b"\n")
            for line in lines:
                self._react(sock, line + b"\n", inboxes)

    def _react(self, sock: socket.socket, line: bytes, inboxes: dict[bytes, bytes]) -> None:
        if line.startswith(b"PING"):
            sock.sendall(b"PONG\r\n")
        elif found := _SUB.match(line):
            inboxes[found[1]] = found[2]
        elif (found := _PUB.match(line)) and found[3]:
            self._answer(sock, found[2], found[3], inboxes)

    def _answer(
        self, sock: socket.socket, subject: bytes, reply: bytes, inboxes: dict[bytes, bytes]
    ) -> None:
        sid = _sid_of(reply, inboxes)
        if sid is None:
            return
        for _ in range(self._random.choice((0, 1, 1, 1, 1, 2, 5))):
            self._say(sock, self._reply(subject, reply, sid))

    def _reply(self, subject: bytes, reply: bytes, sid: bytes) -> bytes:
        """Return one answer: the one that belongs to the subject, or any message."""
        grammar = self._grammar
        if self._is_honest():
            headers, payload = b"", json.dumps(_fitting(subject)).encode()
            place = _PLACE if b".MSG.NEXT." in subject else b""
        else:
            headers = grammar.headers() if self._random.random() < 0.5 else b""
            payload = grammar.payload()
            place = _PLACE if self._random.random() < 0.3 else b""
        sizes = b"%d" % (len(headers) + len(payload))
        if headers:
            sizes = b"%d %b" % (len(headers), sizes)
        line = b"%bMSG %b %b %b%b\r\n" % (b"H" if headers else b"", reply, sid, place, sizes)
        return line + headers + payload + b"\r\n"

    def _say(self, sock: socket.socket, data: bytes) -> None:
        if not self._is_honest():
            kind = self._random.randrange(5)
            if kind == 0:
                data = self._grammar.mutated(data)
            elif kind == 1:
                data += self._grammar.stream()
            elif kind == 2 and self._random.random() < 0.1:
                _end(sock)
                return
        for piece in self._grammar.pieces(data):
            sock.sendall(piece)

    def _is_honest(self) -> bool:
        return self._random.random() < self._honesty


def _sid_of(reply: bytes, inboxes: dict[bytes, bytes]) -> bytes | None:
    """Return the subscription that a reply subject belongs to."""
    for pattern, sid in inboxes.items():
        if reply == pattern or (pattern[-1:] in b"*>" and reply.startswith(pattern[:-1])):
            return sid
    return None


def _fitting(subject: bytes) -> dict[str, Any]:
    """Return an answer of the kind that a request to this subject wants."""
    for part, kind in _KINDS:
        if part in subject:
            return next(each for each in ANSWERS if kind in str(each.get("type")))
    return ANSWERS[0]


def _end(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
