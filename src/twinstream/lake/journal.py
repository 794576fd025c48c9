"""The journal of one source: its origin, and a plan and an entry for each batch.

::

    <source>/origin/000.json             where the source began; the last one counts
    <source>/plan/000000007.json         the plan of batch 7
    <source>/landed/000000007.json       its entry: all its rows are in the tables
    <source>/landed/000000007.001.json   its entry after a replay
    <source>/letters/…                   the replays of dead letters (`LettersJournal`)
    <source>/bundle/…                    plans and entries of older batches (`Bundles`)

Batches are numbered from 0, without gaps. A batch is planned when its predecessor has an entry. So
only the newest plan may lack an entry, and the next driver finishes it. Plans are kept, so that no
late driver can plan a landed batch again with other bounds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from typing import Any, Final, Literal, TypeAlias, TypeVar

from attrs import asdict, evolve

from twinstream.core.hooks import HOOKS, reached
from twinstream.core.wire.response import write_json
from twinstream.lake.bundles import SPAN, Bundles
from twinstream.lake.entry import BatchEntry
from twinstream.lake.errors import JournalError
from twinstream.lake.journal_objects import JournalObjects
from twinstream.lake.letters_journal import LettersJournal
from twinstream.lake.origin import Origin
from twinstream.lake.plan import Plan
from twinstream.lake.store import KeyTaken, Store

__all__ = ["Journal", "Kind"]

Kind: TypeAlias = Literal["landed", "accepted"]
"""Why a batch has an entry: its messages were landed, or it is the empty batch that records that
the user accepted another stream or other subjects."""

_T = TypeVar("_T")

_NUMBERS: Final = re.compile(r"(\d{9,})(?:\.(\d{3,}))?\.json", re.ASCII)
_KINDS: Final = {"plan": "plan", "landed": "entry"}


class Journal:
    """The journal of the source `source` in a store.

    `span` is the number of batches of a bundle, the same for all processes.
    """

    def __init__(self, store: Store, source: str, span: int = SPAN) -> None:
        self._source: Final = source
        self._objects: Final = JournalObjects(store, source)
        self._bundles: Final = Bundles(self._objects, span)
        self.letters: Final = LettersJournal(self._objects)
        """The replays of dead letters."""
        self._newest: int | None = None

    def origin(self) -> Origin | None:
        """Return where the source began, or `None` for a source that never ran."""
        names = self._objects.names("origin")
        return self._objects.read(f"origin/{names[-1]}", Origin.from_json) if names else None

    def begin(self, origin: Origin) -> Origin:
        """Record where the source begins, before its first batch, and return what counts.

        This is the origin of another driver if that one was faster.
        """
        return self._objects.settle(
            f"origin/{origin.number:03}.json", asdict(origin), Origin.from_json
        )

    def unfinished(self) -> Plan | None:
        """Return the plan of the batch that has no entry yet, or `None` if there is none.

        Raises `JournalError` if a later batch was planned, because then the entry is lost.
        """
        return self.position()[1]

    def position(self) -> tuple[int, Plan | None]:
        """Return the number of the newest batch with an entry, and the plan of the batch after it.

        The number is -1, and the plan is `None`, if there is none. Raises as `unfinished` does.
        """
        while True:
            number = self.newest() + 1
            plan = self.plan(number)
            if plan is None or self.plan(number + 1) is None:
                return number - 1, plan
            if self.newest() < number:  # otherwise another driver has just landed the batch
                raise JournalError(
                    f"the journal of source {self._source} has plans of batches {number} and"
                    f" {number + 1}, and no entry of batch {number}: it was restored to an earlier"
                    " state; restore the newer journal, or land into a new folder"
                )

    def plan(self, batch: int) -> Plan | None:
        """Return the plan of a batch, or `None` if it is not planned."""
        return self._of_batch(batch, _plan_name(batch), Plan.from_json)

    def planned(self, plan: Plan) -> Plan:
        """Store the plan of the next batch, and return the plan that counts.

        This is the plan of another driver if that one was faster.
        """
        name = _plan_name(plan.batch)
        found = self._objects.settle(name, asdict(plan), Plan.from_json)
        # Plans that are in bundles are deleted after the entry of the batch before them. So a
        # driver that has slept meanwhile notices here that the batch was planned long ago.
        if not plan.batch or not self._objects.has(f"landed/{plan.batch - 1:09}.json"):
            self.list_bundles()
            bundled = self._bundles.object_of(plan.batch, name)
            if bundled is not None:
                self._objects.delete(name)
                return self._objects.made(name, lambda: bundled, Plan.from_json)
        return found

    def landed(self, entry: BatchEntry, kind: Kind = "landed") -> BatchEntry:
        """Store the entry of a batch whose rows are all in their tables; return what counts.

        This is the entry of another driver if that one was faster.
        """
        if HOOKS:
            reached("journal: before landed", entry)
        value = {"kind": kind, **asdict(entry)}
        stored = self._objects.settle(f"landed/{entry.batch:09}.json", value, _entry)
        if self._newest == entry.batch - 1:
            self._newest = entry.batch
        return stored

    def replayed(self, entry: BatchEntry, check: Callable[[], None] = lambda: None) -> BatchEntry:
        """Store the entry of a batch that a replay has landed again, and return it.

        The caller has the exclusive lock of the tables, and `check` raises an error if it has lost
        it. A process that had the lock before may have stored an entry of the same number late, so
        the entry gets the next free one.
        """
        while True:
            check()
            key = f"landed/{entry.batch:09}.{entry.replays:03}.json"
            try:
                self._objects.create(key, write_json({"kind": "replayed", **asdict(entry)}))
            except KeyTaken:
                entry = evolve(entry, replays=entry.replays + 1)
            else:
                return entry

    def newest(self) -> int:
        """Return the highest number of a batch with an entry, or -1 if there is none.

        The first call lists the entries. Later calls only look for further entries.
        """
        if self._newest is None:
            self._newest = max((batch for batch, _, _ in self._loose("landed")), default=-1)
            self.list_bundles()
        while self._objects.has(f"landed/{self._newest + 1:09}.json"):
            self._newest += 1
        return self._newest

    def last(self) -> BatchEntry | None:
        """Return the entry of the newest batch as it was first landed, or `None` without batches.

        A replay may have other subjects, which say nothing about the next batch.
        """
        return self.entry(self.newest())

    def entry(self, batch: int) -> BatchEntry | None:
        """Return the entry of a batch as it was first landed, or `None` if there is none."""
        return self._of_batch(batch, f"landed/{batch:09}.json", _entry)

    def entries(self) -> dict[int, BatchEntry]:
        """Return the entry of each landed batch after its last replay, by its number, ascending.

        Raises `JournalError` if a batch before the last one has no entry of its first landing.
        """
        missing: list[int] = []
        while True:
            first_landed, found = self._found_entries()
            before, missing = missing, sorted({*range(max(found, default=-1) + 1)} - first_landed)
            # A listing may lack an entry that was created meanwhile. Another one has it.
            if not missing or missing == before:
                break
        if missing:
            raise JournalError(
                f"the journal of source {self._source} has no entries of {len(missing)} batches"
                f" from {missing[0]} to {missing[-1]}: another program removed or"
                f" changed files in {self._objects.key('bundle')} or {self._objects.key('landed')};"
                " restore them, or land into a new folder"
            )
        return found

    def _found_entries(self) -> tuple[set[int], dict[int, BatchEntry]]:
        """Return which batches have an entry of their first landing, and the newest entries."""
        # Listed before the bundles, so that an object that is bundled meanwhile is found there. The
        # names are sorted, so the last replay of a batch replaces the earlier ones.
        in_store = sorted(self._loose("landed"))
        loose = {batch: name for batch, _, name in in_store}
        first_landed = {batch for batch, replays, _ in in_store if not replays}
        found: dict[int, BatchEntry] = {}
        for content in self._bundles.contents():
            names = sorted(_numbered(name) for name in content if name.startswith("landed/"))
            first_landed |= {batch for batch, replays, _ in names if not replays}
            for batch, name in {batch: name for batch, _, name in names}.items():
                found[batch] = self._objects.made(name, partial(content.get, name), _entry)
        of_loose = (self._of_batch(at, name, _entry, is_listed=True) for at, name in loose.items())
        for entry in of_loose:
            if entry is not None:
                _keep_newest(found, entry)
        for entry in self.letters.entries():
            _keep_newest(found, entry, wins_ties=True)
        return first_landed, dict(sorted(found.items()))

    def bundle(self) -> tuple[int, int]:
        """Put the plans and entries of older batches into bundles.

        Return the number of objects of the journal before and after, of which a bundle is one.
        Other processes may use the journal meanwhile. If this call is interrupted, nothing is lost,
        and the next call does the rest.
        """
        newest = self.newest()
        loose = sorted([*self._loose("plan"), *self._loose("landed")])
        before = len(loose) + self._bundles.count()
        deleted = 0
        for first, group in groupby(loose, lambda each: self._bundles.first_of(each[0])):
            # An entry of a later batch shows that all batches of the bundle are landed.
            next_bundle = first + self._bundles.span
            if newest < next_bundle:
                break
            deleted += self._move_into_bundle(first, [name for _, _, name in group])
        return before, len(loose) - deleted + self._bundles.count()

    def list_bundles(self) -> None:
        """Look which bundles there are now. Another process may have bundled batches since."""
        self._bundles.list()
        self._newest = max(-1 if self._newest is None else self._newest, self._bundles.last())

    def _move_into_bundle(self, first: int, names: list[str]) -> int:
        """Store objects in the bundle from batch `first` on, and delete them.

        Return the number of deleted objects. An object stays if another process has stored the
        bundle first, without this object.
        """
        objects = {name: self._checked(name) for name in names}
        # An object is `None` if another process has moved it into a bundle since it was listed.
        stored = self._bundles.add(first, {n: o for n, o in objects.items() if o is not None})
        bundled = [name for name in names if name in stored]
        for name in bundled:
            self._objects.delete(name)
        return len(bundled)

    def _checked(self, name: str) -> dict[str, Any] | None:
        """Return the JSON object with a name. Raises `JournalError` if it is damaged."""
        make = Plan.from_json if name.startswith("plan/") else _entry

        def checked(value: dict[str, Any]) -> dict[str, Any]:
            make(value)
            return value

        return self._objects.read(name, checked)

    def _of_batch(
        self,
        batch: int,
        name: str,
        make: Callable[[dict[str, Any]], _T],
        *,
        is_listed: bool = False,
    ) -> _T | None:
        """Return an object of a batch, from its bundle or the store, or `None` if there is none.

        `is_listed` says that the caller has found the object in a listing of the store.
        """
        bundled = self._bundles.object_of(batch, name)
        if bundled is None:
            found = self._objects.read(name, make)
            known = self.newest() if self._newest is None else self._newest
            must_exist = is_listed or batch <= known
            if found is not None or not must_exist:
                return found
            # Another process has bundled the object since the bundles were listed.
            self.list_bundles()
            bundled = self._bundles.object_of(batch, name)
        return None if bundled is None else self._objects.made(name, lambda: bundled, make)

    def _loose(self, folder: str) -> Iterator[tuple[int, int, str]]:
        """Yield the batch, the number of the replay and the name of each object in the store."""
        for name in self._objects.names(folder):
            if _NUMBERS.fullmatch(name) is None:
                raise JournalError(
                    f"{self._objects.key(f'{folder}/{name}')} is not the {_KINDS[folder]} of a"
                    " batch: another program put it there; move it away"
                )
            yield _numbered(f"{folder}/{name}")


def _numbered(name: str) -> tuple[int, int, str]:
    """Return the batch, the number of the replay and the name of an object."""
    match = _NUMBERS.fullmatch(name.rpartition("/")[2])
    if match is None:
        raise JournalError(f"a bundle of the journal has {name!r:.60}, which is not of a batch")
    return int(match[1]), int(match[2] or 0), name


def _keep_newest(
    found: dict[int, BatchEntry], entry: BatchEntry, *, wins_ties: bool = False
) -> None:
    """Put an entry into `found`, unless there is one after more replays.

    A replay of letters counts the replays before it. So if a replay from the stream has the same
    number, its owner had lost the lock, and has stored the entry late: the letters' entry counts.
    """
    known = found.get(entry.batch)
    if known is None or entry.replays > known.replays - wins_ties:
        found[entry.batch] = entry


def _plan_name(batch: int) -> str:
    return f"plan/{batch:09}.json"


def _entry(value: dict[str, Any]) -> BatchEntry:
    return BatchEntry.from_json({name: each for name, each in value.items() if name != "kind"})
