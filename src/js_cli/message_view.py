"""How a consumed message is shown: for people, and as JSON for machines."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from js_sync import Message


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
    if message.headers:
        shown["headers"] = dict(headers_of(message))
    try:
        shown["data"] = message.data.decode()
    except UnicodeDecodeError:
        shown["data_base64"] = base64.b64encode(message.data).decode()
    return shown


def print_message(console: Console, message: Message) -> None:
    """Print a line about the message, its headers, and its payload."""
    about = message.metadata
    head = Text(f"{about.stream} {about.stream_seq}", style="bold cyan")
    head.append(f"  {message.subject}", style="bold")
    if about.num_delivered > 1:
        head.append(f"  delivery {about.num_delivered}", style="yellow")
    console.print(head)
    for name, values in headers_of(message):
        for value in values:
            console.print(Text(f"  {name}: {value}", style="dim"))
    console.print(Text(_payload_text(message.data)), soft_wrap=True)


def _payload_text(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"({len(data):,} bytes, not text)"
    # Control characters of a stranger's payload must not reach the terminal.
    return "".join(c if c.isprintable() or c in "\n\t" else json.dumps(c)[1:-1] for c in text)


def headers_of(message: Message) -> list[tuple[str, list[str]]]:
    """Return the header names of a message with all values of each."""
    return [(name, message.headers.get_all(name)) for name in message.headers]
