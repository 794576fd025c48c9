"""Scenarios are repeated only if they failed and the process stood still."""

from __future__ import annotations

from time import monotonic

import pytest

from tests.stalls import Attempt, Ticker, attempts, timed


def stand_still() -> float:
    """Let no thread of this process run for a while; return the seconds."""
    begun = monotonic()
    # One call that keeps the interpreter's lock.
    sum(range(20_000_000))
    return monotonic() - begun


def test_a_stall_is_seen() -> None:
    with Ticker() as ticker:
        seconds = stand_still()
    assert ticker.longest >= seconds / 2


def test_a_failure_after_a_stall_does_not_count() -> None:
    runs = []
    for attempt in attempts(0.3):
        with attempt:
            runs.append(attempt)
            if len(runs) == 1:
                stand_still()
            assert len(runs) > 1
    assert len(runs) == 2


def fail_in(runs: list[Attempt], seconds: float) -> None:
    for attempt in attempts(seconds, times=3):
        with attempt:
            runs.append(attempt)
            raise AssertionError("wrong")


@pytest.mark.parametrize(("seconds", "count"), [(1000, 1), (0, 3)])
def test_another_failure_counts_and_the_last_one(seconds: float, count: int) -> None:
    runs: list[Attempt] = []
    with pytest.raises(AssertionError, match="wrong"):
        fail_in(runs, seconds)
    assert len(runs) == count


def test_a_timed_test_is_repeated_after_a_stall() -> None:
    runs = []

    def test(number: int) -> None:
        runs.append(number)
        if len(runs) == 1:
            stand_still()
        assert len(runs) > 1

    timed(test, 0.3)(number=7)
    assert runs == [7, 7]
