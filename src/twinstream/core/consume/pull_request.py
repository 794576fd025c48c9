"""Validate the limits of pull requests, and write the JSON of a request.

Source: ADR-37 (bounds, and most defaults), ADR-13 and nats-server `nextReqFromMsg`.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Final, Literal

from attrs import evolve, field, frozen

from twinstream.core.arguments.check_arguments import check_kind, check_whole
from twinstream.core.deadline import LONGEST_WAIT, Seconds, finite_seconds, seconds
from twinstream.errors import BadArgument
from twinstream.models.codec.settings import Settings

__all__ = [
    "HEARTBEAT",
    "MANY",
    "MIN_HEARTBEAT",
    "UNBOUNDED",
    "OnRefused",
    "Priority",
    "PullBounds",
    "PullLimits",
    "Wait",
    "check_priority",
    "fetch_limits",
    "given_heartbeat",
    "request_body",
]

Wait = Literal["none", "first", "full"]
"""When a fetch may end: immediately, with the first messages, or only when complete."""

OnRefused = Literal["raise", "retry"]
"""What to do if the first request exceeds a limit of the consumer: raise, or report and retry."""

# The `batch` of requests that only bytes limit (ADR-37). A missing `batch` means 1.
MANY: Final = 1_000_000
MIN_HEARTBEAT: Final = 0.5
_MAX_HEARTBEAT: Final = 30.0
# Seconds. ADR-37 uses half of `expires`. This is shorter, because only two missing heartbeats show
# that a pull was lost without a reply.
HEARTBEAT: Final = 5.0
_GROUP: Final = r"[A-Za-z0-9/_=-]{1,16}"
# Seconds. With a shorter timeout, two missed heartbeats would not show a lost response before the
# timeout itself.
_MIN_TIMEOUT_WITH_HEARTBEAT: Final = 10.0


def _group(value: str) -> str:
    if not isinstance(value, str) or not re.fullmatch(_GROUP, value):
        raise BadArgument(
            f"priority group {value!r}: must be 1 to 16 of the characters A-Z a-z 0-9 _ - / ="
        )
    return value


def _not_negative(value: int | None) -> int | None:
    return None if value is None else check_whole(value, "min_pending and min_ack_pending", least=0)


def _rank(value: int | None) -> int | None:
    if value is not None and check_whole(value, "rank", least=0) > 9:
        raise BadArgument(f"rank must be from 0 (first) to 9, got {value}")
    return value


@frozen(kw_only=True)
class Priority(Settings):
    """The role of a client in a priority group of a consumer (ADR-42, server 2.11).

    Raises `BadArgument` for an invalid group name, negative numbers or a rank above 9.

    Args:
        group: The name of the group, 1 to 16 of the characters `A-Z a-z 0-9 _ - / =`.
        min_pending: With policy overflow, deliver to this client only while the consumer has at
            least this many messages pending.
        min_ack_pending: With policy overflow, deliver to this client only while at least this many
            messages are unacknowledged. If both conditions are given, servers before 2.12.5 require
            both, later servers require one of them.
        rank: With policy prioritized (2.12), 0 to 9; clients with the lowest rank are served first.
    """

    group: str = field(converter=_group)
    min_pending: int | None = field(default=None, converter=_not_negative)
    min_ack_pending: int | None = field(default=None, converter=_not_negative)
    rank: int | None = field(default=None, converter=_rank)

    @property
    def may_pin(self) -> bool:
        """Whether the group may have the policy pinned_client.

        It may unless a field is set that belongs to another policy.
        """
        return self.min_pending is self.min_ack_pending is self.rank is None


@frozen(kw_only=True)
class PullBounds:
    """Limits that follow from a consumer's configuration; None means unlimited or unknown."""

    max_batch: int | None = None
    """Maximum number of messages of a request."""
    max_waiting: int | None = None
    """The number of requests of all clients that may be open at once."""
    max_expires: float | None = None
    """Maximum lifetime of a request in seconds."""
    max_age: float | None = None
    """Seconds that a message may stay in the client's buffer."""
    pull_every: float | None = None
    """Seconds within which a pinned client should pull."""


UNBOUNDED: Final = PullBounds()


def check_priority(value: Priority | None) -> Priority | None:
    """Return a `Priority` or None unchanged. Raises `BadArgument` for another value."""
    if value is not None:
        check_kind(value, Priority, "priority", "a Priority, as Priority(group='A')")
    return value


