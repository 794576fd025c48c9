"""Schedules (ADR-51): messages that the server publishes later, once or repeatedly.

A schedule is a stored message. Its headers define when the server publishes, and to which other
subject of the same stream. There are three kinds: `@at` with a time (server 2.12), `@every` with an
interval (2.14), and a cron pattern (2.14).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count as count_from
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from attrs import frozen

from twinstream.core.deadline import Seconds, finite_seconds
from twinstream.core.publish.ttl import ttl_header
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.schedules.cron import Cron
from twinstream.core.wire.subjects import check_subject
from twinstream.errors import (
    BadArgument,
    InvalidResponse,
    JetStreamError,
    Unsupported,
)
from twinstream.models import Duration, StreamConfig, Timestamp
from twinstream.models.codec.settings import Settings
from twinstream.models.error_codes import (
    SCHEDULE_SOURCE_INVALID,
    SCHEDULE_TARGET_INVALID,
    SCHEDULE_TIME_ZONE_INVALID,
    TTL_DISABLED,
)
from twinstream.models.times.go_duration import parse_go_duration
from twinstream.models.times.go_time import go_time_text
from twinstream.records.header_names import (
    MSG_ID,
    SCHEDULE,
)
from twinstream.records.headers import Headers
from twinstream.records.publish_request import Ttl

__all__ = [
    "Schedule",
    "StoredSchedule",
    "check_schedule_server",
    "check_schedules",
    "check_unchanged",
    "explained",
    "finish_headers",
    "is_schedule",
    "schedule_headers",
    "stored_schedule",
]

TARGET: Final = "Nats-Schedule-Target"
SOURCE: Final = "Nats-Schedule-Source"
TTL: Final = "Nats-Schedule-TTL"
ROLLUP: Final = "Nats-Schedule-Rollup"
TIME_ZONE: Final = "Nats-Schedule-Time-Zone"
SCHEDULER: Final = "Nats-Scheduler"
NEXT: Final = "Nats-Schedule-Next"
PURGE: Final = "purge"
# Prefixes of the headers that the server does not copy to the messages that it publishes.
_LEFT_OUT: Final = (SCHEDULE, "Nats-Expected-", MSG_ID, "Nats-TTL", "Nats-Rollup")

_AT: Final = "@at "
_EVERY: Final = "@every "
_SECOND: Final = 1_000_000_000
_SINCE_AT: Final = (2, 12, 0)
_SINCE_ALL: Final = (2, 14, 0)


@frozen
class Schedule(Settings):
    """The times at which a server publishes. Create one with `at`, `every`, `cron` or `parse`."""

    pattern: str
    """The schedule in the server's format, such as `@at 2026-01-31T08:00:00Z`, `@every 5m` or
    `0 30 9 * * mon-fri`.
    """
    time_zone: str | None = None
    """The time zone of a cron pattern; None means UTC."""

    @classmethod
    def at(cls, moment: datetime) -> Schedule:
        """Return a schedule that publishes once, at `moment`, or at once if that is in the past.

        Raises `BadArgument` for a time without a time zone.
        """
        try:
            return cls(f"{_AT}{Timestamp.of(moment).astimezone(UTC).rfc3339()}")
        except (TypeError, ValueError) as error:
            raise BadArgument(f"invalid time for a schedule: {error}") from error

    @classmethod
    def every(cls, interval: Seconds) -> Schedule:
        """Return a schedule that publishes every `interval` seconds, first after one interval.

        Raises `BadArgument` for an interval below 1 second. The server rounds each time to a whole
        second before it adds the interval.
        """
        number = finite_seconds(interval, "interval")
        if isinstance(interval, timedelta):
            ns = Duration.of(interval).ns
        else:
            ns = round(number * _SECOND)
        if ns < _SECOND:
            raise BadArgument(f"the interval of a schedule must be at least 1 s, got {interval!r}")
        whole, rest = divmod(ns, _SECOND)
        return cls(f"{_EVERY}{whole}s" + (f"{rest}ns" if rest else ""))

    @classmethod
    def cron(cls, pattern: str, *, time_zone: str | None = None) -> Schedule:
        """Return a schedule that publishes at the times of a cron pattern with six fields.

        Avoid times that the clock skips or shows twice when summer time begins or ends. Raises
        `BadArgument` for an invalid pattern or time zone.

        Args:
            pattern: Second, minute, hour, day of month, month and day of week, or a word such as
                `@daily`.
            time_zone: A name such as `Europe/Berlin`, which the server must know as well; None
                means UTC.
        """
        Cron(pattern)
        return cls._checked(cls(pattern, time_zone))

    @classmethod
    def parse(cls, pattern: str, time_zone: str | None = None) -> Schedule:
        """Return the schedule with a pattern in the server's format.

        Raises `BadArgument` for an invalid pattern or time zone.

        Args:
            pattern: The text, as it is in the header `Nats-Schedule`.
            time_zone: Name of the time zone of a cron schedule; empty means UTC.
        """
        return cls._checked(cls(pattern, time_zone))

    @classmethod
    def _checked(cls, schedule: Schedule) -> Schedule:
        # Like the server, refuse a schedule whose first time cannot be computed.
        schedule.next_times(datetime(2026, 1, 1, tzinfo=UTC), 1)
        return schedule

    @property
    def repeats(self) -> bool:
        """Whether the schedule publishes more than one message."""
        return not self.pattern.startswith(_AT)

    def __str__(self) -> str:
        return f"{self.pattern} ({self.time_zone})" if self.time_zone else self.pattern

    def next_times(
        self, after: datetime, count: int = 5, *, started: datetime | None = None
    ) -> list[Timestamp]:
        """Return the next times, in UTC, at which the server publishes.

        The client computes the times with the server's rules. The server may publish some tenths of
        a second later, and publishes only once for all times that it missed. For `@at` the result
        is its single time, even if that is in the past. Raises `BadArgument` for times outside of
        the years 1 to 9999.

        Args:
            after: A time with a time zone. A repeating schedule returns only later times.
            count: How many times to return.
            started: When the schedule was stored. The times of `@every` depend on it. The default
                is `after`.
        """
        begin = Timestamp.of(after).ns
        times = self._times(begin, begin if started is None else Timestamp.of(started).ns)
        try:
            return [Timestamp.from_ns(next(times)) for _ in range(count if self.repeats else 1)]
        except BadArgument:
            raise
        except (OverflowError, ValueError) as error:
            what = f"schedule {self.pattern!r} from {after} on"
            raise BadArgument(f"{what}: times must be in the years 1 to 9999") from error

    def _times(self, after: int, started: int) -> Iterator[int]:
        """Return an iterator over the times of the schedule after `after`, in nanoseconds."""
        if self.time_zone is not None and self.pattern.startswith((_AT, _EVERY)):
            raise BadArgument(f"{self.pattern}: a time zone is allowed for cron patterns only")
        if self.pattern.startswith(_AT):
            return iter([self._moment()])
        if self.pattern.startswith(_EVERY):
            return self._intervals(after, started)
        return _cron_times(Cron(self.pattern), _zone(self.time_zone), after)

    def _moment(self) -> int:
        try:
            return Timestamp.parse(go_time_text(self.pattern.removeprefix(_AT))).ns
        except ValueError as error:
            raise BadArgument(f"schedule {self.pattern!r}: {error}") from error

    def _intervals(self, after: int, started: int) -> Iterator[int]:
        """Return the times of an `@every` schedule after `after`; it began at `started`."""
        interval = parse_go_duration(self.pattern.removeprefix(_EVERY))
        if interval is None or interval < _SECOND:
            raise BadArgument(f"schedule {self.pattern!r}: write @every 1h30m, at least 1s")
        # Each time is rounded before the interval is added, so the step is in whole seconds.
        first, step = _rounded(started) + interval, _rounded(interval)
        if first <= after:
            first += ((after - first) // step + 1) * step
        return count_from(first, step)


def _rounded(ns: int) -> int:
    return (ns + _SECOND // 2) // _SECOND * _SECOND


def _cron_times(cron: Cron, zone: ZoneInfo, after: int) -> Iterator[int]:
    second = after // _SECOND
    while True:
        second = cron.next_after(second, zone)
        yield second * _SECOND


def _zone(name: str | None) -> ZoneInfo:
    """Return a time zone by its name. Raises `BadArgument` for an unknown name."""
    if name == "Local":
        raise BadArgument("time zone Local is the server's own: pass the name of a time zone")
    try:
        return ZoneInfo("UTC" if name is None else name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadArgument(
            f"unknown time zone {name!r}; pass a name such as Europe/Berlin"
            " (install tzdata if the system has no time zones)"
        ) from error


@frozen(kw_only=True)
class StoredSchedule:
    """A schedule that is stored in a stream."""

    subject: str
    """The subject of the schedule itself. A subject has at most one schedule."""
    schedule: Schedule
    """When it publishes."""
    target: str
    """The subject to which the server publishes."""
    source: str | None
    """The subject whose last message the server publishes; None means the schedule's data."""
    ttl: str | None
    """The time to live of published messages, in the server's format; None means no TTL."""
    rollup: bool
    """Whether a published message replaces the earlier messages of its subject."""
    data: bytes
    """Payload of the messages that it publishes."""
    headers: Headers
    """The headers of published messages, without the schedule's own headers."""
    seq: int
    """Sequence of the schedule in its stream."""
    time: Timestamp
    """When the schedule was stored."""

    def next_times(self, after: datetime, count: int = 5) -> list[Timestamp]:
        """Return the next times at which the server publishes; see `Schedule.next_times`.

        Args:
            after: The time after which the first one is.
            count: Number of times.
        """
        return self.schedule.next_times(after, count, started=self.time)


