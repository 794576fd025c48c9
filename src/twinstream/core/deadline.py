"""The clock, absolute deadlines that are passed down through calls, and the pauses of retries.

The clock is monotonic, so that a step of the system clock neither ends nor prolongs a wait.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from time import monotonic
from typing import Final

from twinstream.errors import BadArgument

__all__ = [
    "LONGEST",
    "LONGEST_WAIT",
    "NEVER",
    "Backoff",
    "Deadline",
    "Seconds",
    "finite_seconds",
    "monotonic",
    "seconds",
    "unsleeping",
]

Seconds = float | int | timedelta
"""A duration argument: seconds, or a timedelta."""


# On Linux `monotonic` stops while the machine is suspended, unlike the server's clock.
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

LONGEST: Final = 100
"""Maximum in years of durations sent to a server, well below the overflow of its clock."""

LONGEST_WAIT: Final = 10
"""Maximum in years of a wait."""

_YEAR: Final = 365.25 * 86_400


def unsleeping() -> float:
    """Return the time of a monotonic clock that includes suspended time, where supported."""
    return time.clock_gettime(_CLOCK)


def seconds(value: Seconds, name: str = "timeout", *, years: int = LONGEST_WAIT) -> float:
    """Return a duration argument in seconds, infinity included; `name` is used in errors.

    Raises `BadArgument` if it is not a duration, or a finite one of more than `years`, which is
    probably in nanoseconds by mistake: no application waits for 10 years.
    """
    if isinstance(value, timedelta):
        number = value.total_seconds()
    elif isinstance(value, float | int):
        number = float(value)
    else:
        number = math.nan
    if math.isnan(number) or number < 0:
        raise BadArgument(f"{name} must be a number of seconds >= 0, got {value!r}")
    if number > years * _YEAR and not math.isinf(number):
        raise BadArgument(_too_long(value, number, name, years))
    return number


def finite_seconds(value: Seconds, name: str = "timeout", *, years: int = LONGEST) -> float:
    """Return a duration that is sent to the server, which supports no infinite ones.

    The server stores times as nanoseconds since 1970 in 64 bits. A time after 2262 counts as over
    (2.11 to 2.15): the message is removed, the lock is free for others, the delay is zero.
    """
    number = seconds(value, name, years=years)
    if math.isinf(number):
        raise BadArgument(f"{name} must be finite: the server counts nanoseconds")
    return number


def _too_long(value: Seconds, number: float, name: str, most: int) -> str:
    text = f"{name} must be at most {most} years ({most * _YEAR:.0f} s), got {value!r}"
    if isinstance(value, timedelta):
        return text
    return (
        f"{text}, which is {number / _YEAR:.0f} years; durations are seconds or a timedelta: is"
        f" this {number / 1e9:g} s in nanoseconds?"
    )


class Deadline:
    """A point in monotonic time."""

    __slots__ = ("at",)

    def __init__(self, at: float) -> None:
        self.at: Final = at

    @classmethod
    def after(cls, timeout: Seconds | None) -> Deadline:
        """Return the deadline `timeout` seconds from now; None means never."""
        if timeout is None:
            return NEVER
        return cls(monotonic() + seconds(timeout))

    def remaining(self) -> float:
        """Return the seconds left, at least 0; infinite without a deadline."""
        return max(0.0, self.at - monotonic())

    def expired(self) -> bool:
        """Return whether the deadline has passed."""
        return self.at <= monotonic()

    def earlier(self, at: float) -> Deadline:
        """Return this deadline, or one at `at` if that is sooner."""
        return self if self.at <= at else Deadline(at)

    def __repr__(self) -> str:
        return "Deadline(never)" if self.at == math.inf else f"Deadline({self.remaining():.3f}s)"


NEVER: Final = Deadline(math.inf)


class Backoff:
    """Pauses between attempts: `first` seconds, then `factor` times as long, at most `longest`."""

    __slots__ = ("factor", "first", "longest")

    def __init__(self, first: float, longest: float = math.inf, factor: float = 2.0) -> None:
        self.first: Final = first
        self.longest: Final = longest
        # A power of integers could be too large to compute.
        self.factor: Final = float(factor)

    def pause(self, attempt: int) -> float:
        """Return the seconds to wait after a failed attempt; the first attempt is 1."""
        try:
            return min(self.first * self.factor ** (attempt - 1), self.longest)
        except OverflowError:
            return self.longest if self.first else 0.0

    def __iter__(self) -> Iterator[float]:
        """Iterate over the pauses after the first failed attempt, the second and so on."""
        return map(self.pause, count(1))
