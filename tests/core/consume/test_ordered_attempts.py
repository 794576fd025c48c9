"""The attempts of an ordered read to create consumers: repeats, pauses and the end."""

from __future__ import annotations

import pytest

from twinstream.core.consume.ordered_attempts import ConsumerAttempts
from twinstream.errors import ConnectionLost, NoResponders, TwinstreamError

NO_LEADER = NoResponders("no leader")
LOST = ConnectionLost("lost")


@pytest.mark.parametrize(
    ("most", "errors", "ends"),
    [
        # The first attempt of a read is repeated only after a lost connection.
        (None, [NO_LEADER], [True]),
        (None, [LOST, LOST], [False, False]),
        (2, [LOST, LOST, LOST], [False, True, False]),
        (1, [LOST], [True]),
    ],
)
def test_the_first_attempt(
    most: int | None, errors: list[TwinstreamError], ends: list[bool]
) -> None:
    attempts = ConsumerAttempts(most)
    assert [attempts.failed(error) for error in errors] == ends


def test_later_attempts_are_repeated_until_enough_failed_in_a_row() -> None:
    attempts = ConsumerAttempts(3)
    attempts.created(0, 1.0)
    assert [attempts.failed(NO_LEADER) for _ in range(2)] == [False, False]
    attempts.created(0, 2.0)
    assert [attempts.failed(NO_LEADER) for _ in range(3)] == [False, False, True]


def test_the_reason_of_a_failure_is_known_until_an_attempt_succeeds() -> None:
    attempts = ConsumerAttempts(None)
    assert attempts.trouble is None
    attempts.pause(NO_LEADER)
    assert attempts.trouble is NO_LEADER
    attempts.created(0, 1.0)
    assert attempts.trouble is None


def test_pauses_grow_until_a_consumer_was_stable() -> None:
    attempts = ConsumerAttempts(None)
    short, longer = (attempts.pause(LOST).remaining() for _ in range(2))
    for _ in range(8):
        attempts.pause(LOST)
    longest = attempts.pause(LOST).remaining()
    assert short < longest
    assert longer <= longest
    attempts.created(0, 1.0)
    attempts.lost(0, 5.0)
    assert attempts.pause(LOST).remaining() < longest


def test_consumers_that_are_lost_soon_are_followed_by_one_pause_each() -> None:
    attempts = ConsumerAttempts(None)
    for number in range(2):
        assert not attempts.needs_rest
        attempts.created(7, float(number))
        attempts.lost(7, number + 0.5)
    assert attempts.needs_rest
    attempts.rested()
    assert not attempts.needs_rest
    attempts.created(7, 3.0)
    attempts.lost(7, 3.5)
    assert attempts.needs_rest


@pytest.mark.parametrize(("position", "lost_at"), [(8, 3.1), (7, 4.0)])
def test_progress_or_a_long_life_ends_the_pauses(position: int, lost_at: float) -> None:
    attempts = ConsumerAttempts(None)
    for number in range(2):
        attempts.created(7, float(number))
        attempts.lost(7, number + 0.5)
    attempts.created(7, 3.0)
    attempts.lost(position, lost_at)
    assert not attempts.needs_rest
