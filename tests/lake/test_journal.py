"""Plans and entries of a journal: the first one counts, and what is damaged is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attrs import evolve

from twinstream.lake.entry import BatchEntry, TableEntry, of_one_stream
from twinstream.lake.errors import JournalError
from twinstream.lake.journal import Journal
from twinstream.lake.local_store import LocalStore
from twinstream.lake.origin import Origin
from twinstream.lake.plan import Plan
from twinstream.lake.stream_mark import Mark


def entry(number: int, start: int = 1, end: int = 11) -> BatchEntry:
    return BatchEntry(
        batch=number, start=start, end=end, created="today", began="2026-01-01T00:00",
        messages=10, tables={"orders": TableEntry(rows=10, files=1, bytes=99)}, mark=Mark(end, "t"),
    )  # fmt: skip


def plan(number: int, start: int = 1, end: int = 11) -> Plan:
    return Plan(
        batch=number, start=start, end=end, created="today", mark=Mark(end, "t"), parts=3,
        began="2026-01-01T00:00",
    )  # fmt: skip


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(LocalStore(tmp_path), "orders")


def test_a_batch_goes_from_its_plan_to_its_entry(journal: Journal) -> None:
    assert (journal.last(), journal.newest(), journal.unfinished()) == (None, -1, None)
    assert journal.planned(plan(0)) == plan(0)
    assert journal.unfinished() == plan(0)
    assert journal.landed(entry(0)) == entry(0)
    assert (journal.last(), journal.newest(), journal.unfinished()) == (entry(0), 0, None)


def test_the_first_driver_decides(journal: Journal, tmp_path: Path) -> None:
    other = Journal(LocalStore(tmp_path), "orders")
    assert other.newest() == -1
    journal.planned(plan(0))
    assert other.planned(plan(0, 1, 99)) == plan(0)
    journal.landed(entry(0))
    assert other.landed(evolve(entry(0), seconds=9.0)) == entry(0)
    assert other.newest() == 0, "it looks for entries of others"


def test_a_replay_changes_an_entry_but_not_where_the_source_continues(journal: Journal) -> None:
    journal.landed(entry(0))
    journal.landed(entry(1, 11, 21))
    journal.replayed(evolve(entry(1, 11, 21), replays=1, messages=9, filter="a"))
    journal.replayed(evolve(entry(1, 11, 21), replays=2, messages=8, filter="a"))
    assert [each.messages for each in journal.entries().values()] == [10, 8]
    assert journal.last() == entry(1, 11, 21)


def test_a_source_begins_once(journal: Journal) -> None:
    assert journal.origin() is None
    first = Origin(stream="ORDERS", created="today", seq=5)
    assert journal.begin(first) == first
    assert journal.origin() == first
    other = Origin(stream="ORDERS", created="today", seq=7)
    assert journal.begin(other) == first, "the first driver decides"
    again = first.replaced_by(Origin(stream="ORDERS", created="tomorrow", seq=1))
    assert journal.begin(again) == again
    assert journal.origin() == again
    assert (again.id, again.number) == (first.id, 1)


def test_a_lost_entry_is_noticed(journal: Journal, tmp_path: Path) -> None:
    for number in range(2):
        journal.planned(plan(number))
        journal.landed(entry(number))
    (tmp_path / "orders" / "landed" / "000000001.json").unlink()
    journal = Journal(LocalStore(tmp_path), "orders")
    assert journal.unfinished() == plan(1)
    (tmp_path / "orders" / "landed" / "000000000.json").unlink()
    with pytest.raises(JournalError, match="batches 0 and 1, and no entry of batch 0"):
        Journal(LocalStore(tmp_path), "orders").unfinished()


@pytest.mark.parametrize(
    "table",
    ["../other", "/etc", "..", ".", "", "a/b", "_dead_letters/..", "_staging", "a/../../b", "a\0"],
)
def test_a_table_of_a_journal_is_a_folder_of_the_pipeline(
    journal: Journal, tmp_path: Path, table: str
) -> None:
    members = {"batch": 0, "start": 1, "end": 2, "created": "today", "kind": "landed"}
    members["tables"] = {table: {"rows": 1, "files": 1, "bytes": 1}}
    LocalStore(tmp_path).create("orders/landed/000000000.json", json.dumps(members).encode())
    with pytest.raises(JournalError, match="is not the name of a table"):
        journal.entries()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch", "../x"), ("batch", -1), ("batch", True), ("batch", 2**64), ("start", 1.5),
        ("end", None), ("seconds", float("nan")), ("seconds", 10**400), ("created", 7),
        ("tables", []), ("mark", {"seq": "x", "time": "t"}), ("filter", 7), ("more", 1),
    ],
)  # fmt: skip
def test_members_of_another_kind_are_refused(tmp_path: Path, name: str, value: object) -> None:
    journal, file = Journal(LocalStore(tmp_path), "orders"), "orders/landed/000000000.json"
    journal.landed(entry(0))
    members = json.loads((tmp_path / file).read_text()) | {name: value}
    (tmp_path / file).write_text(json.dumps(members))
    with pytest.raises(JournalError, match=rf"{file} in the journal cannot be read"):
        journal.last()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"batch": 0}', "null", "7" * 5000])
def test_an_object_that_something_changed_is_named(tmp_path: Path, text: str) -> None:
    journal = Journal(LocalStore(tmp_path), "orders")
    for folder in ("plan", "origin", "landed"):
        (tmp_path / "orders" / folder).mkdir(parents=True)
        (tmp_path / "orders" / folder / "000000000.json").write_text(text)
    for read in (lambda: journal.plan(0), journal.origin, journal.last, journal.entries):
        with pytest.raises(JournalError, match=r"0\.json in the journal cannot be read"):
            read()


@pytest.mark.parametrize("name", ["7.json", "000000007.json.bak", "000000007.json~", "x"])
def test_a_file_that_is_no_entry_is_named(tmp_path: Path, name: str) -> None:
    journal = Journal(LocalStore(tmp_path), "orders")
    journal.landed(entry(0))
    (tmp_path / "orders" / "landed" / name).touch()
    with pytest.raises(JournalError, match=f"landed/{name} is not the entry of a batch"):
        journal.entries()


def test_an_object_that_could_not_be_read_again_is_not_stored(
    journal: Journal, tmp_path: Path
) -> None:
    with pytest.raises(JournalError, match=r"plan/000000000\.json would have more than 64 MiB"):
        journal.planned(evolve(plan(0), filter="a" * (64 << 20)))
    assert LocalStore(tmp_path).names("orders/plan") == []
    assert journal.planned(plan(0)) == plan(0)


def test_batches_of_copies_are_of_one_stream() -> None:
    def batch(number: int, start: int, end: int, created: str) -> BatchEntry:
        return BatchEntry(batch=number, start=start, end=end, created=created)

    entries = [
        batch(0, 1, 5, "sunday"),
        batch(1, 1, 3, "monday"),
        batch(2, 3, 9, "monday"),
        batch(3, 9, 12, "tuesday"),
    ]
    assert list(of_one_stream({each.batch: each for each in entries})) == [1, 2, 3]
    assert of_one_stream({}) == {}
