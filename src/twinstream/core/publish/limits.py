"""How much of a publisher may be under way, and for how long."""

from __future__ import annotations

from typing import Final

from attrs import field, frozen

from twinstream.errors import BadArgument
from twinstream.core.publish.retry import RetryPolicy

__all__ = ["WINDOW", "WINDOW_BYTES", "PublishLimits"]

# As in the Go client.
WINDOW: Final = 4000
# What a program may be surprised to find in its memory.
WINDOW_BYTES: Final = 32 << 20


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
    """At most `window` messages and `window_bytes` bytes, each for `timeout` seconds."""

    window: int = field(default=WINDOW, converter=_window)
    window_bytes: int = field(default=WINDOW_BYTES, converter=_window_bytes)
    timeout: float
    retry: RetryPolicy

    def is_full(self, count: int, size: int, more: int) -> bool:
        """Tell whether another message of `more` bytes has to wait.

        One that is larger than everything allowed goes alone.
        """
        return count > 0 and (count >= self.window or size + more > self.window_bytes)
