"""Limits on the messages that a publisher has in flight."""

from __future__ import annotations

from typing import Final

from twinstream.core.publish.retry import RetryPolicy
from twinstream.errors import BadArgument
from twinstream.models.records import field, frozen

__all__ = [
    "BATCH_MESSAGES",
    "INGEST_INTERVAL",
    "INGEST_INTERVALS",
    "INGEST_WINDOW",
    "WINDOW",
    "WINDOW_BYTES",
    "PublishLimits",
]

# Messages, as in the Go client.
WINDOW: Final = 4000
# Bytes, to limit the memory of the publisher.
WINDOW_BYTES: Final = 32 << 20

BATCH_MESSAGES: Final = 1000
"""The server's own limit for one atomic batch, unless its configuration says otherwise."""

INGEST_INTERVAL: Final = 500
"""The longest interval of a fast ingest that servers of 2.14 and 2.15 choose."""
INGEST_INTERVALS: Final = 2
"""Intervals in flight: the server works on one while the next is sent (ADR-50)."""
INGEST_WINDOW: Final = INGEST_INTERVALS * INGEST_INTERVAL


def _window(value: int) -> int:
    return _from_one(value, "window")


def _window_bytes(value: int) -> int:
    return _from_one(value, "window_bytes")


def _from_one(value: int, name: str) -> int:
    if type(value) is not int or value < 1:
        raise BadArgument(f"{name} must be a number from 1 up, got {value!r}")
    return value


@frozen(kw_only=True)
class PublishLimits:
    """At most `window` messages and `window_bytes` bytes in flight, each for `timeout` seconds."""

    window: int = field(default=WINDOW, converter=_window)
    window_bytes: int = field(default=WINDOW_BYTES, converter=_window_bytes)
    timeout: float
    retry: RetryPolicy

    def is_full(self, count: int, size: int, more: int) -> bool:
        """Return whether another message of `more` bytes has to wait.

        A message that exceeds `window_bytes` by itself is sent alone.
        """
        return count > 0 and (count >= self.window or size + more > self.window_bytes)
