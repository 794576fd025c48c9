"""Bytes as a server writes them, for tests without a server."""

from __future__ import annotations

from twinstream.core.wire.protocol import Frame

__all__ = ["block", "delivery", "hmsg", "msg", "status_frame"]


def msg(subject: bytes, sid: bytes, payload: bytes, reply: bytes = b"") -> bytes:
    head = b" ".join(part for part in (b"MSG", subject, sid, reply) if part)
    return b"%b %d\r\n%b\r\n" % (head, len(payload), payload)


def hmsg(subject: bytes, sid: bytes, headers: bytes, payload: bytes, reply: bytes = b"") -> bytes:
    head = b" ".join(part for part in (b"HMSG", subject, sid, reply) if part)
    size = len(headers)
    return b"%b %d %d\r\n%b%b\r\n" % (head, size, size + len(payload), headers, payload)


def block(first: str, **headers: object) -> bytes:
    """Return a header block; `first` is what follows the version, underscores become dashes."""
    lines = [f"NATS/1.0{first}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def status_frame(
    code: int, text: str = "", token: bytes = b"T", *, reply: bytes = b"", **headers: object
) -> Frame:
    head = block(f" {code} {text}" if text else f" {code}", **headers)
    return (b"_INBOX.x." + token, reply, len(head), head + b"\r\n")


def delivery(seq: int, data: bytes = b"x", subject: bytes = b"orders.new") -> Frame:
    reply = b"$JS.ACK.S.C.1.%d.%d.1700000000000000000.0" % (seq, seq)
    return (subject, reply, 0, data + b"\r\n")
