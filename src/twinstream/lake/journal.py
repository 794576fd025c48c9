"""The journal of one source: its origin, and a plan and an entry for each batch.

::

    <source>/origin/000.json             where the source began; the last one counts
    <source>/plan/000000007.json         the plan of batch 7
    <source>/landed/000000007.json       its entry: all its rows are in the tables
    <source>/landed/000000007.001.json   its entry after a replay
    <source>/letters/…                   the replays of dead letters (`LettersJournal`)

Batches are numbered from 0, without gaps. A batch is planned when its predecessor has an entry. So
only the newest plan may lack an entry, and the next driver finishes it. Plans are kept, so that no
late driver can plan a landed batch again with other bounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

from attrs import asdict

from twinstream.core.hooks import HOOKS, reached
from twinstream.lake.entry import BatchEntry
from twinstream.lake.errors import JournalError
from twinstream.lake.journal_objects import JournalObjects
from twinstream.lake.letters_journal import LettersJournal
from twinstream.lake.origin import Origin
from twinstream.lake.plan import Plan
from twinstream.lake.store import Store

__all__ = ["Journal", "Kind"]

Kind: TypeAlias = Literal["landed", "accepted"]
"""Why a batch has an entry: its messages were landed, or it is the empty batch that records that
the user accepted another stream or other subjects."""

_ENTRY: Final = re.compile(r"(\d{9,})(?:\.(\d{3,}))?\.json", re.ASCII)


class Journal:
    """The journal of the source `source` in a store."""

    def __init__(self, store: Store, source: str) -> None:
        self._source: Final = source
        self._objects: Final = JournalObjects(store, source)
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
        while True:
            number = self.newest() + 1
            plan = self.plan(number)
            if plan is None or self.plan(number + 1) is None:
                return plan
            if self.newest() < number:  # otherwise another driver has just landed the batch
                raise JournalError(
                    f"the journal of source {self._source} has plans of batches {number} and"
                    f" {number + 1}, and no entry of batch {number}: it was restored to an earlier"
                    " state; restore the newer journal, or land into a new folder"
                )

    def plan(self, batch: int) -> Plan | None:
        """Return the plan of a batch, or `None` if it is not planned."""
        return self._objects.read(f"plan/{batch:09}.json", Plan.from_json)

    def planned(self, plan: Plan) -> Plan:
        """Store the plan of the next batch, and return the plan that counts.

        This is the plan of another driver if that one was faster.
        """
        return self._objects.settle(f"plan/{plan.batch:09}.json", asdict(plan), Plan.from_json)

    def landed(self, entry: BatchEntry, kind: Kind = "landed") -> BatchEntry:
        """Store the entry of a batch whose rows are all in their tables; return what counts.

        This is the entry of another driver if that one was faster.
        """
        if HOOKS:
            reached("journal: before landed", entry)
        value = {"kind": kind, **asdict(entry)}
        return self._objects.settle(f"landed/{entry.batch:09}.json", value, _entry)

    def replayed(self, entry: BatchEntry) -> None:
        """Store the entry of a batch that a replay has landed again.

        No other process may replay the batch at the same time.
        """
        key = f"landed/{entry.batch:09}.{entry.replays:03}.json"
        self._objects.settle(key, {"kind": "replayed", **asdict(entry)}, _entry)

    def newest(self) -> int:
        """Return the highest number of a batch with an entry, or -1 if there is none.

        The first call lists the entries. Later calls only look for further entries.
        """
        if self._newest is None:
            self._newest = max((batch for batch, _, _ in self._entries()), default=-1)
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
        return self._objects.read(f"landed/{batch:09}.json", _entry)

    def entries(self) -> dict[int, BatchEntry]:
        """Return the entry of each landed batch after its last replay, by its number, ascending."""
        names = {batch: name for batch, _, name in sorted(self._entries())}
        read = {
            batch: self._objects.read(f"landed/{name}", _entry) for batch, name in names.items()
        }
        found = {batch: entry for batch, entry in read.items() if entry is not None}
        for entry in self.letters.entries():
            if entry.batch in found and entry.replays > found[entry.batch].replays:
                found[entry.batch] = entry
        return found

    def _entries(self) -> Iterator[tuple[int, int, str]]:
        """Yield the number of the batch, the number of the replay and the name of each entry."""
        for name in self._objects.names("landed"):
            match = _ENTRY.fullmatch(name)
            if match is None:
                raise JournalError(
                    f"{self._objects.key(f'landed/{name}')} is not the entry of a batch: another"
                    " program put it there; move it away"
                )
            yield int(match[1]), int(match[2] or 0), name


def _entry(value: dict[str, Any]) -> BatchEntry:
    return BatchEntry.from_json({name: each for name, each in value.items() if name != "kind"})
