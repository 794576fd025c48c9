"""Print messages of core NATS for people, or convert them to JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinstream.cli.message.message_view import payload, printable
from twinstream.cli.screen import print_text

if TYPE_CHECKING:
    from js_sync.client.core_message import CoreMessage


def core_as_json(message: CoreMessage) -> dict[str, object]:
    """Return a message as a JSON object, with its payload in `data` or `data_base64`."""
    shown: dict[str, object] = {"subject": message.subject}
    if message.reply:
        shown["reply"] = message.reply
    if message.headers:
        shown["headers"] = {name: message.headers.get_all(name) for name in message.headers}
    return shown | payload(message.data)


def print_core(message: CoreMessage, *, head: str = "") -> None:
    """Print the line `head`, if it is not empty, then the headers and the payload of a message."""
    lines = [head] if head else []
    for name in message.headers:
        lines += [f"  {name}: {value}" for value in message.headers.get_all(name)]
    print_text("\n".join([*lines, printable(message.data)]))
