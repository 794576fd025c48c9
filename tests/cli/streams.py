"""What tests of the command line put into streams."""

from __future__ import annotations

import js_sync


def fill(jet: js_sync.JetStream, stream: str, count: int) -> None:
    """Publish empty messages, each on a subject of its own."""
    for number in range(count):
        jet.publish(f"{stream}.{number}")
