"""Bundles of a journal: nothing is lost at any point, and late drivers notice them."""

from __future__ import annotations

import gzip
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from tests.mortal_store import Died, MemoryStore, MortalStore
from tests.soak import LONGEST
from twinstream.lake.bundles import SPAN
from twinstream.lake.entry import BatchEntry, TableEntry
from twinstream.lake.errors import JournalError
from twinstream.lake.journal import Journal
from twinstream.lake.letters_plan import LettersPlan
from twinstream.lake.local_store import LocalStore
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.objects.store import ObjectStore
from twinstream.lake.plan import Plan
from twinstream.lake.store import Store
from twinstream.lake.stream_mark import Mark

FEW = 3


def entry(number: int) -> BatchEntry:
    return BatchEntry(
        batch=number, start=10 * number + 1, end=10 * number + 11, created="today", messages=10,
        began="2026-01-01T00:00", tables={"orders": TableEntry(rows=10, files=1, bytes=99)},
        mark=Mark(10 * number + 10, "t"),
    )  # fmt: skip


def plan(number: int) -> Plan:
    return Plan(
        batch=number, start=10 * number + 1, end=10 * number + 11, created="today", parts=3,
        began="2026-01-01T00:00",
    )  # fmt: skip


def journal_in(store: Store | Path) -> Journal:
    return Journal(LocalStore(store) if isinstance(store, Path) else store, "orders", FEW)


def land(journal: Journal, *numbers: int) -> None:
    for number in numbers:
        journal.planned(plan(number))
        journal.landed(entry(number))


def seen(journal: Journal) -> tuple[Any, ...]:
    """Return all that a journal shows."""
    plans = [journal.plan(number) for number in range(12)]
    entries = [journal.entry(number) for number in range(12)]
    return plans, entries, journal.entries(), journal.newest(), journal.last(), journal.unfinished()


def names(store: Store | Path, kind: str) -> list[str]:
    return (LocalStore(store) if isinstance(store, Path) else store).names(f"orders/{kind}")


@pytest.fixture
def ten(tmp_path: Path) -> Journal:
    """A journal of ten batches, one of them replayed twice, and an unfinished one."""
    journal = journal_in(tmp_path)
    land(journal, *range(10))
    for replays in (1, 2):
        journal.replayed(evolve(entry(4), replays=replays, messages=10 - replays))
    journal.planned(plan(10))
    return journal


def test_a_journal_shows_the_same_before_and_after(ten: Journal, tmp_path: Path) -> None:
    before = seen(ten)
    assert ten.bundle() == (23, 6), "batches 0 to 8 in three bundles, and 9 and the unfinished 10"
    assert names(tmp_path, "landed") == ["000000009.json"]
    assert names(tmp_path, "plan") == ["000000009.json", "000000010.json"]
    assert len(names(tmp_path, "bundle")) == 3
    assert seen(ten) == before
    assert seen(journal_in(tmp_path)) == before
    assert ten.bundle() == (6, 6)