# The object is part of the cache key of request bodies, so its hash is cached as well.
@frozen(kw_only=True, cache_hash=True)
class PullLimits:
    """Limits of the requests of one fetch or one buffer. Durations are in seconds."""

    max_messages: int
    max_bytes: int | None = None
    max_batch: int | None = None
    """Maximum number of messages of one request; None means no limit."""
    max_waiting: int | None = None
    """Maximum number of open requests; None means no limit."""
    threshold: int = 0
    """A pull is due when at most this many messages are buffered or requested."""
    threshold_bytes: int = 0
    """With `max_bytes`, a pull is due when at most this many bytes are buffered or requested."""
    expires: float | None = None
    """The lifetime of a request; None means that the server ends it immediately (no_wait)."""
    heartbeat: float = field(default=float("inf"))
    """Idle heartbeat interval of a request; infinity means none."""
    no_wait: bool = False
    max_age: float | None = None
    """Seconds that a message may stay in the buffer, at the caller's pace; None means no limit."""
    pull_every: float | None = None
    """Seconds without a pull after which one is sent only to keep the pin; None means never."""
    priority: Priority | None = field(default=None, converter=check_priority)
    stop_after: int | None = None
    """The number of messages after which the iteration ends; None means that it does not end."""
    on_refused: OnRefused = "raise"
    """What to do if the first request exceeds a limit of the consumer."""

    @property
    def may_pin(self) -> bool:
        """Whether messages may have a pin header."""
        return self.priority is not None and self.priority.may_pin


# Applications repeat the same requests, so these are validated and encoded only once.
_remembered = lru_cache(maxsize=256, typed=True)


@_remembered
def fetch_limits(
    max_messages: int | None,
    max_bytes: int | None,
    timeout: Seconds,
    wait: Wait,
    priority: Priority | None = None,
    heartbeat: Seconds | None = None,
) -> PullLimits:
    """Return the limits of one fetch. Without `max_messages`, only `max_bytes` limits it.

    Raises `BadArgument` for an invalid value.
    """
    if max_messages is None:
        if max_bytes is None:
            raise BadArgument("pass max_messages, max_bytes or both, as a fetch needs a limit")
        max_messages = MANY
    check_whole(max_messages, "max_messages")
    if max_bytes is not None:
        check_whole(max_bytes, "max_bytes")
    if wait not in {"none", "first", "full"}:
        raise BadArgument(f"wait must be 'none', 'first' or 'full', got {wait!r}")
    limits = PullLimits(max_messages=max_messages, max_bytes=max_bytes, priority=priority)
    patience = finite_seconds(timeout, years=LONGEST_WAIT)
    if wait == "none" or patience == 0:
        if heartbeat is not None:
            raise BadArgument("heartbeat needs a fetch that waits: wait is 'none' or timeout is 0")
        return evolve(limits, no_wait=True)
    if heartbeat is not None:
        beat = given_heartbeat(heartbeat, patience, "timeout")
    else:
        beat = HEARTBEAT if patience >= _MIN_TIMEOUT_WITH_HEARTBEAT else float("inf")
    return evolve(limits, no_wait=wait == "first", expires=patience, heartbeat=beat)


def given_heartbeat(value: Seconds, lifetime: float, name: str) -> float:
    """Return a valid interval of heartbeats in seconds; `name` is the argument of `lifetime`."""
    heartbeat = seconds(value, "heartbeat")
    if not MIN_HEARTBEAT <= heartbeat <= _MAX_HEARTBEAT:
        raise BadArgument(f"heartbeat must be from 0.5 to 30 seconds, got {value!r}")
    if heartbeat > lifetime / 2:
        raise BadArgument(
            f"heartbeat {heartbeat:g} s is above half of {name} {lifetime:g} s (server rule)"
        )
    return heartbeat


@_remembered
def request_body(
    batch: int, max_bytes: int | None, limits: PullLimits, pin: str | None = None
) -> bytes:
    """Return the body of one request as JSON.

    Servers also accept a plain number as the body, but do not validate it. So the body is always an
    object. `pin` is the id that the server assigned to a pinned client.
    """
    body: dict[str, Any] = {"batch": batch}
    if max_bytes is not None:
        body["max_bytes"] = max_bytes
    expires = None if limits.expires is None else round(limits.expires * 1e9)
    if expires is not None:
        body["expires"] = expires
    if limits.heartbeat != float("inf"):
        heartbeat = round(limits.heartbeat * 1e9)
        # `round` may return more than half of an odd number of nanoseconds, which the server
        # rejects.
        body["idle_heartbeat"] = heartbeat if expires is None else min(heartbeat, expires // 2)
    if limits.no_wait:
        body["no_wait"] = True
    priority = limits.priority
    if priority is not None:
        body["group"] = priority.group
        # Only None is omitted, because 0 is a valid value of each member.
        optional = {
            "min_pending": priority.min_pending,
            "min_ack_pending": priority.min_ack_pending,
            "priority": priority.rank,
            "id": pin,
        }
        body.update((name, value) for name, value in optional.items() if value is not None)
    return json.dumps(body, separators=(",", ":")).encode()
