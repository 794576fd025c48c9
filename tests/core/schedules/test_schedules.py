"""Schedules: creating and reading them, their next times, and the support of server versions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.schedules.schedules import (
    Schedule,
    check_schedule_server,
    check_schedules,
    explained,
    finish_headers,
    schedule_headers,
    stored_schedule,
)
from twinstream.errors import (
    BadArgument,
    InvalidResponse,
    JetStreamError,
    Unsupported,
)
from twinstream.models import StreamConfig, Timestamp
from twinstream.records.headers import Headers

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def seconds(times: list[Timestamp]) -> list[float]:
    return [(each - Timestamp.of(NOON)).total_seconds() for each in times]


def test_a_schedule_at_a_moment_fires_once() -> None:
    berlin = timezone(timedelta(hours=1))
    schedule = Schedule.at(datetime(2026, 1, 31, 9, 0, 0, 250_000, berlin))
    assert schedule.pattern == "@at 2026-01-31T08:00:00.25Z"
    assert not schedule.repeats
    (due,) = schedule.next_times(NOON, 7)
    assert due.rfc3339() == "2026-01-31T08:00:00.25Z"
    assert Schedule.parse("@at 2020-01-01T01:00:00+01:00").next_times(NOON)[0] < NOON
    with pytest.raises(BadArgument, match="zone"):
        Schedule.at(datetime(2026, 1, 1))
    with pytest.raises(BadArgument, match="invalid time"):
        Schedule.at("tomorrow")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_a_schedule_of_an_interval_fires_at_multiples_of_it() -> None:
    schedule = Schedule.every(90)
    assert (schedule.pattern, schedule.repeats) == ("@every 90s", True)
    assert seconds(schedule.next_times(NOON, 3)) == [90, 180, 270]
    assert Schedule.every(timedelta(minutes=5)).pattern == "@every 300s"
    later = NOON + timedelta(seconds=200)
    assert seconds(schedule.next_times(later, 2, started=NOON)) == [270, 360]
    assert seconds(schedule.next_times(NOON + timedelta(seconds=180), 1, started=NOON)) == [270]
    # The server rounds before it adds.
    half = Schedule.every(1.5)
    assert half.pattern == "@every 1s500000000ns"
    assert seconds(half.next_times(NOON, 3)) == [1.5, 3.5, 5.5]
    assert seconds(half.next_times(NOON + timedelta(milliseconds=600), 1)) == [2.5]
    too_long = timedelta(days=36_600)
    for wrong in (0.9, 0, timedelta(milliseconds=999), float("inf"), -1, too_long):
        with pytest.raises(BadArgument):
            Schedule.every(wrong)


def test_a_cron_schedule_fires_in_its_time_zone() -> None:
    schedule = Schedule.cron("0 0 9 * * mon-fri", time_zone="Europe/Berlin")
    assert str(schedule) == "0 0 9 * * mon-fri (Europe/Berlin)"
    assert str(Schedule.cron("@daily")) == "@daily"
    assert [each.isoformat() for each in schedule.next_times(NOON, 2)] == [
        "2026-01-02T08:00:00+00:00",
        "2026-01-05T08:00:00+00:00",
    ]


@pytest.mark.parametrize(
    ("pattern", "time_zone", "told"),
    [
        ("0 0 9 * *", None, "fields"),
        ("0 0 0 31 2 *", None, "five years"),
        ("@daily", "Mars/Olympus", "unknown time zone"),
        ("@daily", "", "unknown time zone"),
        ("@daily", "../etc/passwd", "unknown time zone"),
        ("@daily", "Local", "the server's own"),
        ("@every 1h", "UTC", "cron patterns only"),
        ("@at 2026-01-01T00:00:00Z", "UTC", "cron patterns only"),
        ("@every 1x", None, "write @every"),
        ("@every 500ms", None, "at least 1s"),
        ("@at tomorrow", None, "not a time"),
        ("@at 2026-13-01T00:00:00Z", None, "@at"),
    ],
)
def test_what_the_server_would_refuse(pattern: str, time_zone: str | None, told: str) -> None:
    with pytest.raises(BadArgument, match=told):
        Schedule.parse(pattern, time_zone)


def test_headers_contain_only_the_requested_conditions() -> None:
    daily = Schedule.cron("@daily", time_zone="Asia/Tokyo")
    assert schedule_headers(daily, "s", "t", source="u", ttl=60, rollup=True) == {
        "Nats-Schedule": "@daily",
        "Nats-Schedule-Target": "t",
        "Nats-Schedule-Time-Zone": "Asia/Tokyo",
        "Nats-Schedule-Source": "u",
        "Nats-Schedule-TTL": "60",
        "Nats-Schedule-Rollup": "sub",
    }
    assert schedule_headers(Schedule.every(5), "s", "t") == {
        "Nats-Schedule": "@every 5s",
        "Nats-Schedule-Target": "t",
    }


@pytest.mark.parametrize(
    ("target", "options", "told"),
    [
        ("s", {}, "own subject"),
        ("t.*", {}, "wildcard"),
        ("t", {"source": "s"}, "source s"),
        ("t", {"source": "t"}, "source t"),
        ("t", {"source": ">"}, "wildcard"),
        ("t", {"ttl": 0.5}, "whole seconds"),
        ("t", {"ttl": 0}, "whole seconds"),
    ],
)
def test_headers_that_do_not_fit(target: str, options: dict[str, Any], told: str) -> None:
    with pytest.raises(BadArgument, match=told):
        schedule_headers(Schedule.every(5), "s", target, **options)


@pytest.mark.parametrize(
    ("schedule", "options", "version", "told"),
    [
        (Schedule.at(NOON), {}, "2.11.9", "need server 2.12.0"),
        (Schedule.at(NOON), {"ttl": 5}, "2.12.0", ""),
        (Schedule.at(NOON), {"source": "u"}, "2.12.0", "Nats-Schedule-Source needs server 2.14.0"),
        (Schedule.at(NOON), {"rollup": True}, "2.12.0", "Nats-Schedule-Rollup"),
        (Schedule.every(5), {}, "2.12.9", "'@every 5s' needs server 2.14.0"),
        (Schedule.cron("@daily"), {}, "2.12.9", "'@daily' needs"),
        (Schedule.cron("@daily", time_zone="UTC"), {"source": "u"}, "2.14.0", ""),
    ],
)
def test_what_older_servers_lack(
    schedule: Schedule, options: dict[str, Any], version: str, told: str
) -> None:
    headers = schedule_headers(schedule, "s", "t", **options)
    numbers = tuple(map(int, version.split(".")))
    if told:
        with pytest.raises(Unsupported, match=told):
            check_schedule_server(headers, schedule, numbers, version)
    else:
        check_schedule_server(headers, schedule, numbers, version)


def message(*headers: tuple[str, str]) -> StreamMessage:
    return StreamMessage(
        stream_name="S",
        subject="s",
        seq=7,
        time=Timestamp.of(NOON),
        data=b"x",
        headers=Headers(headers),
    )


def test_a_schedule_is_read() -> None:
    found = stored_schedule(
        message(
            ("Nats-Schedule", "@every 1m"),
            ("Nats-Schedule-Target", "t"),
            ("Mine", "1"),
            ("Nats-Rollup", "sub"),
            ("Mine", "2"),
        )
    )
    assert (found.schedule, found.target, found.source) == (Schedule("@every 1m"), "t", None)
    assert (found.ttl, found.rollup, found.data, found.seq) == (None, False, b"x", 7)
    assert found.headers.pairs == (("Mine", "1"), ("Mine", "2"))
    assert seconds(found.next_times(NOON + timedelta(seconds=61), 2)) == [120, 180]
    assert finish_headers(found) == {
        "Nats-Scheduler": "s",
        "Nats-Schedule-Next": "purge",
    }
    with pytest.raises(InvalidResponse, match="no schedule"):
        stored_schedule(message(("Mine", "1")))


def test_a_stream_must_have_schedules() -> None:
    check_schedules(StreamConfig(name="S", allow_msg_schedules=True))
    with pytest.raises(BadArgument, match="stream S does not allow schedules"):
        check_schedules(StreamConfig(name="S"))


def test_refusals_are_explained() -> None:
    for code, told in ((10190, "refused: t must be"), (10203, "u must be"), (10223, "time zone")):
        error = JetStreamError("refused", code=400, err_code=code, subject="s")
        assert told in str(explained(error, "t", "u"))
    other = JetStreamError("refused", code=400, err_code=10077, subject="s")
    assert explained(other, "t", None) is None


@pytest.mark.parametrize(
    ("pattern", "zone", "after"),
    [
        ("@daily", None, datetime(9999, 12, 31, 23, tzinfo=UTC)),
        ("@daily", "Pacific/Auckland", datetime(9999, 12, 31, 12, tzinfo=UTC)),
        ("@every 2562047h", None, datetime(9900, 1, 1, tzinfo=UTC)),
    ],
)
def test_times_beyond_the_calendar_are_not_listed(
    pattern: str, zone: str | None, after: datetime
) -> None:
    with pytest.raises(BadArgument, match="in the years 1 to 9999"):
        Schedule.parse(pattern, zone).next_times(after, 2)