def test_the_newest_batch_is_in_no_bundle(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    land(journal, 0, 1, 2)
    assert journal.bundle() == (6, 6)
    land(journal, 3)
    assert journal.bundle() == (8, 3)
    assert journal_in(tmp_path).last() == entry(3)


def test_a_replay_of_a_bundled_batch_is_bundled_again(ten: Journal, tmp_path: Path) -> None:
    ten.bundle()
    again = evolve(entry(4), replays=3, messages=1)
    ten.replayed(again)
    assert journal_in(tmp_path).entries()[4] == again
    assert ten.bundle() == (7, 6)
    assert names(tmp_path, "bundle")[1] == "000000003.001.json.gz"
    assert journal_in(tmp_path).entries()[4] == again
    assert journal_in(tmp_path).entry(4) == entry(4)


def test_a_bundle_that_could_not_be_read_again_is_not_stored() -> None:
    """The entries of batches with many subjects are large. A bundle may have 64 MiB."""
    store = MemoryStore()
    journal = journal_in(store)
    large = "a" * (12 << 20)
    for number in range(7):
        subjects = large if number < 3 else "a"
        journal.planned(evolve(plan(number), filter=subjects))
        journal.landed(evolve(entry(number), filter=subjects))
    before = seen(journal)
    assert journal.bundle() == (14, 9)
    assert names(store, "bundle") == ["000000003.000.json.gz"]
    assert seen(journal) == seen(journal_in(store)) == before
    assert journal.bundle() == (9, 9)


def test_a_bundle_that_would_become_too_large_keeps_what_it_has() -> None:
    store = MemoryStore()
    journal = journal_in(store)
    land(journal, *range(4))
    journal.bundle()
    for replays in range(1, 7):
        journal.replayed(evolve(entry(1), replays=replays, filter="a" * (12 << 20)))
    before = seen(journal)
    assert journal.bundle() == (9, 9)
    assert seen(journal_in(store)) == before


def test_a_journal_on_an_object_store_is_bundled(bucket: ObjectFolder) -> None:
    store = ObjectStore(bucket)
    journal = journal_in(store)
    land(journal, *range(5))
    before = seen(journal)
    assert journal.bundle() == (10, 5)
    assert names(store, "bundle") == ["000000000.000.json.gz"]
    assert names(store, "landed") == ["000000003.json", "000000004.json"]
    assert seen(journal_in(ObjectStore(bucket))) == before
    journal.replayed(evolve(entry(1), replays=1, messages=9))
    assert journal.bundle() == (6, 5)
    assert names(store, "bundle") == ["000000000.001.json.gz"]
    assert journal_in(ObjectStore(bucket)).entries()[1].messages == 9


def test_a_driver_that_dies_while_it_bundles() -> None:
    """At each call of the store; and another one does the rest."""
    point = 0
    while True:
        store = MemoryStore()
        journal = journal_in(store)
        land(journal, *range(8))
        journal.replayed(evolve(entry(1), replays=1))
        before = seen(journal)
        journal.bundle()
        journal.replayed(evolve(entry(1), replays=2))
        land(journal, 8, 9)
        before = seen(journal)
        mortal = journal_in(MortalStore(store, point))
        try:
            mortal.bundle()
        except Died:
            assert seen(journal_in(store)) == before, point
            journal_in(store).bundle()
            assert seen(journal_in(store)) == before, point
            assert len(names(store, "bundle")) == 3
            assert names(store, "landed") == ["000000009.json"]
        else:
            break
        point += 1
    assert point > 30


def test_readers_and_drivers_see_all_while_it_bundles() -> None:
    """Another process looks, or lands a batch, at each call of the store."""
    point = 0
    reached = True
    while reached:
        store = MemoryStore()
        land(journal_in(store), *range(10))
        slow = journal_in(store)
        assert slow.newest() == 9
        before = seen(journal_in(store))[2]

        def look(store: Store = store, slow: Journal = slow, before: object = before) -> None:
            assert journal_in(store).entries() == before
            assert slow.entries() == before
            land(slow, 10)
            assert journal_in(store).newest() == 10

        mortal = MortalStore(store, point, look)
        journal_in(mortal).bundle()
        reached = mortal.is_reached
        assert list(journal_in(store).entries()) == list(range(11 if reached else 10))
        point += 1
    assert point > 30


def test_several_processes_bundle_at_once(tmp_path: Path) -> None:
    land(journal_in(tmp_path), *range(40))
    before = journal_in(tmp_path).entries()
    errors: list[Exception] = []
    ready = threading.Barrier(4)

    def work() -> None:
        ready.wait(LONGEST)
        try:
            journal_in(tmp_path).bundle()
            assert journal_in(tmp_path).entries() == before
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert errors == []
    assert journal_in(tmp_path).entries() == before
    assert names(tmp_path, "landed") == ["000000039.json"]


@pytest.mark.parametrize("known", [None, 0, 1, 4])
def test_a_driver_that_slept_plans_no_batch_again(tmp_path: Path, known: int | None) -> None:
    """It knows the journal up to batch `known`; the batch after it has been bundled since."""
    slept = journal_in(tmp_path)
    if known is not None:
        land(journal_in(tmp_path), *range(known + 1))
    assert slept.newest() == (-1 if known is None else known)
    number = slept.newest() + 1
    land(journal_in(tmp_path), *range(number, 10))
    journal_in(tmp_path).bundle()
    other = evolve(plan(number), end=99, parts=9)
    assert slept.planned(other) == plan(number)
    assert names(tmp_path, "plan") == ["000000009.json"]
    assert slept.entry(number) == entry(number)
    assert slept.newest() == 9
    assert slept.last() == entry(9)


def test_objects_of_a_late_driver_do_not_count(ten: Journal, tmp_path: Path) -> None:
    ten.bundle()
    late = {"batch": 4, "start": 1, "end": 2, "created": "today", "messages": 77}
    key = "orders/landed/000000004.json"
    LocalStore(tmp_path).create(key, json.dumps(late).encode())
    again = evolve(entry(5), replays=1)
    ten.replayed(again)
    before = journal_in(tmp_path).entries()
    assert (before[4].messages, before[5]) == (8, again)
    journal_in(tmp_path).bundle()
    assert names(tmp_path, "landed") == ["000000009.json"]
    assert journal_in(tmp_path).entries() == before
    assert journal_in(tmp_path).entry(4) == entry(4)


def test_a_damaged_object_is_not_bundled(ten: Journal, tmp_path: Path) -> None:
    (tmp_path / "orders" / "plan" / "000000004.json").write_text('{"batch": "x"}')
    with pytest.raises(JournalError, match=r"plan/000000004\.json in the journal cannot be read"):
        ten.bundle()
    assert len(names(tmp_path, "bundle")) == 1
    assert "000000004.json" in names(tmp_path, "plan")


WHOLE = gzip.compress(b"{}", mtime=0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        gzip.compress(b"[]", mtime=0),
        gzip.compress(b"{", mtime=0),
        WHOLE[:-3],
        WHOLE[:2],
    ],
    ids=["empty", "not packed", "a list", "no JSON", "cut", "begun"],
)
def test_a_damaged_bundle_is_named(ten: Journal, tmp_path: Path, data: bytes) -> None:
    ten.bundle()
    (tmp_path / "orders" / "bundle" / "000000003.000.json.gz").write_bytes(data)
    with pytest.raises(JournalError, match=r"bundle/000000003\.000\.json\.gz in the journal can"):
        journal_in(tmp_path).entries()


