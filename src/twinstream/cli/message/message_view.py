"""Print messages for people, or convert them to JSON."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from twinstream.cli.escapes import harmless
from twinstream.cli.screen import shown_time

if TYPE_CHECKING:
    from js_sync import Message, StreamMessage


def as_json(message: Message) -> dict[str, object]:
    """Return a message as a JSON object.

    `data` is the payload as text if it is UTF-8; any other payload is in `data_base64`.
    """
    about = message.metadata
    shown: dict[str, object] = {
        "subject": message.subject,
        "stream_name": about.stream,
        "seq": about.stream_seq,
        "time_ns": about.timestamp_ns,
        "num_delivered": about.num_delivered,
        "num_pending": about.num_pending,
    }
    return shown | _content(message)


def stored_as_json(message: StreamMessage) -> dict[str, object]:
    """Return a stored message as a JSON object, with its payload as in `as_json`."""
    shown: dict[str, object] = {
        "subject": message.subject,
        "stream_name": message.stream_name,
        "seq": message.seq,
        "time_ns": message.time.ns,
    }
    return shown | _content(message)


def _content(message: Message | StreamMessage) -> dict[str, object]:
    shown: dict[str, object] = {}
    if message.headers:
        shown["headers"] = dict(headers_of(message))
    return shown | payload(message.data)


def payload(data: bytes) -> dict[str, str]:
    """Return a JSON object with the payload: in `data` if it is UTF-8, else in `data_base64`."""
    try:
        return {"data": data.decode()}
    except UnicodeDecodeError:
        return {"data_base64": base64.b64encode(data).decode()}


# A piece of text, and its style for rich.
_Part = tuple[str, str]


def print_message(console: Console, message: Message) -> None:
    """Print a summary line of a delivered message, then its headers and its payload."""
    about = message.metadata
    head = [(f"{about.stream} {about.stream_seq}", "bold cyan"), _subject(message)]
    if about.num_delivered > 1:
        head.append((f"  delivery {about.num_delivered}", "yellow"))
    _print_with(console, head, message)


def print_stored(console: Console, message: StreamMessage) -> None:
    """Print a summary line of a stored message, then its headers and its payload."""
    head = [(f"{message.stream_name} {message.seq}", "bold cyan"), _subject(message)]
    head.append((f"  {shown_time(message.time)}", "dim"))
    _print_with(console, head, message)


def _subject(message: Message | StreamMessage) -> _Part:
    return f"  {harmless(message.subject)}", "bold"


def _print_with(console: Console, head: list[_Part], message: Message | StreamMessage) -> None:
    """Print a line `head`, and then the headers and the payload of a message."""
    lines = [head]
    for name, values in headers_of(message):
        lines += ([("  " + harmless(f"{name}: {value}"), "dim")] for value in values)
    lines.append([(printable(message.data), "")])
    if console.is_terminal:
        for line in lines:
            console.print(Text.assemble(*line), soft_wrap=True)
    else:
        # This prints the same text as the console without styles, but ten times as fast.
        click.echo("\n".join("".join(text for text, _ in line) for line in lines))


def printable(data: bytes) -> str:
    """Return bytes as text with escaped control characters; their size if they are not UTF-8.

    Use it only in commands whose `--json` has the bytes.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"({len(data):,} bytes, not text: see --json)"
    return harmless(text)


def headers_of(message: Message | StreamMessage) -> list[tuple[str, list[str]]]:
    """Return each header name of a message with all values of the header."""
    return [(name, message.headers.get_all(name)) for name in message.headers]
