"""Plans of letters are small enough to be stored, whatever their entries have."""

from __future__ import annotations

from attrs import asdict

from twinstream.core.wire.response import write_json
from twinstream.lake.entry import BatchEntry
from twinstream.models.files.bounded_read import LARGEST
from twinstream.spark.pipeline.letters.plan_portions import plan_portions


def entries(count: int, subjects: int) -> list[BatchEntry]:
    text = "s" * subjects
    return [
        BatchEntry(batch=at, start=at, end=at + 1, created="t", filter=text) for at in range(count)
    ]


def test_large_entries_are_divided_by_their_size() -> None:
    due = entries(70, 1_000_000)
    portions = list(plan_portions(due, 2))
    assert [each for portion in portions for each in portion] == due
    sizes = [sum(len(write_json(asdict(each))) for each in portion) for portion in portions]
    assert max(sizes) <= LARGEST // 4
    assert len(portions) == 5


def test_many_entries_are_divided_by_their_number() -> None:
    portions = list(plan_portions(entries(10_001, 10), 2))
    assert list(map(len, portions)) == [10_000, 1]


def test_many_tables_make_plans_larger() -> None:
    portions = list(plan_portions(entries(3000, 10), 50))
    assert len(portions) == 3


def test_an_entry_that_is_too_large_is_alone() -> None:
    assert list(map(len, plan_portions(entries(3, LARGEST // 4), 2))) == [1, 1, 1]
    assert list(plan_portions([], 2)) == []
