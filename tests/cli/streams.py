"""Helpers that fill streams for tests of the command line."""

from __future__ import annotations

import js_sync


def fill(jet: js_sync.JetStream, stream: str, count: int) -> None:
    """Publish empty messages, each on its own subject."""
    for number in range(count):
        jet.publish(f"{stream}.{number}")
