"""Schedules (ADR-51): messages that the server publishes later, or again and again.

A schedule is a message on a subject of its own whose headers tell when to publish, and to which
subject of the same stream. There are three kinds: `@at` a moment (server 2.12), `@every` interval,
and a cron pattern (both 2.14).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count as count_from
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from attrs import frozen

from twinstream.core.publish.cron import Cron
from twinstream.core.deadline import Seconds, finite_seconds
from twinstream.errors import BadAnswer, BadArgument, JetStreamError, Unsupported
from twinstream.core.wire.header_names import (
    EXPECTED_LAST_SUBJECT_SEQ,
    EXPECTED_LAST_SUBJECT_SEQ_SUBJECT,
    MSG_ID,
    SCHEDULE,
)
from twinstream.core.wire.headers import Headers
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.subjects import check_subject
from twinstream.core.publish.ttl import Ttl, ttl_header
from twinstream.models import Duration, StreamConfig, Timestamp
from twinstream.models._go_time import go_time_text
from twinstream.models.go_duration import parse_go_duration

__all__ = [
    "Schedule",
    "StoredSchedule",
    "check_schedule_server",
    "check_schedules",
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
# What the server leaves out of the messages that it publishes.
_LEFT_OUT: Final = (SCHEDULE, "Nats-Expected-", MSG_ID, "Nats-TTL", "Nats-Rollup")

_AT: Final = "@at "
_EVERY: Final = "@every "
_SECOND: Final = 1_000_000_000
_SINCE_AT: Final = (2, 12, 0)
_SINCE_ALL: Final = (2, 14, 0)


@frozen
class Schedule:
    """When the server publishes. Make one with `at`, `every`, `cron`, or `parse`."""

    pattern: str
    """As the server has it: `@at 2026-01-31T08:00:00Z`, `@every 5m`, `0 30 9 * * mon-fri`."""
    time_zone: str | None = None
    """Whose clock a cron pattern means; None is UTC."""

    @classmethod
    def at(cls, moment: datetime) -> Schedule:
        """Publish once, at a moment with a time zone; immediately if that is in the past."""
        try:
            return cls(f"{_AT}{Timestamp.of(moment).astimezone(UTC).rfc3339()}")
        except (TypeError, ValueError) as error:
            raise BadArgument(f"a schedule cannot be at {moment!r}: {error}") from error

    @classmethod
    def every(cls, interval: Seconds) -> Schedule:
        """Publish again and again, for the first time after one interval of 1 second or more.

        The server rounds each time to a whole second before it adds the interval.
        """
        number = finite_seconds(interval, "interval")
        if isinstance(interval, timedelta):
            ns = Duration.of(interval).ns
        else:
            ns = round(number * _SECOND)
        if ns < _SECOND:
            raise BadArgument(f"a schedule repeats at most once a second, got {interval!r}")
        whole, rest = divmod(ns, _SECOND)
        return cls(f"{_EVERY}{whole}s" + (f"{rest}ns" if rest else ""))

    @classmethod
    def cron(cls, pattern: str, *, time_zone: str | None = None) -> Schedule:
        """Publish at the times of a cron pattern with six fields, or of a word such as `@daily`.

        The fields are second, minute, hour, day of month, month, day of week. `time_zone` is a
        name such as `Europe/Berlin`, which the server must know, too. Avoid times that its clock
        skips or shows twice when summer time comes or goes.
        """
        Cron(pattern)
        return cls._checked(cls(pattern, time_zone))

    @classmethod
    def parse(cls, pattern: str, time_zone: str | None = None) -> Schedule:
        """Read what the server stores. Raises `BadArgument` for what it would refuse."""
        return cls._checked(cls(pattern, time_zone))

    @classmethod
    def _checked(cls, schedule: Schedule) -> Schedule:
        # The server checks a schedule by computing its first time, and refuses one without any.
        schedule.next_times(datetime(2026, 1, 1, tzinfo=UTC), 1)
        return schedule

    @property
    def repeats(self) -> bool:
        """Whether it fires more than once."""
        return not self.pattern.startswith(_AT)

    def __str__(self) -> str:
        return f"{self.pattern} ({self.time_zone})" if self.time_zone else self.pattern

    def next_times(
        self, after: datetime, count: int = 5, *, started: datetime | None = None
    ) -> list[Timestamp]:
        """Return the next times, in UTC, at which the server publishes after a moment.

        They are computed here, by the server's rules. The server itself may be some tenths of a
        second late, and publishes only once for all times that it missed. The times of `@every`
        depend on when the schedule was `started`, by default at `after`. For `@at` it is the one
        moment, even if that is in the past.
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
        if self.time_zone is not None and self.pattern.startswith((_AT, _EVERY)):
            raise BadArgument(f"{self.pattern}: a time zone is for cron patterns only")
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
        interval = parse_go_duration(self.pattern.removeprefix(_EVERY))
        if interval is None or interval < _SECOND:
            raise BadArgument(f"schedule {self.pattern!r}: write @every 1h30m, from 1s up")
        # Each time is rounded before the interval is added, so the whole seconds decide the step.
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
    if name == "Local":
        raise BadArgument("time zone Local is the server's own: name the zone that is meant")
    try:
        return ZoneInfo("UTC" if name is None else name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadArgument(
            f"time zone {name!r} is not known here; give a name such as Europe/Berlin"
            " (if the system has no time zones, install tzdata)"
        ) from error


@frozen(kw_only=True)
class StoredSchedule:
    """A schedule in a stream."""

    subject: str
    """The schedule's own subject; there is one schedule on a subject."""
    schedule: Schedule
    target: str
    """Where the server publishes."""
    source: str | None
    """The subject whose last message is published; None: the schedule's own data is."""
    ttl: str | None
    """How long published messages live, as the server has it."""
    rollup: bool
    """Whether a published message replaces the earlier ones of its subject."""
    data: bytes
    headers: Headers
    """The headers that published messages get, without the schedule's own."""
    seq: int
    time: Timestamp
    """When it was stored."""

    def next_times(self, after: datetime, count: int = 5) -> list[Timestamp]:
        """Return the next times at which the server publishes; see `Schedule.next_times`."""
        return self.schedule.next_times(after, count, started=self.time)


def check_schedules(config: StreamConfig) -> None:
    """Raise `BadArgument` for a stream without schedules."""
    if not config.allow_msg_schedules:
        raise BadArgument(
            f"stream {config.name} has no schedules: set allow_msg_schedules=True, which cannot be"
            " undone"
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
    """Return the headers of a schedule on a subject. Raises `BadArgument`."""
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
    """Raise `Unsupported` when a server is too old for a schedule; `text` names it."""
    if version < _SINCE_AT:
        raise Unsupported(f"schedules need server 2.12.0, connected to {text}")
    if version >= _SINCE_ALL:
        return
    newer = {TIME_ZONE, SOURCE, ROLLUP}.intersection(headers)
    if schedule.repeats or newer:
        what = f"schedule {schedule.pattern!r}" if schedule.repeats else min(newer)
        raise Unsupported(
            f"{what} needs server 2.14.0, connected to {text}, which knows @at, targets and TTLs"
        )


def finish_headers(schedule: StoredSchedule) -> dict[str, str]:
    """Return the headers of a message that cancels a schedule if that was not replaced."""
    return {
        SCHEDULER: schedule.subject,
        NEXT: PURGE,
        EXPECTED_LAST_SUBJECT_SEQ: str(schedule.seq),
        # 2.12 would purge any message that is there.
        EXPECTED_LAST_SUBJECT_SEQ_SUBJECT: schedule.subject,
    }


def explained(error: JetStreamError, target: str, source: str | None) -> JetStreamError | None:
    """Return the server's refusal with a hint that it lacks; None if there is no hint for it."""
    hints = {
        10166: "ttl and lifetime need allow_msg_ttl on the stream",
        10190: f"{target} must be a subject of the same stream",
        10203: f"{source} must be a subject of the same stream",
        10223: "the server does not know the time zone",
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
    """Tell whether a stored message is a schedule."""
    return SCHEDULE in message.headers


def stored_schedule(message: StreamMessage) -> StoredSchedule:
    """Read a schedule; `BadAnswer` for a message that is none."""
    headers = message.headers
    if not is_schedule(message):
        raise BadAnswer(f"{message.stream}: the last message on {message.subject} is no schedule")
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
