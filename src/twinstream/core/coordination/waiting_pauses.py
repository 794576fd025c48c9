"""The pauses of a waiter between its requests for a slot that another client holds."""

from __future__ import annotations

from typing import Final

from twinstream.core.deadline import Backoff

__all__ = ["pause_after", "pause_until_expiry"]

# In seconds.
_BACKOFF: Final = Backoff(0.5, 10.0)

# Servers remove expired records late. In seconds: the time after the end of a TTL at which a waiter
# first checks again, and the pause before further checks.
_REMOVAL: Final = 0.02
_OVERDUE: Final = 0.1


def pause_after(attempt: int) -> float:
    """Return how many seconds to wait after a failed request; the first one is 1."""
    return _BACKOFF.pause(attempt)


def pause_until_expiry(pause: float, ttl: float, age: float) -> float:
    """Return `pause`, or less if the record of the holder expires earlier.

    The record lives for `ttl` seconds, and was written `age` seconds ago.
    """
    remaining = ttl + _REMOVAL - age
    return min(pause, remaining) if remaining > 0 else _OVERDUE
