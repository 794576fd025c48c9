"""Limits on the messages that a publisher has in flight."""

from __future__ import annotations

from typing import Final

from attrs import field, frozen

from twinstream.core.deadline import Seconds, response_seconds
from twinstream.core.publish.retry_pauses import RetryPolicy, retry_policy
from twinstream.errors import BadArgument

__all__ = [
    "BATCH_MESSAGES",
    "INGEST_INTERVAL",
    "INGEST_INTERVALS",
    "INGEST_WINDOW",
    "WINDOW",
    "WINDOW_BYTES",
    "PublishLimits",
    "limits_of",
]

WINDOW: Final = 4000
"""Maximum number of messages in flight, as in the Go client."""
WINDOW_BYTES: Final = 32 << 20
"""Maximum bytes in flight, which limits the memory that the publisher uses."""

BATCH_MESSAGES: Final = 1000
"""The server's default for the maximum number of messages in one atomic batch."""

INGEST_INTERVAL: Final = 500
"""The longest interval of acknowledgements that servers 2.14 and 2.15 choose for fast ingest."""
INGEST_INTERVALS: Final = 2
"""Intervals in flight. The server handles one while the client sends the next (ADR-50)."""
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
    """The limits of a publisher, and its retries.

    At most `window` messages with a total of `window_bytes` bytes are in flight. The publisher
    waits at most `timeout` seconds for the outcome of each message.
    """

    window: int = field(default=WINDOW, converter=_window)
    window_bytes: int = field(default=WINDOW_BYTES, converter=_window_bytes)
    timeout: float
    retry: RetryPolicy

    def is_full(self, count: int, size: int, more: int) -> bool:
        """Return whether another message of `more` bytes has to wait.

        `count` messages with `size` bytes are in flight. A message that exceeds `window_bytes` by
        itself is sent alone.
        """
        return count > 0 and (count >= self.window or size + more > self.window_bytes)


def limits_of(
    usual_timeout: float,
    window: int = WINDOW,
    timeout: Seconds | None = None,
    window_bytes: int = WINDOW_BYTES,
    retries: int | None = None,
    retry_wait: Seconds = 0.25,
) -> PublishLimits:
    """Check the arguments of a public method, and return them as `PublishLimits`.

    Without `timeout`, the timeout is `usual_timeout`. Raises `BadArgument` for invalid values.
    """
    return PublishLimits(
        window=window,
        window_bytes=window_bytes,
        timeout=response_seconds(timeout, usual_timeout),
        retry=retry_policy(retries, retry_wait),
    )
