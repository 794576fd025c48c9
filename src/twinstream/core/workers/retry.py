"""How often and when work that failed is tried again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from attrs import field, frozen

from twinstream.core.deadline import Seconds, finite_seconds
from twinstream.errors import BadArgument, TwinstreamError

__all__ = ["RETRY", "Retry", "TryLater", "nak_delay"]


class TryLater(TwinstreamError):
    """A handler raises this to have the message again after `delay` seconds.

    It is not reported as a failure, but it counts as an attempt.
    """

    def __init__(self, delay: Seconds, reason: str = "") -> None:
        self.delay = finite_seconds(delay, "delay")
        self.reason = reason
        super().__init__(reason or f"try again in {self.delay:g} s")


def _seconds(value: Seconds) -> float:
    return finite_seconds(value, "a delay of Retry")


@frozen(kw_only=True)
class Retry:
    """Try failed work again, after longer and longer pauses.

    There are `attempts` in all, None is without end. The first pause is `first` seconds, each
    further one `factor` times as long, at most `longest` seconds.
    """

    attempts: int | None = 5
    first: float = field(default=1.0, converter=_seconds)
    factor: float = 2.0
    longest: float = field(default=60.0, converter=_seconds)

    def __attrs_post_init__(self) -> None:
        if self.attempts is not None and self.attempts < 1:
            raise BadArgument(f"attempts must be from 1 up, or None, got {self.attempts}")
        if self.factor < 1:
            raise BadArgument(f"factor must be from 1 up, got {self.factor:g}")

    def delay(self, attempt: int) -> float:
        """Return the seconds to wait after an attempt failed; the first one is 1."""
        delay = self.first
        for _ in range(attempt - 1):
            delay *= self.factor
            if delay >= self.longest:
                break
        return min(delay, self.longest)

    def is_last(self, attempt: int) -> bool:
        """Tell whether this attempt is the last one."""
        return self.attempts is not None and attempt >= self.attempts


RETRY: Final = Retry()
"""Five attempts, after 1, 2, 4 and 8 seconds."""


def nak_delay(wanted: float, deliveries: int, backoff: Sequence[timedelta] | None) -> float:
    """Return the delay to ask for in a NAK, so that the next delivery comes after `wanted` seconds.

    If the consumer has a backoff, the server adds its step for this delivery to the delay and
    subtracts the first step (2.11 to 2.15; tried). Where that sum alone is longer than `wanted`,
    the smallest possible delay is returned, and the delivery comes later than wanted.
    """
    if not backoff:
        return wanted
    step = backoff[min(deliveries, len(backoff)) - 1]
    skew = (step - backoff[0]).total_seconds()
    # Zero would mean at once, whatever the backoff says.
    return max(wanted - skew, 1e-9)