def check_schedules(config: StreamConfig) -> None:
    """Raise `BadArgument` if a stream does not allow schedules."""
    if not config.allow_msg_schedules:
        raise BadArgument(
            f"stream {config.name} does not allow schedules: set allow_msg_schedules=True, which"
            " cannot be undone"
        )


def schedule_headers(
    schedule: Schedule,
    subject: str,
    target: str,
    *,
    source: str | None = None,
    ttl: Ttl | None = None,
    rollup: bool = False,
) -> dict[str, str]:
    """Return the headers of a schedule on `subject`, which publishes to `target`.

    Raises `BadArgument` for an invalid `target`, `source` or `ttl`.
    """
    check_subject(target)
    if target == subject:
        raise BadArgument(f"the target {target} is the schedule's own subject: use another one")
    headers = {SCHEDULE: schedule.pattern, TARGET: target}
    if schedule.time_zone is not None:
        headers[TIME_ZONE] = schedule.time_zone
    if source is not None:
        check_subject(source)
        if source in (target, subject):
            raise BadArgument(f"the source {source} is the target or the schedule's own subject")
        headers[SOURCE] = source
    if ttl is not None:
        headers[TTL] = ttl_header(ttl)
    if rollup:
        headers[ROLLUP] = "sub"
    return headers


