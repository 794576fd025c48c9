"""Cron patterns: their syntax, when they fire, and which of them the server would refuse."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property_examples import examples
from twinstream.core.schedules.cron import WORDS, Cron
from twinstream.errors import BadArgument

START = datetime(2026, 1, 1, tzinfo=UTC)


def fires(pattern: str, after: datetime, count: int, zone: str = "UTC") -> list[str]:
    cron, at, found = Cron(pattern), int(after.timestamp()), list[str]()
    for _ in range(count):
        at = cron.next_after(at, ZoneInfo(zone))
        found.append(datetime.fromtimestamp(at, ZoneInfo(zone)).isoformat())
    return found


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("* * * * * *", ["2026-01-01T00:00:01", "2026-01-01T00:00:02"]),
        ("? ? ? ? ? ?", ["2026-01-01T00:00:01", "2026-01-01T00:00:02"]),
        ("*/20 * * * * *", ["2026-01-01T00:00:20", "2026-01-01T00:00:40"]),
        ("50/5 * * * * *", ["2026-01-01T00:00:50", "2026-01-01T00:00:55"]),
        ("0 30 9 * * mon-fri", ["2026-01-01T09:30:00", "2026-01-02T09:30:00"]),
        ("0 0 0 * * SAT,sun", ["2026-01-03T00:00:00", "2026-01-04T00:00:00"]),
        ("0 0 0 1,15 * 5", ["2026-01-02T00:00:00", "2026-01-09T00:00:00", "2026-01-15T00:00:00"]),
        ("0 0 0 1-31 * 5", ["2026-01-02T00:00:00", "2026-01-03T00:00:00"]),
        ("0 0 0 */10 * 5", ["2026-01-02T00:00:00", "2026-01-09T00:00:00", "2026-01-11T00:00:00"]),
        ("0 0 0 * jan *", ["2026-01-02T00:00:00", "2026-01-03T00:00:00"]),
        ("0 0 0 29 2 *", ["2028-02-29T00:00:00", "2032-02-29T00:00:00"]),
        ("59 59 23 31 12 *", ["2026-12-31T23:59:59", "2027-12-31T23:59:59"]),
        ("5,,7 * * * * *", ["2026-01-01T00:00:05", "2026-01-01T00:00:07"]),
        ("+5 07 * * * *", ["2026-01-01T00:07:05", "2026-01-01T01:07:05"]),
        ("*-9 * * * * *", ["2026-01-01T00:00:01"]),
        ("@yearly", ["2027-01-01T00:00:00", "2028-01-01T00:00:00"]),
        ("@monthly", ["2026-02-01T00:00:00", "2026-03-01T00:00:00"]),
        ("@weekly", ["2026-01-04T00:00:00", "2026-01-11T00:00:00"]),
        ("@midnight", ["2026-01-02T00:00:00", "2026-01-03T00:00:00"]),
        ("@hourly", ["2026-01-01T01:00:00", "2026-01-01T02:00:00"]),
    ],
)
def test_patterns_fire(pattern: str, wanted: list[str]) -> None:
    assert fires(pattern, START, len(wanted)) == [f"{each}+00:00" for each in wanted]


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("", "has 0 fields"),
        ("0 0 0 * *", "put 0 before the five"),
        ("0 0 0 0 * * *", "has 7 fields"),
        ("@reboot", "has 1 fields"),
        ("60 * * * * *", "second: '60' is not within 0 to 59"),
        ("* * 24 * * *", "hour"),
        ("* * * 0 * *", "day of month"),
        ("* * * * 13 *", "month"),
        ("* * * * * 7", "day of week"),
        ("5-3 * * * * *", "not within"),
        ("1-2-3 * * * * *", "hyphens"),
        ("1/2/3 * * * * *", "slashes"),
        ("*/0 * * * * *", "not within"),
        ("*/x * * * * *", "'x' is not a number"),
        ("x * * * * *", "not a number"),
        ("1_0 * * * * *", "not a number"),
        (f"{'9' * 5000} * * * * *", "not a number"),
        (f"*/{'9' * 5000} * * * * *", "not a number"),
        ("-1 * * * * *", "not a number"),
        ("* * * * maybe *", "one of jan, feb"),
        (", * * * * *", "allows nothing"),
        ("0\x1f0 0 * * *", "has 5 fields"),
        ("0 0 0 * * *\x1c", "is not a number"),
    ],
)
def test_patterns_that_the_server_refuses(pattern: str, told: str) -> None:
    with pytest.raises(BadArgument, match=told):
        Cron(pattern)


@pytest.mark.parametrize("pattern", ["0 0 0 30 2 *", "0 0 0 31 4,6,9,11 *"])
def test_what_never_fires_is_refused(pattern: str) -> None:
    with pytest.raises(BadArgument, match="five years"):
        Cron(pattern).next_after(int(START.timestamp()))


@pytest.mark.parametrize(
    ("pattern", "after", "wanted"),
    [
        # The night of 2026-03-29 has no 02:30 in Berlin.
        (
            "0 30 2 * * *",
            datetime(2026, 3, 28, 12, tzinfo=UTC),
            ["2026-03-30T02:30:00+02:00", "2026-03-31T02:30:00+02:00"],
        ),
        # That of 2026-10-25 has two.
        (
            "0 30 2 * * *",
            datetime(2026, 10, 24, 12, tzinfo=UTC),
            ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-26T02:30:00+01:00"],
        ),
        (
            "0 0 9 * * mon",
            datetime(2026, 3, 26, tzinfo=UTC),
            ["2026-03-30T09:00:00+02:00", "2026-04-06T09:00:00+02:00"],
        ),
        (
            "0 0 0 1 * *",
            datetime(2026, 2, 10, tzinfo=UTC),
            ["2026-03-01T00:00:00+01:00", "2026-04-01T00:00:00+02:00"],
        ),
    ],
)
def test_zones_with_summer_time(pattern: str, after: datetime, wanted: list[str]) -> None:
    assert fires(pattern, after, len(wanted), "Europe/Berlin") == wanted


def test_a_zone_that_is_no_whole_hours_away() -> None:
    assert fires("0 0 12 * * *", START, 1, "Asia/Kathmandu") == ["2026-01-01T12:00:00+05:45"]


# ---- compared with a search through every second that lists the values of ranges

NUMBERS = {0: (0, 59), 1: (0, 59), 2: (0, 23), 3: (1, 31), 4: (1, 12), 5: (0, 6)}


@st.composite
def fields(draw: st.DrawFn, place: int) -> tuple[str, set[int], bool]:
    """Return a field, its permitted values, and whether it is a star."""
    low, high = NUMBERS[place]
    kind = draw(st.sampled_from(("star", "list", "range", "step", "from")))
    every = range(low, high + 1)
    if kind == "star":
        return "*", set(every), True
    if kind == "list":
        chosen = draw(st.sets(st.sampled_from(every), min_size=1, max_size=4))
        return ",".join(map(str, chosen)), chosen, False
    start = draw(st.sampled_from(every))
    step = draw(st.integers(2, 20))
    if kind == "step":
        return f"*/{step}", set(every[::step]), False
    if kind == "from":
        return f"{start}/{step}", set(range(start, high + 1, step)), False
    end = draw(st.integers(start, high))
    return f"{start}-{end}", set(range(start, end + 1)), False


def slow_next(allowed: list[tuple[str, set[int], bool]], after: datetime) -> datetime | None:
    """Return the first matching second: count days, then hours and so on."""
    second, minute, hour, day, month, week = allowed
    for days in range(366 * 5):
        date = after.date() + timedelta(days=days)
        by_day, by_week = date.day in day[1], (date.weekday() + 1) % 7 in week[1]
        fits = (by_day and by_week) if day[2] or week[2] else (by_day or by_week)
        if date.month not in month[1] or not fits:
            continue
        for h in sorted(hour[1]):
            for m in sorted(minute[1]):
                for s in sorted(second[1]):
                    found = datetime(date.year, date.month, date.day, h, m, s, tzinfo=UTC)
                    if found > after:
                        return found
    return None


@settings(max_examples=examples(150))
@given(
    st.tuples(*(fields(place) for place in range(6))),
    st.datetimes(datetime(2024, 1, 1), datetime(2036, 1, 1)),
)
def test_an_independent_computation_finds_the_same(
    drawn: tuple[tuple[str, set[int], bool], ...], after: datetime
) -> None:
    begin = after.replace(microsecond=0, tzinfo=UTC)
    cron = Cron(" ".join(text for text, _, _ in drawn))
    wanted = slow_next(list(drawn), begin)
    if wanted is None or wanted.year >= begin.year + 5:
        return  # at the edge of the years that the server looks at
    assert datetime.fromtimestamp(cron.next_after(int(begin.timestamp())), UTC) == wanted


def test_the_words_are_patterns() -> None:
    for word, pattern in WORDS.items():
        assert fires(word, START, 3) == fires(pattern, START, 3)


@pytest.mark.parametrize("blank", [" ", "\t", "\x0b", "\f", "\x85", "\xa0", "\u2009", "\u3000"])
def test_fields_are_separated_by_gos_white_space(blank: str) -> None:
    start = int(START.timestamp())
    assert Cron(f"0{blank}0 9 * * *{blank}").next_after(start) == Cron("0 0 9 * * *").next_after(
        start
    )
