"""The work queue: which message may be handled when, retries, and how much to request."""

from __future__ import annotations

import pickle
from datetime import timedelta
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.workers.retry import Retry, TryLater, is_last, nak_delay, pause_after
from twinstream.core.workers.work_queue import WorkQueue
from twinstream.errors import BadArgument


def test_keys_are_worked_on_one_at_a_time_in_order() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for item in ("a1", "a2", "b1"):
        queue.put(item[0], item)
    assert queue.take(0) == ("a", "a1")
    assert queue.has_free
    assert queue.take(0) == ("b", "b1")
    assert queue.take(0) is None
    assert (len(queue), queue.in_hand, queue.has_free) == (3, 2, False)
    queue.done("a")
    assert queue.take(0) == ("a", "a2")
    queue.done("b")
    queue.done("a")
    assert (len(queue), queue.in_hand) == (0, 0)
    queue.put("a", "a3")
    assert queue.take(0) == ("a", "a3")


def test_a_key_sleeps_with_its_item_and_others_go_on() -> None:
    queue: WorkQueue[str] = WorkQueue()
    assert queue.wake_at == float("inf")
    for item in ("a1", "a2", "b1", "c1"):
        queue.put(item[0], item)
    for at in (5.0, 3.0):
        taken = queue.take(0)
        assert taken is not None
        queue.again(*taken, at)
    assert (queue.wake_at, len(queue)) == (3.0, 4)
    assert queue.take(0) == ("c", "c1")
    assert queue.take(2.9) is None
    assert queue.take(3) == ("b", "b1")
    assert queue.wake_at == 5.0
    assert queue.take(9) == ("a", "a1")
    queue.done("a")
    assert queue.take(9) == ("a", "a2")


def test_what_waits_can_be_given_back() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for item in ("a1", "a2", "b1", "c1"):
        queue.put(item[0], item)
    queue.take(0)
    taken = queue.take(0)
    assert taken is not None
    queue.again(*taken, 7.0)
    assert sorted(queue.clear()) == ["a2", "b1", "c1"]
    assert (len(queue), queue.in_hand, queue.wake_at) == (1, 1, float("inf"))
    queue.done("a")
    assert len(queue) == 0
    queue.put("b", "b2")
    assert queue.take(0) == ("b", "b2")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=40), st.randoms())
def test_nothing_is_lost_and_each_key_keeps_its_order(
    plan: list[tuple[str, bool]], chance: object
) -> None:
    queue: WorkQueue[int] = WorkQueue()
    for number, (key, _) in enumerate(plan):
        queue.put(key, number)
    tried: set[int] = set()
    seen: dict[object, list[int]] = {}
    now = 0.0
    in_hand: list[tuple[object, int]] = []
    while len(queue):
        taken = queue.take(now)
        if taken is not None:
            assert taken[0] not in [key for key, _ in in_hand]
            in_hand.append(taken)  # type: ignore[arg-type]
            if len(in_hand) < 2:
                continue
        elif not in_hand:
            now = queue.wake_at
            continue
        key, item = in_hand.pop(0)
        if plan[item][1] and item not in tried:
            tried.add(item)
            queue.again(key, item, now + item % 3)  # type: ignore[arg-type]
        else:
            seen.setdefault(key, []).append(item)
            queue.done(key)  # type: ignore[arg-type]
    assert sorted(chain.from_iterable(seen.values())) == list(range(len(plan)))
    assert all(items == sorted(items) for items in seen.values())


def test_delays_grow_up_to_the_longest() -> None:
    retry = Retry(attempts=3, first=0.5, factor=3, longest=timedelta(seconds=10))
    assert [pause_after(retry, attempt) for attempt in range(1, 6)] == [0.5, 1.5, 4.5, 10, 10]
    assert [is_last(retry, attempt) for attempt in (1, 2, 3, 4)] == [False, False, True, True]
    assert not is_last(Retry(attempts=None), 10**6)
    assert pause_after(Retry(first=5, longest=1), 10**9) == 1


@pytest.mark.parametrize(
    "settings", [{"attempts": 0}, {"factor": 0.5}, {"first": -1}, {"longest": float("inf")}]
)
def test_settings_that_cannot_be(settings: dict[str, float]) -> None:
    with pytest.raises(BadArgument):
        Retry(**settings)  # type: ignore[arg-type]


def test_words_of_a_handler() -> None:
    later = pickle.loads(pickle.dumps(TryLater(timedelta(seconds=2), "busy")))
    assert (later.delay, str(later)) == (2.0, "busy")
    assert str(TryLater(1.5)) == "try again in 1.5 s"
    with pytest.raises(BadArgument):
        TryLater(-1)


# What servers 2.11 and 2.15 did: backoff, delays asked for, seconds until the next deliveries.
MEASURED = [
    ([1, 2, 4, 8], 0.5, [0.5, 1.5, 3.5, 7.5]),
    ([1, 2, 4], 3, [3, 4, 6, 6]),
    ([4, 1], 5, [5, 2, 2, 2]),
]


@pytest.mark.parametrize(("steps", "asked", "came"), MEASURED)
def test_skew_of_a_backoff_is_corrected(steps: list[int], asked: float, came: list[float]) -> None:
    backoff = [timedelta(seconds=step) for step in steps]
    for deliveries, delay in enumerate(came, 1):
        assert nak_delay(delay, deliveries, backoff) == pytest.approx(asked)


def test_delay_without_a_backoff_is_unchanged() -> None:
    assert nak_delay(2.5, 3, None) == nak_delay(2.5, 3, []) == 2.5
    # Less than the backoff makes of it: the least there is, and never at once.
    assert nak_delay(0.5, 3, [timedelta(seconds=1), timedelta(seconds=9)]) == 1e-9
