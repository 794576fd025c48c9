"""The replays of a source's dead letters: a plan for each, and the entries after it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from attrs import asdict

from twinstream.lake.entry import BatchEntry
from twinstream.lake.errors import JournalError
from twinstream.lake.journal_objects import JournalObjects
from twinstream.lake.letters_plan import LettersPlan

__all__ = ["LettersJournal"]

# The folder of a plan without files.
_NOTHING: Final = "nothing"

_NUMBER: Final = re.compile(r"(\d{9,})\.json", re.ASCII)


class LettersJournal:
    """The replays of the dead letters of one source, numbered from 0, without gaps.

    A replay is planned when its predecessor is done. So only the newest one may be unfinished.
    """

    def __init__(self, objects: JournalObjects) -> None:
        self._objects: Final = objects

    def next_number(self) -> int:
        """Return the number of the next replay."""
        return max(self._numbers("plan"), default=-1) + 1

    def unfinished(self) -> LettersPlan | None:
        """Return the plan of the replay that is not done yet, or `None` if there is none."""
        newest = self.next_number() - 1
        if newest < 0 or self._objects.has(_name("landed", newest)):
            return None
        return self._objects.read(_name("plan", newest), LettersPlan.from_json)

    def planned(self, plan: LettersPlan) -> LettersPlan:
        """Store the plan of the next replay, and return the plan that counts.

        This is the plan of another driver if that one was faster.
        """
        return self._objects.settle(_name("plan", plan.number), asdict(plan), LettersPlan.from_json)

    def closed(self) -> None:
        """Let a process that has slept store no plan, unless one is unfinished already.

        The next number gets a plan without files that is done.
        """
        if self.unfinished() is None:
            number = self.next_number()
            plan = LettersPlan(number=number, newest=0, folder=_NOTHING, files=(), entries=())
            if self.planned(plan) == plan:
                self.dropped(plan)

    def landed(self, plan: LettersPlan) -> bool:
        """Store the entries of a replay whose rows are all in their tables.

        Return false if a process that had slept has recorded meanwhile that the plan is dropped.
        """
        entries = [asdict(each) for each in plan.entries]
        value = {"kind": "letters", "entries": entries}
        stored = self._objects.settle(_name("landed", plan.number), value, _entries)
        return stored == list(plan.entries)

    def dropped(self, plan: LettersPlan) -> None:
        """Record that a replay is done without a change, because its rows do not fit any more."""
        value: dict[str, object] = {"kind": "dropped", "entries": []}
        self._objects.settle(_name("landed", plan.number), value, _entries)

    def entries(self) -> Iterator[BatchEntry]:
        """Yield the entries of batches after each replay, in the order of the replays."""
        for number in sorted(self._numbers("landed")):
            yield from self._objects.read(_name("landed", number), _entries) or ()

    def _numbers(self, kind: str) -> Iterator[int]:
        """Yield the numbers of the replays that have an object of this kind."""
        folder = f"letters/{kind}"
        for name in self._objects.names(folder):
            match = _NUMBER.fullmatch(name)
            if match is None:
                raise JournalError(
                    f"{self._objects.key(f'{folder}/{name}')} is not a replay of dead letters:"
                    " another program put it there; move it away"
                )
            yield int(match[1])


def _name(kind: str, number: int) -> str:
    return f"letters/{kind}/{number:09}.json"


def _entries(value: dict[str, Any]) -> list[BatchEntry]:
    return [BatchEntry.from_json(each) for each in value["entries"]]
