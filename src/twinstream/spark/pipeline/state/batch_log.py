"""The journal of one source: a JSON line when a batch begins, and a line when it is landed.

Spark's checkpoint, and not this journal, determines where the source continues. Verification,
replay, release and reports use the journal. The journal also shows whether the checkpoint was lost
or restored to an earlier state.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from attrs import asdict, evolve, field, frozen

from twinstream.core.hooks import HOOKS, reached
from twinstream.core.wire.response import read_json
from twinstream.disk.safe_files import make_folders, sync
from twinstream.spark.errors import JournalError
from twinstream.spark.landing.split_tables import DEAD_LETTERS
from twinstream.spark.source.offsets import Position
from twinstream.spark.source.stored_members import checked_members
from twinstream.spark.source.stream_mark import Mark

if TYPE_CHECKING:
    from twinstream.spark.landing.landed_seqs import Seqs
    from twinstream.spark.landing.staging import Written

__all__ = ["BatchEntry", "BatchLog", "TableEntry", "of_one_stream"]

_Kind: TypeAlias = Literal["begin", "landed", "replayed", "accepted"]

_TABLE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)

# The number of bytes that `BatchLog` first reads from the end of the file. If they contain no
# landed batch, it reads more.
_TAIL: Final = 64 * 1024


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
    replays of the batch. `created` is the creation time of the stream, which distinguishes it
    from a later stream of the same name. `mark` is the last message of the stream, which shows
    whether the stream was restored to an earlier state. `filter` has the landed subjects,
    separated by commas; it is empty for all subjects, and `None` in journals of older releases.
    """

    batch: int
    start: int
    end: int
    created: str
    query_id: str
    began: str
    seconds: float = 0.0
    messages: int = 0
    dead_letters: int = 0
    first_seq: int = 0
    last_seq: int = 0
    backlog: int = 0
    replays: int = 0
    mark: Mark | None = None
    filter: str | None = None
    tables: Mapping[str, TableEntry] = field(factory=dict[str, TableEntry])

    @property
    def rows(self) -> int:
        """The number of messages that are not dead letters."""
        return self.messages - self.dead_letters

    @property
    def position(self) -> Position:
        """The position in the stream after the batch."""
        return Position(self.end, self.created, mark=self.mark)

    def counted(self, seqs: Seqs, written: Iterable[Written], dead_letters: str) -> BatchEntry:
        """Return a copy of the entry with the numbers of rows and files that the batch wrote."""
        tables = {
            each.table: TableEntry(rows=each.rows, files=len(each.files), bytes=each.bytes)
            for each in written
        }
        dead = tables.get(dead_letters)
        return evolve(
            self,
            messages=seqs.count,
            dead_letters=dead.rows if dead else 0,
            first_seq=seqs.first,
            last_seq=seqs.last,
            tables=tables,
        )

    @property
    def bytes(self) -> int:
        """The total size in bytes of the files that the batch wrote."""
        return sum(each.bytes for each in self.tables.values())

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> BatchEntry:
        """Return the entry that a line of the journal contains."""
        tables = {
            _table_name(name): TableEntry(**checked_members(TableEntry, each))
            for name, each in value.get("tables", {}).items()
        }
        members = checked_members(cls, Mark.read_in(value))
        members["tables"] = tables
        return cls(**members)


def _table_name(name: str) -> str:
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


class BatchLog:
    """A journal file, one JSON line per entry.

    A last line that a crash truncated is ignored, and the next entry overwrites it.
    """

    def __init__(self, file: Path) -> None:
        self._file: Final = file

    def begin(self, entry: BatchEntry) -> None:
        """Append the bounds of a batch, before any of its files is written."""
        self._append("begin", entry)

    def landed(self, entry: BatchEntry) -> None:
        """Append a batch whose rows are all in their tables."""
        if HOOKS:
            reached("batch log: before landed", entry)
        self._append("landed", entry)

    def replayed(self, entry: BatchEntry) -> None:
        """Append a batch that a replay landed again."""
        self._append("replayed", entry)

    def accepted(self, entry: BatchEntry) -> None:
        """Append the last batch again, with the creation time of a stream accepted as a copy."""
        self._append("accepted", entry)

    def entries(self) -> dict[int, BatchEntry]:
        """Return the last entry of each landed batch by its number, ascending."""
        found = {entry.batch: entry for kind, entry in self._lines() if kind != "begin"}
        return dict(sorted(found.items()))

    def last(self) -> BatchEntry | None:
        """Return the landed batch with the highest number, or `None` if none is landed."""
        best: BatchEntry | None = None
        for kind, entry in self._tail():
            if kind in {"landed", "accepted"} and (best is None or entry.batch >= best.batch):
                best = entry
        return best

    def known(self, batch: int) -> BatchEntry | None:
        """Return the last entry of a batch, which may be unfinished, or `None` if none is found.

        Only the end of the journal is searched, so the batch must be one of the newest. Entries of
        replays are ignored.
        """
        found: BatchEntry | None = None
        for kind, entry in self._tail():
            if entry.batch == batch and kind != "replayed":
                found = entry
        return found

    def finished(self, batch: int) -> BatchEntry | None:
        """Return the last entry of a batch if all its rows are in their tables, else `None`.

        Only the end of the journal is searched, so the batch must be one of the newest.
        """
        found: BatchEntry | None = None
        for kind, entry in self._tail():
            if entry.batch == batch:
                found = None if kind == "begin" else entry
        return found

    def is_interrupted(self) -> bool:
        """Return whether the last entry is of a batch that was begun and not landed."""
        kinds = [kind for kind, _ in self._tail()]
        return kinds[-1:] == ["begin"]

    def _lines(self, data: bytes | None = None) -> Iterator[tuple[_Kind, BatchEntry]]:
        if data is None:
            data = self._file.read_bytes() if self._file.exists() else b""
        whole, _, _ = data.rpartition(b"\n")
        for line in whole.splitlines():
            try:
                value: Any = read_json(line)
                yield value.pop("kind"), BatchEntry.from_json(value)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise JournalError(
                    f"the journal {self._file} has a line that cannot be read ({error}); restore"
                    " it, or land into a new folder"
                ) from error

    def _tail(self) -> Iterator[tuple[_Kind, BatchEntry]]:
        """Return the last entries, with at least one landed batch if the journal has any."""
        size, data = _TAIL, b""
        total = self._file.stat().st_size if self._file.exists() else 0
        while True:
            data = self._end(min(size, total))
            if size >= total:
                break
            data = data.partition(b"\n")[2]  # the data usually begins inside a line
            if b'"kind": "landed"' in data:
                break
            size *= 8
        return self._lines(data)

    def _end(self, size: int) -> bytes:
        if not size:
            return b""
        with self._file.open("rb") as file:
            file.seek(-size, os.SEEK_END)
            return file.read()

    def _append(self, kind: _Kind, entry: BatchEntry) -> None:
        make_folders(self._file.parent)
        is_new = not self._file.exists()
        line = json.dumps({"kind": kind, **asdict(entry)}).encode() + b"\n"
        with self._file.open("a+b") as file:
            _cut_short(file.fileno())
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            sync([self._file.parent])


def _cut_short(handle: int) -> None:
    """Remove an incomplete last line, which a crash has left, from the open file."""
    size = os.fstat(handle).st_size
    keep = size
    while keep and os.pread(handle, 1, keep - 1) != b"\n":
        keep -= 1
    if keep != size:
        os.ftruncate(handle, keep)
