"""How a message is shown, consumed or stored: for people, and as JSON for machines."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from js_cli.screen import harmless

if TYPE_CHECKING:
    from js_sync import Message, StreamMessage


def as_json(message: Message) -> dict[str, object]:
    """Return a message as a JSON object.

    ``data`` is text where the payload is UTF-8; any other payload is in ``data_base64``.
    """
    about = message.metadata
    shown: dict[str, object] = {
        "subject": message.subject,
        "stream": about.stream,
        "seq": about.stream_seq,
        "time_ns": about.timestamp_ns,
        "delivery": about.num_delivered,
        "pending": about.num_pending,
    }
    return shown | _content(message)


def stored_as_json(message: StreamMessage) -> dict[str, object]:
    """Return a stored message as a JSON object, its payload as in ``as_json``."""
    shown: dict[str, object] = {
        "subject": message.subject,
        "stream": message.stream,
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
    """Return a payload as a member of a JSON object: as text if it is UTF-8, else in base64."""
    try:
        return {"data": data.decode()}
    except UnicodeDecodeError:
        return {"data_base64": base64.b64encode(data).decode()}


def print_message(console: Console, message: Message) -> None:
    """Print a line about the message, its headers, and its payload."""
    about = message.metadata
    head = Text(f"{about.stream} {about.stream_seq}", style="bold cyan")
    head.append(f"  {harmless(message.subject)}", style="bold")
    if about.num_delivered > 1:
        head.append(f"  delivery {about.num_delivered}", style="yellow")
    _print_with(console, head, message)


def print_stored(console: Console, message: StreamMessage) -> None:
    """Print a line about a stored message, its headers, and its payload."""
    head = Text(f"{message.stream} {message.seq}", style="bold cyan")
    head.append(f"  {harmless(message.subject)}", style="bold")
    head.append(f"  {message.time.isoformat(' ', 'milliseconds')}", style="dim")
    _print_with(console, head, message)


def _print_with(console: Console, head: Text, message: Message | StreamMessage) -> None:
    console.print(head, soft_wrap=True)
    for name, values in headers_of(message):
        for value in values:
            console.print(Text(f"  {name}: {harmless(value)}", style="dim"), soft_wrap=True)
    console.print(Text(printable(message.data)), soft_wrap=True)


def printable(data: bytes) -> str:
    """Return a stranger's bytes as text that does nothing to a terminal."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"({len(data):,} bytes, not text)"
    return harmless(text)


def headers_of(message: Message | StreamMessage) -> list[tuple[str, list[str]]]:
    """Return the header names of a message with all values of each."""
    return [(name, message.headers.get_all(name)) for name in message.headers]
