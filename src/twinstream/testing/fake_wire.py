"""The NATS protocol for the fake server: parse operations, and write frames.

This module does not use the SDK's parser, because a test helper that shares code with the SDK also
shares its bugs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["Operation", "Splitter", "header_block", "info_line", "message_frame"]

# A word of a line. Only spaces and tabs separate words, because a subject may contain other white
# space.
_WORD: Final = re.compile(r"[^ \t]+")
_WITH_PAYLOAD: Final = {"PUB", "HPUB", "MSG", "HMSG"}
_WITH_HEADERS: Final = {"HPUB", "HMSG"}
# For each verb: the number of words if the line has a reply subject, and this subject's index.
_REPLY: Final = {"PUB": (4, 2), "HPUB": (5, 2), "MSG": (5, 3), "HMSG": (6, 3)}


class Operation:
    """One protocol operation: its line without the line break, its headers and its payload."""

    __slots__ = ("headers", "line", "payload", "words")

    def __init__(self, line: str, headers: bytes = b"", payload: bytes = b"") -> None:
        self.line: Final = line
        """The line without its line break.

        It may have the random name of an inbox, in which two or three letters, as in `JS`, may
        occur by chance. Such a name has no `$`.
        """
        self.words: Final[list[str]] = _WORD.findall(line)
        """The words of the line."""
        self.headers: Final = headers
        """The header block, or empty."""
        self.payload: Final = payload
        """The payload, or empty."""

    @property
    def verb(self) -> str:
        """The first word of the line in upper case, such as PUB; empty for an empty line."""
        return self.words[0].upper() if self.words else ""

    @property
    def subject(self) -> str:
        """The subject of a publish, a subscription or a message; empty for other operations."""
        has_one = self.verb in _WITH_PAYLOAD or self.verb == "SUB"
        return self.words[1] if has_one and len(self.words) > 1 else ""

    @property
    def reply(self) -> str:
        """The reply subject of a publish or message; empty if there is none."""
        length, place = _REPLY.get(self.verb, (0, 0))
        return self.words[place] if length and len(self.words) == length else ""

    @property
    def sid(self) -> str:
        """The subscription ID of SUB, UNSUB, MSG or HMSG; empty for other operations."""
        match self.verb:
            case "SUB":
                return self.words[-1]
            case "UNSUB":
                return self.words[1]
            case "MSG" | "HMSG":
                return self.words[2]
            case _:
                return ""

    @property
    def json(self) -> Any:
        """The parsed JSON of the payload, or of the line of a CONNECT or INFO.

        Raises `ValueError` if there is no JSON.
        """
        if self.verb in {"CONNECT", "INFO"}:
            return json.loads(self.line.partition(" ")[2])
        return json.loads(self.payload)

    @property
    def data(self) -> bytes:
        """The bytes of the operation on the wire."""
        data = self.line.encode("utf-8", "surrogateescape") + b"\r\n"
        if self.verb in _WITH_PAYLOAD:
            data += self.headers + self.payload + b"\r\n"
        return data

    def __repr__(self) -> str:
        shown = self.payload if len(self.payload) <= 60 else self.payload[:60] + b"..."
        return f"{self.line} {shown!r}" if self.verb in _WITH_PAYLOAD else self.line


class Splitter:
    """A parser that splits a byte stream into operations."""

    def __init__(self) -> None:
        self._buffer: Final = bytearray()

    @property
    def rest(self) -> bytes:
        """The bytes of an operation that is not complete yet."""
        return bytes(self._buffer)

    def feed(self, data: bytes) -> list[Operation]:
        """Add bytes, and return the operations that they complete.

        Raises `ValueError` for a size that is no number.
        """
        self._buffer.extend(data)
        found: list[Operation] = []
        while (operation := self._parse()) is not None:
            found.append(operation)
        return found

    def _parse(self) -> Operation | None:
        """Remove one operation from the buffer and return it, or None if it is incomplete."""
        buffer = self._buffer
        end = buffer.find(b"\n")
        if end < 0:
            return None
        line = bytes(buffer[:end]).rstrip(b"\r").decode("utf-8", "surrogateescape")
        words: list[str] = _WORD.findall(line)
        verb = words[0].upper() if words else ""
        if verb not in _WITH_PAYLOAD:
            del buffer[: end + 1]
            return Operation(line)
        start, size = end + 1, int(words[-1])
        cut = int(words[-2]) if verb in _WITH_HEADERS else 0
        if len(buffer) < start + size + 2:
            return None
        body = bytes(buffer[start : start + size])
        del buffer[: start + size + 2]
        return Operation(line, body[:cut], body[cut:])


def info_line(values: Mapping[str, Any]) -> bytes:
    """Return the bytes of an INFO with the members `values`."""
    return b"INFO " + json.dumps(values).encode() + b"\r\n"


def header_block(first: str, headers: Mapping[str, object]) -> bytes:
    """Return a header block. `first` is the text after the version on the first line."""
    lines = [f"NATS/1.0{' ' if first else ''}{first}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape")


def message_frame(subject: str, sid: str, reply: str, headers: bytes, payload: bytes) -> bytes:
    """Return the bytes of a MSG, or of an HMSG if there are headers."""
    words = [subject, sid, reply] if reply else [subject, sid]
    head = " ".join(words).encode("utf-8", "surrogateescape")
    if headers:
        size = len(headers)
        return b"HMSG %b %d %d\r\n%b%b\r\n" % (head, size, size + len(payload), headers, payload)
    return b"MSG %b %d\r\n%b\r\n" % (head, len(payload), payload)
