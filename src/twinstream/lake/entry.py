"""The entry of a batch in the journal: its bounds, and the rows that it has in each table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import field, frozen

from twinstream.lake.plan import Plan, now
from twinstream.lake.stored_members import checked_members
from twinstream.lake.stream_mark import Mark

__all__ = ["DEAD_LETTERS", "BatchEntry", "TableEntry", "of_one_stream", "table_name"]

DEAD_LETTERS: Final = "dead_letters"
"""The table of messages that do not match the schema, with the reason and the payload."""

_TABLE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)


@frozen(kw_only=True)
class TableEntry:
    """The numbers of rows, files and bytes that a batch wrote to one table."""

    rows: int
    files: int
    bytes: int


@frozen(kw_only=True)
class BatchEntry:
    """One batch: the sequences from `start` up to, not including, `end`.

    `messages` is the number of rows, including dead letters, with one row per message.
    `backlog` is the number of sequences that the stream had after `end` when the batch was
    landed. `began` is an RFC 3339 time, and `seconds` is the duration. `replays` counts the
    replays of the batch. `created`, `mark` and `filter` are those of the plan.
    """

    batch: int
    start: int
    end: int
    created: str
    began: str = field(factory=now)
    seconds: float = 0.0
    messages: int = 0
    dead_letters: int = 0
    first_seq: int = 0
    last_seq: int = 0
    backlog: int = 0
    replays: int = 0
    mark: Mark | None = None
    filter: str = ""
    tables: Mapping[str, TableEntry] = field(factory=dict[str, TableEntry])

    @property
    def rows(self) -> int:
        """The number of messages that are not dead letters."""
        return self.messages - self.dead_letters

    @property
    def bytes(self) -> int:
        """The total size in bytes of the files that the batch wrote."""
        return sum(each.bytes for each in self.tables.values())

    @classmethod
    def of_plan(cls, plan: Plan) -> BatchEntry:
        """Return the entry of a batch that has no rows."""
        return cls(
            batch=plan.batch,
            start=plan.start,
            end=plan.end,
            created=plan.created,
            began=plan.began,
            mark=plan.mark,
            filter=plan.filter,
        )

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> BatchEntry:
        """Return the entry that a JSON object contains."""
        tables = {
            table_name(name): TableEntry(**checked_members(TableEntry, each))
            for name, each in value.get("tables", {}).items()
        }
        members = checked_members(cls, Mark.read_in(value))
        members["tables"] = tables
        return cls(**members)


def table_name(name: str) -> str:
    """Return the name of a table in a journal. Raises `ValueError` for any other path.

    Compaction replaces the folder of this name, and vacuum removes its files.
    """
    *parents, own = name.split("/")
    is_own = not parents or (parents == [DEAD_LETTERS] and own.startswith("source="))
    if not is_own or not _TABLE.fullmatch(own.removeprefix("source=")):
        raise ValueError(f"{name!r:.60} is not the name of a table")
    return name


def of_one_stream(entries: Mapping[int, BatchEntry]) -> dict[int, BatchEntry]:
    """Return the batches that were landed from the stream of the last batch, ascending.

    If the creation time differs between two consecutive batches and the later batch begins where
    the earlier batch ends, one stream is a copy of the other. Copies count as the same stream.
    Otherwise the stream was re-created, and the earlier batches are omitted.
    """
    found: dict[int, BatchEntry] = {}
    after: BatchEntry | None = None
    for number in sorted(entries, reverse=True):
        entry = entries[number]
        if after and entry.created != after.created and entry.end != after.start:
            break
        found[number] = after = entry
    return dict(sorted(found.items()))