def check_schedule_server(
    headers: Iterable[str], schedule: Schedule, version: tuple[int, ...], text: str
) -> None:
    """Raise `Unsupported` if the server is too old for a schedule; `text` is its version."""
    if version < _SINCE_AT:
        raise Unsupported(f"schedules need server 2.12.0, connected to {text}")
    if version >= _SINCE_ALL:
        return
    newer = {TIME_ZONE, SOURCE, ROLLUP}.intersection(headers)
    if schedule.repeats or newer:
        what = f"schedule {schedule.pattern!r}" if schedule.repeats else min(newer)
        raise Unsupported(
            f"{what} needs server 2.14.0, connected to {text}, which supports @at, targets, TTLs"
        )


def finish_headers(schedule: StoredSchedule) -> dict[str, str]:
    """Return the headers of a message that cancels a schedule.

    They do not contain the condition that the schedule was not replaced. Raises `BadArgument` if
    its subject cannot be published to: the server would remove all messages that match a wildcard.
    """
    try:
        check_subject(schedule.subject)
    except BadArgument as error:
        raise BadArgument(
            f"cannot finish the schedule at sequence {schedule.seq}: {error}; pass it to cancel"
        ) from error
    return {
        SCHEDULER: schedule.subject,
        NEXT: PURGE,
    }


def check_unchanged(expected: StoredSchedule, found: StoredSchedule) -> None:
    """Raise `BadArgument` unless both are the same message, for example of a re-created stream."""
    # Some ways to read a message replace the bytes of a subject that are not UTF-8.
    if (expected.seq, expected.time) != (found.seq, found.time):
        raise BadArgument(
            f"the message at sequence {expected.seq} is on {found.subject!r}, not the schedule on"
            f" {expected.subject!r}: read the schedule again"
        )


def explained(error: JetStreamError, target: str, source: str | None) -> JetStreamError | None:
    """Return the server's error with an additional hint, or None if there is no hint for it."""
    hints = {
        TTL_DISABLED: "ttl and lifetime need allow_msg_ttl on the stream",
        SCHEDULE_TARGET_INVALID: f"{target} must be a subject of the same stream",
        SCHEDULE_SOURCE_INVALID: f"{source} must be a subject of the same stream",
        SCHEDULE_TIME_ZONE_INVALID: "the server does not know the time zone",
    }
    hint = hints.get(error.err_code)
    if hint is None:
        return None
    return type(error)(
        f"{error.description}: {hint}",
        code=error.code,
        err_code=error.err_code,
        subject=error.subject,
    )


def is_schedule(message: StreamMessage) -> bool:
    """Return whether a stored message is a schedule."""
    return SCHEDULE in message.headers


def stored_schedule(message: StreamMessage) -> StoredSchedule:
    """Return the schedule in a stored message. Raises `InvalidResponse` if it is not a schedule."""
    headers = message.headers
    if not is_schedule(message):
        raise InvalidResponse(
            f"{message.stream_name}: the last message on {message.subject} is no schedule"
        )
    return StoredSchedule(
        subject=message.subject,
        schedule=Schedule(headers[SCHEDULE], headers.get(TIME_ZONE)),
        target=headers.get(TARGET, ""),
        source=headers.get(SOURCE),
        ttl=headers.get(TTL),
        rollup=ROLLUP in headers,
        data=message.data,
        headers=Headers(pair for pair in headers.pairs if not pair[0].startswith(_LEFT_OUT)),
        seq=message.seq,
        time=message.time,
    )
