"""The decisions of a range read that gets its pages from a replica that lags behind."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.read.range_read import AskLeader, Finished, Page, Pause, RangeRead
from twinstream.errors import InvalidResponse


class Replica:
    """A stream as its leader knows it, and a replica that lags behind by some messages."""

    def __init__(self, seqs: Iterable[int], lags: Iterable[int] = ()) -> None:
        self.seqs = sorted(seqs)
        self.lags = iter(lags)
        self.leader_calls = 0

    def page(self, page: Page) -> tuple[list[int], bool]:
        lag = next(self.lags, 0)
        visible = self.seqs[: len(self.seqs) - lag]
        found = [seq for seq in visible if seq >= page.seq]
        return found[: page.batch], len(found) > page.batch

    def leader(self, seq: int) -> int | None:
        self.leader_calls += 1
        return next((found for found in self.seqs if found >= seq), None)


def drive(read: RangeRead, replica: Replica, limit: int = 10_000) -> list[int]:
    kept: list[int] = []
    for _ in range(limit):
        match read.step:
            case Page() as page:
                seqs, more = replica.page(page)
                kept += [seq for seq in seqs if read.accept(seq)]
                read.page_ended(more=more)
            case AskLeader(seq):
                read.leader_has(replica.leader(seq))
            case Pause():
                read.paused()
            case Finished():
                return kept
    raise AssertionError("the read does not end")


def test_reads_a_full_range_without_asking_the_leader() -> None:
    replica = Replica(range(1, 101))
    read = RangeRead(1, 101, page_messages=30)
    assert drive(read, replica) == list(range(1, 101))
    assert replica.leader_calls == 0
    assert read.step == Finished(100, 1, 100)


def test_never_asks_for_more_than_is_left() -> None:
    read = RangeRead(10, 15, page_messages=1000)
    assert read.step == Page(10, 5, read.step.max_bytes)  # type: ignore[union-attr]


def test_empty_range_is_finished_at_once() -> None:
    assert RangeRead(7, 7).step == Finished(0, 0, 0)


def test_gap_at_the_end_costs_one_leader_request() -> None:
    replica = Replica([1, 2, 3])
    assert drive(RangeRead(1, 10), replica) == [1, 2, 3]
    assert replica.leader_calls == 1


def test_message_past_the_end_is_proof_and_is_dropped() -> None:
    replica = Replica([1, 2, 50])
    read = RangeRead(1, 10)
    assert drive(read, replica) == [1, 2]
    assert replica.leader_calls == 0


@pytest.mark.parametrize("lags", [[3], [10, 5, 2], [10] * 7, [1, 0, 9]])
def test_replica_reporting_the_end_is_not_trusted(lags: list[int]) -> None:
    replica = Replica(range(1, 11), lags)
    assert drive(RangeRead(1, 11), replica) == list(range(1, 11))


def test_leader_moves_the_read_over_deleted_messages() -> None:
    read = RangeRead(1, 100)
    read.page_ended(more=False)
    read.leader_has(60)
    assert isinstance(read.step, Pause)
    read.paused()
    assert isinstance(read.step, Page)
    assert read.step.seq == 60


def test_pauses_grow_and_are_bounded() -> None:
    read = RangeRead(1, 100)
    pauses: list[float] = []
    for _ in range(12):
        read.page_ended(more=False)
        read.leader_has(1)
        assert isinstance(read.step, Pause)
        pauses.append(read.step.seconds)
        read.paused()
    assert pauses == sorted(pauses)
    assert pauses[0] == 0.005
    assert pauses[-1] == 0.25


def test_broken_page_continues_where_it_broke() -> None:
    read = RangeRead(1, 100)
    assert read.accept(1)
    assert read.accept(2)
    read.page_failed()
    read.paused()
    assert isinstance(read.step, Page)
    assert read.step.seq == 3
    assert not read.accept(2), "a message that came before the break is not taken twice"


def test_empty_page_with_pending_messages_is_checked() -> None:
    read = RangeRead(1, 100)
    read.page_ended(more=True)
    assert read.step == AskLeader(1)


def test_leader_answer_below_the_question_is_refused() -> None:
    read = RangeRead(5, 100)
    read.page_ended(more=False)
    with pytest.raises(InvalidResponse, match="below the requested 5"):
        read.leader_has(4)


@pytest.mark.parametrize(("start", "end"), [(0, 5), (-1, 5), (6, 5)])
def test_bounds_that_are_no_range_are_refused(start: int, end: int) -> None:
    with pytest.raises(ValueError, match="need 1 <= start <= end"):
        RangeRead(start, end)


def test_reports_in_the_wrong_step_are_refused() -> None:
    read = RangeRead(1, 10)
    with pytest.raises(RuntimeError, match="expected the step AskLeader"):
        read.leader_has(None)


@given(
    seqs=st.sets(st.integers(1, 60)),
    start=st.integers(1, 60),
    size=st.integers(0, 60),
    page=st.integers(1, 20),
    seed=st.integers(0, 10_000),
)
def test_any_lag_and_any_gaps_give_exactly_the_range(
    seqs: set[int], start: int, size: int, page: int, seed: int
) -> None:
    rng = random.Random(seed)
    lags = [rng.randrange(len(seqs) + 1) for _ in range(20)]
    end = start + size
    kept = drive(RangeRead(start, end, page_messages=page), Replica(seqs, lags))
    assert kept == sorted(seq for seq in seqs if start <= seq < end)
