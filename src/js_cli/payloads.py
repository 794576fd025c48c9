"""What ``pub`` sends: data from the argument, a file or standard input, one message or many.

In subject, data, header values and message id, ``{n}`` stands for the number of the message,
from 1.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click
from attrs import frozen

PLACEHOLDER: Final = "{n}"


@frozen(kw_only=True)
class Draft:
    """One message as the user gave it, before ``{n}`` is filled in."""

    subject: str
    headers: tuple[tuple[str, str], ...]
    message_id: str | None

    def subject_of(self, number: int) -> str:
        """Return the subject of message ``number``."""
        return self.subject.replace(PLACEHOLDER, str(number))

    def headers_of(self, number: int) -> dict[str, list[str]]:
        """Return the headers of message ``number``; a name may have several values."""
        filled: dict[str, list[str]] = {}
        for name, value in self.headers:
            filled.setdefault(name, []).append(value.replace(PLACEHOLDER, str(number)))
        return filled

    def message_id_of(self, number: int) -> str | None:
        """Return the id by which the server knows message ``number`` again."""
        return self.message_id and self.message_id.replace(PLACEHOLDER, str(number))


def parse_headers(lines: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Split ``Name: value`` lines; raises a usage error that shows the form."""
    pairs: list[tuple[str, str]] = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise click.BadParameter(
                f"{line!r} has no colon; write it like 'Name: value'", param_hint="--header"
            )
        pairs.append((name.strip(), value.strip()))
    return tuple(pairs)


def payloads(data: str | None, file: Path | None, lines: bool, count: int) -> Iterator[bytes]:
    """Yield the payload of each message.

    Without ``data`` and ``file`` (or with ``-``) standard input is read; with ``lines`` each of
    its lines is one message. The whole is sent ``count`` times.
    """
    if data is not None and data != "-":
        source = data.encode()
    elif file is not None:
        source = file.read_bytes()
    else:
        source = None
    if lines and source is None:
        yield from _numbered(line.rstrip(b"\r\n") for line in sys.stdin.buffer)
        return
    whole = sys.stdin.buffer.read() if source is None else source
    parts = whole.splitlines() if lines else [whole]
    yield from _numbered(part for _ in range(count) for part in parts)


def _numbered(parts: Iterator[bytes]) -> Iterator[bytes]:
    placeholder = PLACEHOLDER.encode()
    for number, part in enumerate(parts, start=1):
        yield part.replace(placeholder, b"%d" % number)
