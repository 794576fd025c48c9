"""The one clock: absolute deadlines that are passed down instead of being wrapped around.

Monotonic, so that a step of the system clock neither ends nor prolongs a wait.
"""

from __future__ import annotations

import math
import time
from datetime import timedelta
from time import monotonic
from typing import Final

from twinstream.errors import BadArgument

__all__ = [
    "LONGEST",
    "LONGEST_WAIT",
    "NEVER",
    "Deadline",
    "Seconds",
    "finite_seconds",
    "monotonic",
    "seconds",
    "unsleeping",
]

Seconds = float | int | timedelta
"""A duration argument: seconds, or a timedelta."""


# Linux stops `monotonic` while the machine is suspended, where the server's clock goes on.
_AWAKE_OR_NOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

LONGEST: Final = 100
"""The most years of a duration that a server keeps: far from where its clock overflows."""

LONGEST_WAIT: Final = 10
"""The most years of a wait."""

_YEAR: Final = 365.25 * 86_400


def unsleeping() -> float:
    """Return the time of a monotonic clock that also counts the machine's sleep, where it can."""
    return time.clock_gettime(_AWAKE_OR_NOT)


def seconds(value: Seconds, name: str = "timeout", *, years: int = LONGEST_WAIT) -> float:
    """Return a duration argument in seconds, infinity included; `name` is for the error.

    Raises `BadArgument` for what is no duration, and for a finite one of more than `years`, which
    are nanoseconds by mistake: no program waits for 10 years.
    """
    if isinstance(value, timedelta):
        number = value.total_seconds()
    elif isinstance(value, float | int):
        number = float(value)
    else:
        number = math.nan
    if math.isnan(number) or number < 0:
        raise BadArgument(f"{name} must be a number of seconds from 0 up, got {value!r}")
    if number > years * _YEAR and not math.isinf(number):
        raise BadArgument(_too_long(value, number, name, years))
    return number


def finite_seconds(value: Seconds, name: str = "timeout", *, years: int = LONGEST) -> float:
    """Return a duration that goes to the server, which knows no infinite one.

    Its times are nanoseconds since 1970 in 64 bits. What ends after 2262 is over at once there
    (2.11 to 2.15): the message is removed, the lock free for others, the delay none.
    """
    number = seconds(value, name, years=years)
    if math.isinf(number):
        raise BadArgument(f"{name} must be finite: the server takes it as nanoseconds")
    return number


def _too_long(value: Seconds, number: float, name: str, most: int) -> str:
    text = f"{name} must be at most {most} years ({most * _YEAR:.0f} s), got {value!r}"
    if isinstance(value, timedelta):
        return text
    return (
        f"{text}, which are {number / _YEAR:.0f} years; durations are seconds or a timedelta: is"
        f" this {number / 1e9:g} s in nanoseconds?"
    )


class Deadline:
    """A point in monotonic time."""

    __slots__ = ("at",)

    def __init__(self, at: float) -> None:
        self.at: Final = at

    @classmethod
    def after(cls, timeout: Seconds | None) -> Deadline:
        """Return the deadline `timeout` seconds from now; None is never."""
        if timeout is None:
            return NEVER
        return cls(monotonic() + seconds(timeout))

    def remaining(self) -> float:
        """Return the seconds left, at least 0; infinite for never."""
        return max(0.0, self.at - monotonic())

    def expired(self) -> bool:
        """Tell whether the point has passed."""
        return self.at <= monotonic()

    def earlier(self, at: float) -> Deadline:
        """Return this deadline, or the one at `at` if that is sooner."""
        return self if self.at <= at else Deadline(at)

    def __repr__(self) -> str:
        return "Deadline(never)" if self.at == math.inf else f"Deadline({self.remaining():.3f}s)"


NEVER: Final = Deadline(math.inf)
