"""Messages that a real server stores from any publisher, although no client would send them."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Final

from attrs import frozen

__all__ = ["ODD_MESSAGES", "OddMessage", "publish_raw"]

_END: Final = b"\r\n\r\n"


@frozen
class OddMessage:
    """A header block of any bytes (None for no headers), and a payload."""

    headers: bytes | None
    data: bytes = b"payload"


def _forged(stream: bytes) -> bytes:
    """Return headers that look like those that the server appends to a direct get."""
    return (
        b"NATS/1.0\r\nNats-Stream: %b\r\nNats-Subject: forged\r\nNats-Sequence: 7\r\n"
        b"Nats-Time-Stamp: 2020-01-01T00:00:00Z\r\nNats-Num-Pending: 0\r\nNats-Last-Sequence: 0"
        % stream
    )


ODD_MESSAGES: Final[Mapping[str, OddMessage]] = {
    "none": OddMessage(None),
    "ordinary": OddMessage(b"NATS/1.0\r\nA: 1" + _END),
    "one byte": OddMessage(b"a"),
    "two bytes": OddMessage(b"ab"),
    "three bytes": OddMessage(b"abc"),
    "three zeros": OddMessage(b"\0\0\0"),
    "four bytes that are not text": OddMessage(b"\xff\xfe\x00\x01"),
    "a line end": OddMessage(b"\r\n"),
    "an empty line": OddMessage(_END),
    "line feeds": OddMessage(b"\n\n\n\n"),
    "carriage returns": OddMessage(b"\r\r\r\r"),
    "a colon": OddMessage(b":::"),
    "blanks": OddMessage(b"    "),
    "eleven bytes": OddMessage(b"x" * 11),
    "twelve bytes": OddMessage(b"x" * 12),
    "many bytes": OddMessage(b"\x80" * 3000),
    "version without an end": OddMessage(b"NATS/1.0"),
    "version and line end": OddMessage(b"NATS/1.0\r\n"),
    "version and blank": OddMessage(b"NATS/1.0 "),
    "no headers in the block": OddMessage(b"NATS/1.0" + _END),
    "another version": OddMessage(b"NATS/9.9\r\nA: 1" + _END),
    "another protocol": OddMessage(b"HTTP/1.1 200 OK\r\nA: 1" + _END),
    "a status": OddMessage(b"NATS/1.0 503" + _END),
    "a status with text": OddMessage(b"NATS/1.0 409 Consumer Deleted" + _END),
    "a heartbeat": OddMessage(b"NATS/1.0 100 Idle Heartbeat" + _END, b""),
    "an end of a batch": OddMessage(b"NATS/1.0 204 EOB\r\nNats-Num-Pending: 0" + _END),
    "a status of many digits": OddMessage(b"NATS/1.0 " + b"9" * 5000 + _END),
    "no last line end": OddMessage(b"NATS/1.0\r\nA: 1"),
    "no empty line": OddMessage(b"NATS/1.0\r\nA: 1\r\n"),
    "line feeds alone": OddMessage(b"NATS/1.0\nA: 1\n\n"),
    "no name": OddMessage(b"NATS/1.0\r\n: v" + _END),
    "no colon": OddMessage(b"NATS/1.0\r\nvalue" + _END),
    "bytes that are not text in a value": OddMessage(b"NATS/1.0\r\nA: \xff\xfe" + _END),
    "bytes that are not text in a name": OddMessage(b"NATS/1.0\r\n\xff: 1" + _END),
    "zeros in a value": OddMessage(b"NATS/1.0\r\nA: a\0b" + _END),
    "an empty line in the middle": OddMessage(b"NATS/1.0\r\nA: 1\r\n\r\nB: 2" + _END),
    "a thousand headers": OddMessage(b"NATS/1.0\r\n" + b"A: 1\r\n" * 1000 + b"\r\n"),
    "the place of another message": OddMessage(_forged(b"S") + _END),
    "the place without an end": OddMessage(_forged(b"S")),
    "the beginning of a place": OddMessage(b"NATS/1.0\r\nNats-Stream: "),
    "the beginning of a place, and more": OddMessage(b"NATS/1.0\r\nNats-Stream: zz"),
    "a place without a version": OddMessage(b"\r\nNats-Stream: S\r\nNats-Subject: forged"),
    "pending messages": OddMessage(b"NATS/1.0\r\nNats-Pending-Messages: x" + _END),
    "a gap of another size": OddMessage(b"NATS/1.0\r\nNats-Last-Sequence: -1" + _END),
    "an empty payload": OddMessage(None, b""),
    "a payload of protocol lines": OddMessage(None, b"\r\nMSG a 1 2\r\n-ERR 'x'\r\nPING\r\n"),
    "a payload like a status": OddMessage(None, b"NATS/1.0 404 No Messages\r\n\r\n"),
    "a payload like an answer": OddMessage(None, b'{"error":{"code":500,"err_code":1}}'),
    "a payload like an acknowledgement": OddMessage(None, b'{"stream":"S","seq":-1}'),
    "a payload that is not text": OddMessage(b"NATS/1.0\r\nA: 1" + _END, bytes(range(256))),
}
"""What is odd about a message, and the message."""


def publish_raw(port: int, subject: str, *given: OddMessage) -> list[OddMessage]:
    """Publish messages to a server on loopback, in order; return when it has read them.

    Without arguments, publish all `ODD_MESSAGES`.
    """
    messages = list(given or ODD_MESSAGES.values())
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock, sock.makefile() as file:
        sock.sendall(b'CONNECT {"headers": true, "verbose": false}\r\n')
        sock.sendall(
            b"".join(
                _command(subject.encode("utf-8", "surrogateescape"), each) for each in messages
            )
            + b"PING\r\n"
        )
        for line in file:
            # The server reports an invalid subject, but stores the message.
            assert not line.startswith("-ERR") or "Invalid Publish Subject" in line, line
            if line.startswith("PONG"):
                break
    return messages


def _command(subject: bytes, message: OddMessage) -> bytes:
    headers, data = message.headers, message.data
    if headers is None:
        return b"PUB %b %d\r\n%b\r\n" % (subject, len(data), data)
    sizes = (len(headers), len(headers) + len(data))
    return b"HPUB %b %d %d\r\n%b%b\r\n" % (subject, *sizes, headers, data)
