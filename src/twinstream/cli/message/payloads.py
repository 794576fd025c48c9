"""The messages that `pub` sends. Their data is an argument, or is read from files or stdin.

The text `{n}` in arguments of the command (the subject, the data, header values and the message
id) is replaced by the number of the message, from 1. The bytes of files and of standard input are
sent unchanged, unless the user asks for the replacement there, too.
"""

from __future__ import annotations

import os
import re
import select
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import click
from attrs import frozen

from twinstream.core.wire.subjects import BLANKS

_PLACEHOLDER: Final = re.compile(rb"\{\{n\}\}|\{n\}")


def numbered(text: bytes, number: int) -> bytes:
    """Return a text with `number` in place of `{n}`, and with `{n}` in place of `{{n}}`."""
    return _PLACEHOLDER.sub(lambda found: b"{n}" if found[0] == b"{{n}}" else b"%d" % number, text)


def _filled(text: str, number: int) -> str:
    return numbered(text.encode(errors="surrogateescape"), number).decode(errors="surrogateescape")


@frozen(kw_only=True)
class Draft:
    """The subject, headers and id of the messages, before `{n}` is replaced."""

    subject: str
    headers: tuple[tuple[str, str], ...]
    message_id: str | None

    def subject_of(self, number: int) -> str:
        """Return the subject of message `number`."""
        return _filled(self.subject, number)

    def headers_of(self, number: int) -> dict[str, list[str]]:
        """Return the headers of message `number`; a name may have several values."""
        filled: dict[str, list[str]] = {}
        for name, value in self.headers:
            filled.setdefault(name, []).append(_filled(value, number))
        return filled

    def message_id_of(self, number: int) -> str | None:
        """Return the message id of message `number` for duplicate detection; None without one."""
        return None if self.message_id is None else _filled(self.message_id, number)


def parse_headers(lines: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the name and the value of each `Name: value` line.

    Raises a usage error that shows the format.
    """
    pairs: list[tuple[str, str]] = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip(BLANKS):
            raise click.BadParameter(
                f"{line!r} needs a name and a colon; write it like 'Name: value'",
                param_hint="--header",
            )
        pairs.append((name.strip(BLANKS), value.strip(BLANKS)))
    return tuple(pairs)


Separator = bytes | None
"""The separator between messages: a newline, NUL, or None if all data is one message."""

_READ_SIZE: Final = 1 << 16
# The seconds between two checks whether `stop` is set.
_STOP_CHECK: Final = 0.1


def payloads(
    data: str | None,
    files: Sequence[Path],
    separator: Separator,
    count: int,
    stop: threading.Event,
    *,
    template: bool,
) -> Iterator[bytes]:
    """Yield the payload of each message.

    `{n}` is replaced in `data`, and with `template` also in files and in standard input.

    Without `data` and `files` (or with `-`), standard input is read until it ends or `stop`
    is set. With a separator and a `count` of 1, each payload of standard input is yielded as
    soon as it has arrived. Otherwise all data is read first. Then the list of payloads is yielded
    `count` times.
    """
    if data is not None and data != "-":
        sources, template = [argument(data)], True
    elif files:
        sources = [file.read_bytes() for file in files]
    elif separator is not None and count == 1:
        yield from _numbered(_cut(standard_input(stop), separator), template)
        return
    else:
        sources = [b"".join(standard_input(stop))]
    parts = [part for source in sources for part in _parts(source, separator)]
    yield from _numbered((part for _ in range(count) for part in parts), template)


def argument(data: str) -> bytes:
    """Return the original bytes of a command-line argument, even if they are not UTF-8."""
    return data.encode(errors="surrogateescape")


def standard_input(stop: threading.Event) -> Iterator[bytes]:
    """Yield the data of standard input until it ends or `stop` is set.

    Python resumes a blocking read after a signal handler, so Ctrl-C would not end the read. This
    function waits for input with a time limit instead, and checks `stop` after each wait.
    """
    try:
        number = sys.stdin.fileno()
    except (OSError, ValueError):  # not a real file, for example in a test
        yield sys.stdin.buffer.read()
        return
    while not stop.is_set():
        ready, _, _ = select.select([number], [], [], _STOP_CHECK)
        if not ready:
            continue
        piece = os.read(number, _READ_SIZE)
        if not piece:
            return
        yield piece


def _parts(source: bytes, separator: Separator) -> list[bytes]:
    return [source] if separator is None else list(_cut((source,), separator))


def _cut(pieces: Iterable[bytes], separator: bytes) -> Iterator[bytes]:
    """Yield each part between separators as soon as it has arrived, because data may be endless.

    A line may also end with a carriage return and a newline. An empty part after the last
    separator is not yielded.
    """
    ending = b"\r" if separator == b"\n" else b""
    rest: list[bytes] = []
    for piece in pieces:
        first, *more = piece.split(separator)
        rest.append(first)
        for part in more:
            yield b"".join(rest).removesuffix(ending)
            rest = [part]
    last = b"".join(rest)
    if last:
        yield last


def at_rate(parts: Iterator[bytes], rate: float | None, asked: threading.Event) -> Iterator[bytes]:
    """Yield at most `rate` parts per second until `asked` is set.

    If `rate` is None, yield all parts without a pause; the caller checks `asked`.
    """
    if rate is None:
        yield from parts
        return
    started = time.monotonic()
    for number, part in enumerate(parts):
        pause = max(0.0, started + number / rate - time.monotonic())
        if asked.wait(min(pause, threading.TIMEOUT_MAX)):
            return
        yield part


def _numbered(parts: Iterable[bytes], template: bool) -> Iterator[bytes]:
    for number, part in enumerate(parts, start=1):
        yield numbered(part, number) if template else part