@pytest.mark.parametrize("first", [0, 3, 6])
@pytest.mark.parametrize("data", [None, b"{}", b'{"x": 1}'], ids=["removed", "empty", "other"])
def test_a_bundle_without_its_entries_is_noticed(
    ten: Journal, tmp_path: Path, first: int, data: bytes | None
) -> None:
    for number in range(10):  # an entry of a replay does not replace that of the batch
        plan_of_letters = LettersPlan(
            number=number,
            newest=9,
            folder="x",
            files=(),
            entries=(evolve(entry(number), replays=9),),
        )
        ten.letters.landed(plan_of_letters)
    ten.bundle()
    file = tmp_path / "orders" / "bundle" / f"{first:09}.000.json.gz"
    file.unlink()
    if data is not None:
        file.write_bytes(gzip.compress(data, mtime=0))
    with pytest.raises(JournalError, match=f"entries of 3 batches from {first} to {first + 2}:"):
        journal_in(tmp_path).entries()


@pytest.mark.parametrize("where", ["bundle", "landed"])
def test_a_single_entry_that_is_missing_is_noticed(tmp_path: Path, where: str) -> None:
    journal = journal_in(tmp_path)
    land(journal, 0, 1, 2, 3, 4)
    if where == "bundle":
        journal.bundle()
        file = tmp_path / "orders" / "bundle" / "000000000.000.json.gz"
        content = json.loads(gzip.decompress(file.read_bytes()))
        del content["landed/000000001.json"]
        file.write_bytes(gzip.compress(json.dumps(content).encode(), mtime=0))
    else:
        (tmp_path / "orders" / "landed" / "000000001.json").unlink()
    with pytest.raises(JournalError, match="entries of 1 batches from 1 to 1:"):
        journal_in(tmp_path).entries()


def test_an_entry_that_a_listing_lacks_is_not_missing() -> None:
    """The listing of a folder may lack a file that is created meanwhile, and have a later one."""

    class Blind(MemoryStore):
        seen_once = False

        def names(self, folder: str) -> list[str]:
            found = super().names(folder)
            if folder.endswith("landed") and not self.seen_once:
                self.seen_once = True
                del found[1]
            return found

    store = Blind()
    journal = journal_in(store)
    for number in range(3):
        journal.landed(entry(number))
    assert list(journal_in(store).entries()) == [0, 1, 2]


@pytest.mark.parametrize("name", ["x", "000000004.000.json.gz", "000000003.json.gz"])
def test_a_file_that_is_no_bundle_is_named(ten: Journal, tmp_path: Path, name: str) -> None:
    LocalStore(tmp_path).create(f"orders/bundle/{name}", b"")
    with pytest.raises(JournalError, match=f"bundle/{name} is not a bundle of a journal"):
        ten.bundle()


def test_a_bundle_has_as_many_batches_as_the_docs_say() -> None:
    store = MemoryStore()
    journal = Journal(store, "orders")
    land(journal, *range(SPAN))
    assert journal.bundle() == (2 * SPAN, 2 * SPAN)
    land(journal, SPAN)
    assert journal.bundle() == (2 * SPAN + 2, 3)
    assert len(Journal(store, "orders").entries()) == SPAN + 1
