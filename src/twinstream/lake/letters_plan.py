"""The plan of a replay of dead letters: the files that tasks have written, and what they change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import field, frozen

from twinstream.lake.entry import BatchEntry, table_name
from twinstream.lake.plan import now
from twinstream.lake.stored_members import checked_members

__all__ = ["LettersFile", "LettersPlan"]

# The name of a folder or file that a task has made. A path of a journal must lead nowhere else.
_OWN_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*", re.ASCII)

# A value of a partition with the name of its column. Null may be the name alone.
_PARTITION: Final = re.compile(r"[A-Za-z0-9_-]+(=.*)?", re.ASCII | re.DOTALL)


@frozen
class LettersFile:
    """A finished file with rows of one batch for one table: its name in the folder of the plan.

    In a table with partitions, it is there in the folder of its partition.
    """

    table: str
    batch: int
    name: str
    partition: str = ""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> LettersFile:
        """Return the file that a JSON object describes. Raises `ValueError` for another path."""
        found = cls(**checked_members(cls, value))
        table_name(found.table)
        own = _own_name(found.name), _own_partition(found.partition)
        return cls(found.table, found.batch, *own)


@frozen(kw_only=True)
class LettersPlan:
    """What a replay of dead letters changes. Each driver that continues it does the same.

    `files` are in the folder `folder` of staged files. Files for tables have the letters that fit
    the schema now, and are added to the tables. Files for the dead letters have the others, and
    replace the dead letters of the batches. `entries` are the entries of these batches afterwards.
    `newest` was the newest batch. `number` counts the replays of a source.
    """

    number: int
    newest: int
    folder: str
    files: tuple[LettersFile, ...]
    entries: tuple[BatchEntry, ...]
    began: str = field(factory=now)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> LettersPlan:
        """Return the plan that a JSON object contains."""
        files = tuple(LettersFile.from_json(each) for each in value["files"])
        entries = tuple(BatchEntry.from_json(each) for each in value["entries"])
        members = {**value, "files": files, "entries": entries}
        _own_name(value["folder"])
        return cls(**checked_members(cls, members))


def _own_partition(path: str) -> str:
    if path and not all(map(_PARTITION.fullmatch, path.split("/"))):
        raise ValueError(f"{path!r:.60} is not a partition")
    return path


def _own_name(name: str) -> str:
    if not _OWN_NAME.fullmatch(name):
        raise ValueError(f"{name!r:.60} is not the name of a file")
    return name
