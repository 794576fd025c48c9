"""The retries of failed work: how often, and after which pauses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from attrs import field, frozen

from twinstream.core.deadline import Backoff, Seconds, finite_seconds
from twinstream.errors import BadArgument, TwinstreamError
from twinstream.models.codec.settings import Settings

__all__ = ["RETRY", "Retry", "TryLater", "is_last", "nak_delay", "pause_after"]


class TryLater(TwinstreamError):
    """An exception with which a handler requests the message again after `delay` seconds.

    The worker reports it as a `HandlerFailed`, which is logged with level INFO only. The delivery
    counts as an attempt, so the worker rejects the message after the last attempt.

    What to do: Nothing: the message comes again after the delay.
    """

    def __init__(self, delay: Seconds, reason: str = "") -> None:
        self.delay = finite_seconds(delay, "delay")
        self.reason = reason
        """Why, in words."""
        super().__init__(reason or f"try again in {self.delay:g} s")


def _seconds(value: Seconds) -> float:
    return finite_seconds(value, "a delay of Retry")


@frozen(kw_only=True)
class Retry(Settings):
    """The number of attempts for failed work, and the increasing pauses between them.

    Raises `BadArgument` if `attempts` or `factor` is below 1, and for an invalid pause.

    Args:
        attempts: The total number of attempts; None means no limit.
        first: The pause before the first retry in seconds.
        factor: The factor by which each further pause is longer.
        longest: The maximum pause in seconds.
    """

    attempts: int | None = 5
    first: float = field(default=1.0, converter=_seconds)
    factor: float = 2.0
    longest: float = field(default=60.0, converter=_seconds)

    def __attrs_post_init__(self) -> None:
        if self.attempts is not None and self.attempts < 1:
            raise BadArgument(f"attempts must be at least 1, or None, got {self.attempts}")
        if self.factor < 1:
            raise BadArgument(f"factor must be at least 1, got {self.factor:g}")


RETRY: Final = Retry()
"""Five attempts, with pauses of 1, 2, 4 and 8 seconds."""


def pause_after(retry: Retry, attempt: int) -> float:
    """Return the seconds to wait after a failed attempt; the first attempt is 1."""
    return Backoff(retry.first, retry.longest, retry.factor).pause(attempt)


def is_last(retry: Retry, attempt: int) -> bool:
    """Return whether this attempt is the last one."""
    return retry.attempts is not None and attempt >= retry.attempts


def nak_delay(wanted: float, deliveries: int, backoff: Sequence[timedelta] | None) -> float:
    """Return the delay for a NAK after which the server redelivers in `wanted` seconds.

    If the consumer has a backoff, the server adds the backoff step for this delivery to the delay
    and subtracts the first step. If that difference is already longer than
    `wanted`, the smallest possible delay is returned, and the redelivery is later than `wanted`.
    """
    if not backoff:
        return wanted
    step = backoff[min(deliveries, len(backoff)) - 1]
    skew = (step - backoff[0]).total_seconds()
    # A delay of zero is avoided, because the server then redelivers immediately.
    return max(wanted - skew, 1e-9)
