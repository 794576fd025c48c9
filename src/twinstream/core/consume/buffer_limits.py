"""Validate the limits of a buffer that an iteration refills with pulls, and their defaults.

Source: ADR-37.
"""

from __future__ import annotations

from typing import Final

from twinstream.core.arguments.check_arguments import check_whole
from twinstream.core.consume.pull_request import (
    HEARTBEAT,
    MANY,
    MIN_HEARTBEAT,
    UNBOUNDED,
    OnRefused,
    Priority,
    PullBounds,
    PullLimits,
    given_heartbeat,
)
from twinstream.core.deadline import LONGEST_WAIT, Seconds, finite_seconds
from twinstream.errors import BadArgument

__all__ = ["DEFAULT_MESSAGES", "buffer_limits"]

DEFAULT_MESSAGES: Final = 500
_EXPIRES: Final = 30.0
_MIN_EXPIRES: Final = 1.0


def buffer_limits(
    *,
    max_messages: int | None,
    max_bytes: int | None,
    expires: Seconds | None,
    heartbeat: Seconds | None,
    threshold_messages: int | None,
    threshold_bytes: int | None,
    priority: Priority | None = None,
    bounds: PullBounds = UNBOUNDED,
    stop_after: int | None = None,
    on_refused: OnRefused = "raise",
) -> PullLimits:
    """Return the limits of a buffer that an iteration refills, validated as ADR-37 requires.

    The limits respect the consumer's `bounds`, except for an explicit `expires`. Raises
    `BadArgument` for an invalid value.
    """
    if max_messages is None:
        messages = DEFAULT_MESSAGES if max_bytes is None else MANY
    else:
        messages = check_whole(max_messages, "max_messages")
    if on_refused not in {"raise", "retry"}:
        raise BadArgument(f"on_refused must be 'raise' or 'retry', got {on_refused!r}")
    if max_bytes is not None:
        check_whole(max_bytes, "max_bytes")
    lifetime = _lifetime(expires, bounds)
    return PullLimits(
        max_messages=messages,
        max_bytes=max_bytes,
        max_batch=bounds.max_batch,
        max_waiting=bounds.max_waiting,
        threshold=_threshold(threshold_messages, messages, "threshold_messages"),
        threshold_bytes=_threshold(threshold_bytes, max_bytes or 0, "threshold_bytes"),
        expires=lifetime,
        heartbeat=_heartbeat(heartbeat, lifetime),
        priority=priority,
        max_age=bounds.max_age,
        pull_every=bounds.pull_every if priority is not None else None,
        stop_after=None if stop_after is None else check_whole(stop_after, "stop_after"),
        on_refused=on_refused,
    )


def _lifetime(expires: Seconds | None, bounds: PullBounds) -> float:
    """Return the lifetime of a request in seconds: `expires`, or a default within `bounds`."""
    if expires is not None:
        given = finite_seconds(expires, "expires", years=LONGEST_WAIT)
        if given < _MIN_EXPIRES:
            raise BadArgument(f"expires must be at least 1 second, got {expires!r}")
        return given
    return max(_MIN_EXPIRES, min(_EXPIRES, bounds.max_expires or _EXPIRES))


def _threshold(value: int | None, limit: int, name: str) -> int:
    if value is None:
        return limit // 2
    if check_whole(value, name, least=0) > limit:
        raise BadArgument(f"{name} must be from 0 to the limit {limit}, got {value!r}")
    return value


def _heartbeat(value: Seconds | None, expires: float) -> float:
    if value is None:
        return min(max(expires / 2, MIN_HEARTBEAT), HEARTBEAT)
    return given_heartbeat(value, expires, "expires")
