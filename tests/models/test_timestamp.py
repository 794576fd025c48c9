"""Timestamps keep every nanosecond and their original text."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.models import Timestamp

moments = st.integers(-(10**18), 4 * 10**18)


@given(moments)
def test_nanoseconds_survive(ns: int) -> None:
    moment = Timestamp.from_ns(ns)
    assert moment.ns == ns
    again = Timestamp.parse(moment.rfc3339())
    assert (again.ns, again) == (ns, moment)
    assert pickle.loads(pickle.dumps(moment)).ns == ns
    assert copy.deepcopy(moment).ns == ns


@given(moments, moments)
def test_order_is_that_of_nanoseconds(a: int, b: int) -> None:
    one, two = Timestamp.from_ns(a), Timestamp.from_ns(b)
    assert (one < two, one <= two, one == two) == (a < b, a <= b, a == b)
    assert (one > two, one >= two, one != two) == (a > b, a >= b, a != b)


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T08:00:00Z",
        "2026-01-31T08:00:00.1Z",
        "2026-01-31T08:00:00.36954534Z",
        "2026-01-31T08:00:00.123456789Z",
        "2026-01-31T08:00:00.000000001+02:00",
        "2026-01-31T08:00:00.500Z",
        "2026-01-31T08:00:00-00:00",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999999Z",
        "0000-01-01T00:00:00Z",
        "0000-02-29T23:59:59.5+02:00",
    ],
)
def test_spelling_survives(text: str) -> None:
    moment = Timestamp.parse(text)
    assert moment.rfc3339() == text
    assert pickle.loads(pickle.dumps(moment)).rfc3339() == text


def test_the_year_0_is_not_never() -> None:
    moment = Timestamp.parse("0000-12-31T00:00:00Z")
    assert not moment.is_zero
    assert moment < Timestamp.parse("0001-01-01T00:00:01Z")
    with pytest.raises(ValueError, match="day is out of range"):
        Timestamp.parse("0000-02-30T00:00:00Z")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-01-31",
        "2026-01-31T08:00:00",
        "2026-02-30T08:00:00Z",
        "٢٠٢٦-01-31T08:00:00Z",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"[a-z]"):
        Timestamp.parse(text)


def test_only_the_zero_time_is_zero() -> None:
    assert Timestamp.parse("0001-01-01T00:00:00Z").is_zero
    assert not Timestamp.parse("0001-01-01T00:00:00.000000001Z").is_zero


def test_plain_aware_times_are_equal() -> None:
    plain = datetime(2026, 1, 31, 8, 0, 0, 5, tzinfo=UTC)
    moment = Timestamp.of(plain)
    assert moment == plain
    assert plain == moment
    assert hash(moment) == hash(plain)
    later = Timestamp(2026, 1, 31, 8, 0, 0, 5, UTC, nanosecond=1)
    assert later > plain
    assert later != plain


def test_naive_times_are_refused() -> None:
    with pytest.raises(ValueError, match="no zone"):
        Timestamp.of(datetime(2026, 1, 31))
    with pytest.raises(ValueError, match="needs a zone"):
        Timestamp(2026, 1, 31)


def test_differences_and_sums_keep_nanoseconds() -> None:
    one = Timestamp.parse("2026-01-31T08:00:00.000000001Z")
    two = Timestamp.parse("2026-01-31T08:00:01.000000004Z")
    assert (two - one).ns == 1_000_000_003
    assert (one + timedelta(seconds=1)).nanosecond == 1
    assert (two - timedelta(seconds=1)).nanosecond == 4


def test_conversion_keeps_nanoseconds() -> None:
    moment = Timestamp.parse("2026-01-31T08:00:00.000000001Z")
    east = moment.astimezone(timezone(timedelta(hours=2)))
    assert isinstance(east, Timestamp)
    assert east.nanosecond == 1
    assert east == moment
    moved = moment.replace(hour=9, microsecond=7)
    assert moved.rfc3339() == "2026-01-31T09:00:00.000007001Z"
    assert repr(moved) == "Timestamp.parse('2026-01-31T09:00:00.000007001Z')"
    with pytest.raises(ValueError, match="no zone"):
        moment.replace(tzinfo=None)


def test_zones_with_summer_time_convert() -> None:
    moment = Timestamp.parse("2026-07-01T08:00:00.123456789Z")
    local = moment.astimezone(ZoneInfo("Europe/Berlin"))
    assert local.rfc3339() == "2026-07-01T10:00:00.123456789+02:00"
    assert (local.nanosecond, local == moment) == (789, True)
    assert (local + timedelta(days=180)).rfc3339() == "2026-12-28T09:00:00.123456789+01:00"
    assert local.astimezone(UTC) == moment


@pytest.mark.parametrize("year", [1, 1880, 2026])
@pytest.mark.parametrize(
    "zone",
    [
        timezone(timedelta(hours=-2)),
        timezone(timedelta(hours=1, seconds=28)),
        timezone(timedelta(hours=-1, microseconds=5)),
        ZoneInfo("Europe/Berlin"),
    ],
    ids=str,
)
def test_a_pickled_time_keeps_its_zone(zone: tzinfo, year: int) -> None:
    moment = Timestamp(year, 10, 26, 2, 30, 1, 5, zone, fold=1, nanosecond=7)
    again = pickle.loads(pickle.dumps(moment))
    assert type(again) is Timestamp
    assert (again, again.ns, again.fold) == (moment, moment.ns, 1)
    assert again.tzinfo == zone
    # The server's notation has no seconds in offsets.
    assert Timestamp.parse(moment.rfc3339()).ns == moment.ns
    assert eval(repr(moment)) == moment


@pytest.mark.parametrize("other", [5, None, "2026", date(2026, 1, 1), datetime(2026, 1, 1)])
@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
def test_a_time_has_no_order_with_other_values(
    compare: Callable[[Any, Any], Any], other: object
) -> None:
    moment = Timestamp.from_ns(0)
    with pytest.raises(TypeError):
        compare(moment, other)
    if type(other) is not date:  # a date compares itself with the date of any datetime
        with pytest.raises(TypeError):
            compare(other, moment)
    assert moment != other
