"""Durations, deadlines, a clock, and the pauses of retries.

The clocks are monotonic, so that a change of the system clock neither ends nor prolongs a wait.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from time import monotonic
from typing import Final

from twinstream.errors import BadArgument, RequestTimeout, TwinstreamError

__all__ = [
    "LONGEST",
    "LONGEST_WAIT",
    "NEVER",
    "Backoff",
    "Deadline",
    "Failures",
    "Seconds",
    "finite_seconds",
    "is_cut_short",
    "monotonic",
    "response_seconds",
    "seconds",
    "unsleeping",
]

Seconds = float | int | timedelta
"""A duration as an argument: a number of seconds, or a timedelta."""


# On Linux, CLOCK_MONOTONIC stops while the machine is suspended, but the server's clock goes on.
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

LONGEST: Final = 100
"""The longest duration in years in a request, well below the overflow of the server's clock."""

LONGEST_WAIT: Final = 10
"""The longest wait in years."""

_YEAR: Final = 365.25 * 86_400


def unsleeping() -> float:
    """Return the time of a monotonic clock, in seconds.

    Where the system supports it, the clock also runs while the machine is suspended.
    """
    return time.clock_gettime(_CLOCK)


def seconds(value: Seconds, name: str = "timeout", *, years: int = LONGEST_WAIT) -> float:
    """Return a duration in seconds, which may be infinite.

    Raises `BadArgument`, with `name` in its message, for a value that is not a duration, and for a
    finite duration of more than `years` years. Such a value is probably in nanoseconds by mistake,
    as no application waits for 10 years.
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


def response_seconds(value: Seconds | None, default: float) -> float:
    """Return the seconds in which a response may arrive; None means `default`.

    Raises `BadArgument` for 0, which would store a message and report an unknown outcome.
    """
    number = default if value is None else seconds(value)
    if value is not None and not number:
        raise BadArgument(
            "timeout must be above 0, because the acknowledgement takes time; a publisher sends"
            " without waiting for each one"
        )
    return number


def finite_seconds(value: Seconds, name: str = "timeout", *, years: int = LONGEST) -> float:
    """Return a finite duration in seconds, for a request to the server.

    The server stores times as nanoseconds since 1970 in 64 bits, and treats a time after 2262 as
    past. So it would remove the message or release the lock at once, or not delay at
    all. Raises `BadArgument` for an infinite duration, and for each value that `seconds` refuses.
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
        """Return the deadline `timeout` seconds from now, or `NEVER` for None."""
        if timeout is None:
            return NEVER
        return cls(monotonic() + seconds(timeout))

    def remaining(self) -> float:
        """Return the seconds until the deadline: at least 0, infinity for `NEVER`."""
        return max(0.0, self.at - monotonic())

    def expired(self) -> bool:
        """Return whether the deadline has passed."""
        return self.at <= monotonic()

    def earlier(self, at: float) -> Deadline:
        """Return this deadline, or a deadline at `at` if that is earlier."""
        return self if self.at <= at else Deadline(at)

    def __repr__(self) -> str:
        return "Deadline(never)" if self.at == math.inf else f"Deadline({self.remaining():.3f}s)"


NEVER: Final = Deadline(math.inf)


def is_cut_short(error: TwinstreamError, deadline: Deadline) -> bool:
    """Return whether a request failed because the caller's time was over.

    Such an error shows nothing about the server, so it does not replace an earlier explanation.
    """
    return isinstance(error, RequestTimeout) and deadline.expired()


class Backoff:
    """The pauses between attempts: `first` seconds, then `factor` times longer, up to `longest`."""

    __slots__ = ("factor", "first", "longest")

    def __init__(self, first: float, longest: float = math.inf, factor: float = 2.0) -> None:
        self.first: Final = first
        self.longest: Final = longest
        # A large power of floats raises OverflowError, while a large power of integers would take
        # too long to compute.
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


class Failures:
    """The number of failures in a row, which decides how long to pause before the next attempt."""

    __slots__ = ("_backoff", "count")

    def __init__(self, backoff: Backoff) -> None:
        self._backoff: Final = backoff
        self.count = 0

    @property
    def next_pause(self) -> float:
        """The seconds to wait if the next attempt fails, too."""
        return self._backoff.pause(self.count + 1)

    def add(self) -> float:
        """Count a failure; return the seconds to wait before the next attempt."""
        self.count += 1
        return self._backoff.pause(self.count)

    def clear(self) -> None:
        """Begin to count again, after a success."""
        self.count = 0
