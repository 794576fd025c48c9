"""Deadlines, and the durations that they are made from."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import timedelta
from itertools import islice

import pytest

from twinstream.core.consume.acks import nak
from twinstream.core.coordination.lease_engine import Terms
from twinstream.core.deadline import NEVER, Backoff, Deadline, monotonic, seconds
from twinstream.core.publish.request import publish_headers
from twinstream.core.schedules.schedules import Schedule
from twinstream.core.workers.retry import TryLater
from twinstream.errors import BadArgument
from twinstream.records.publish_request import PublishRequest


@pytest.mark.parametrize(
    "ask",
    [
        nak,
        TryLater,
        Schedule.every,
        lambda delay: Terms.of(delay, None),
        lambda delay: Terms.period(delay, "keep"),
        lambda delay: publish_headers(PublishRequest(subject="a", ttl=delay)),
    ],
)
def test_durations_are_limited_to_the_range_of_the_servers_clock(
    ask: Callable[[int], object],
) -> None:
    """For a longer duration, a server would at once free a lock, or remove a message."""
    ask(3_000_000_000)
    with pytest.raises(BadArgument, match="at most 100 years"):
        ask(8_000_000_000)


def test_a_deadline_passes_when_its_time_is_over() -> None:
    before = monotonic()
    limit = Deadline.after(timedelta(days=2))
    latest = monotonic()
    assert before + 172_800 <= limit.at <= latest + 172_800
    left = limit.remaining()
    assert 172_800 - (monotonic() - before) <= left <= 172_800
    assert not limit.expired()
    assert re.fullmatch(r"Deadline\(17\d{4}\.\d{3}s\)", repr(limit))
    for over in (Deadline(monotonic()), Deadline.after(0)):
        assert (over.remaining(), over.expired()) == (0.0, True)


def test_the_deadline_never_does_not_pass() -> None:
    assert Deadline.after(None) is NEVER
    assert NEVER.remaining() == math.inf
    assert not NEVER.expired()
    assert repr(NEVER) == "Deadline(never)"
    assert NEVER.earlier(5.0).at == 5.0
    soon = Deadline.after(1)
    assert soon.earlier(soon.at + 1000.0) is soon


@pytest.mark.parametrize("value", [-0.1, float("nan"), timedelta(seconds=-1)])
def test_a_duration_below_zero_or_nan_is_refused(value: float | timedelta) -> None:
    with pytest.raises(BadArgument, match="patience must be"):
        seconds(value, "patience")


@pytest.mark.parametrize("value", ["5", None, "soon", b"1"])
def test_a_duration_that_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(BadArgument, match="patience must be"):
        seconds(value, "patience")  # type: ignore[arg-type]


def test_waits_of_more_than_ten_years_are_nanoseconds_by_mistake() -> None:
    assert seconds(math.inf) == math.inf
    assert seconds(10**8) == 10**8
    for wrong in (10**9, 5_000_000_000):
        with pytest.raises(BadArgument, match=f"{wrong}.* is this {wrong / 1e9:g} s in nanosec"):
            Deadline.after(wrong)
    with pytest.raises(BadArgument, match="10 years") as caught:
        seconds(timedelta(days=4000), "poll")
    assert "nanoseconds" not in str(caught.value)


@pytest.mark.parametrize(
    ("backoff", "pauses"),
    [
        (Backoff(0.1), [0.1, 0.2, 0.4, 0.8, 1.6]),
        (Backoff(0.1, 0.5), [0.1, 0.2, 0.4, 0.5, 0.5]),
        (Backoff(1.0, 100.0, 3.0), [1.0, 3.0, 9.0, 27.0, 81.0]),
        (Backoff(2.0, 5.0, 1.0), [2.0] * 5),
        (Backoff(2.0, 1.0), [1.0] * 5),
        (Backoff(0.0, 5.0), [0.0] * 5),
    ],
)
def test_pauses_grow_up_to_the_longest(backoff: Backoff, pauses: list[float]) -> None:
    assert [backoff.pause(attempt) for attempt in range(1, 6)] == pauses
    assert list(islice(backoff, 5)) == pauses


def test_no_number_of_attempts_is_too_large() -> None:
    assert Backoff(0.1, 5.0).pause(10**9) == 5.0
    assert Backoff(0.1, factor=2).pause(10**9) == math.inf
    assert Backoff(0.0, 5.0).pause(10**9) == 0.0
