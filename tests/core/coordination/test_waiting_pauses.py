"""The pauses of waiters, as a table."""

import pytest

from twinstream.core.coordination.waiting_pauses import pause_after, pause_until_expiry


def test_pauses_double_up_to_ten_seconds():
    assert [pause_after(attempt) for attempt in range(1, 8)] == [0.5, 1, 2, 4, 8, 10, 10]


@pytest.mark.parametrize(
    ("pause", "ttl", "age", "expected"),
    [
        (2.0, 30.0, 0.0, 2.0),
        (2.0, 30.0, 29.0, 1.02),
        (2.0, 30.0, 30.0, 0.02),
        (2.0, 30.0, 30.5, 0.1),
    ],
)
def test_waiters_ask_again_when_the_record_of_the_holder_expires(pause, ttl, age, expected):
    assert pause_until_expiry(pause, ttl, age) == pytest.approx(expected)
