"""Durations keep every nanosecond."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.models import Duration, Timestamp

ns = st.integers(-(2**63), 2**63 - 1)


@given(ns)
def test_nanoseconds_survive(value: int) -> None:
    duration = Duration.from_ns(value)
    assert duration.ns == value
    assert pickle.loads(pickle.dumps(duration)).ns == value
    assert copy.deepcopy(duration).ns == value
    assert eval(repr(duration)).ns == value


@given(ns, ns)
def test_arithmetic_and_order_are_those_of_nanoseconds(a: int, b: int) -> None:
    one, two = Duration.from_ns(a), Duration.from_ns(b)
    assert (one + two).ns == a + b
    assert (one - two).ns == a - b
    assert (-one).ns == -a
    assert abs(one).ns == abs(a)
    assert (one < two, one <= two, one == two) == (a < b, a <= b, a == b)
    assert (one > two, one >= two, one != two) == (a > b, a >= b, a != b)


@given(st.timedeltas(timedelta(days=-90_000), timedelta(days=90_000)))
def test_plain_timedeltas_are_accepted_exactly(value: timedelta) -> None:
    duration = Duration.of(value)
    assert duration == value
    assert value == duration
    assert hash(duration) == hash(value)
    assert duration - value == timedelta(0)
    assert value - duration == timedelta(0)
    assert value + duration == 2 * value


def test_parts_add_up() -> None:
    duration = Duration(minutes=1, seconds=2, nanoseconds=3)
    assert duration.ns == 62_000_000_003
    assert duration.microseconds == 0
    assert repr(duration) == "Duration(seconds=62, nanoseconds=3)"
    assert repr(Duration()) == "Duration()"


def test_scaling_keeps_nanoseconds() -> None:
    duration = Duration(nanoseconds=3)
    assert (duration * 3).ns == 9
    assert (3 * duration).ns == 9
    assert (Duration(nanoseconds=9) * 0.5).ns == 4


@given(st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6))
def test_scaling_by_floats_rounds_as_timedelta_does(micros: int, factor: float) -> None:
    scaled = Duration.from_ns(micros) * factor
    assert timedelta(microseconds=scaled.ns) == timedelta(microseconds=micros) * factor


def test_one_nanosecond_is_not_nothing() -> None:
    assert Duration(nanoseconds=1)
    assert not Duration()
    assert Duration(nanoseconds=1) != timedelta(0)


def test_numbers_are_refused_with_advice() -> None:
    with pytest.raises(TypeError, match="write timedelta"):
        Duration.of(30)  # type: ignore[arg-type]


@pytest.mark.parametrize("other", [5, 0.5, None, "1s"])
@pytest.mark.parametrize(
    "compare", [operator.lt, operator.le, operator.gt, operator.ge, operator.add, operator.sub]
)
def test_numbers_are_no_durations(compare: Callable[[Any, Any], Any], other: object) -> None:
    duration = Duration(seconds=5)
    for pair in ((duration, other), (other, duration)):
        with pytest.raises(TypeError):
            compare(*pair)
    assert duration != other


def test_a_duration_is_added_to_a_time_from_both_sides() -> None:
    time, duration = datetime(2026, 1, 1, tzinfo=UTC), Duration(seconds=1, nanoseconds=5)
    assert time + duration == duration + time == time + timedelta(seconds=1)
    exact = Timestamp.of(time)
    assert (duration + exact).ns == (exact + duration).ns == exact.ns + duration.ns
    assert (exact - duration).ns == exact.ns - duration.ns
    with pytest.raises(TypeError):
        operator.sub(duration, time)
