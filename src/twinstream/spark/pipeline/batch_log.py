"""The journal of one source: a line of JSON when a batch begins, and one when it is landed.

Spark's checkpoint, not this journal, decides where the source continues. Verification, replay,
release and reports use the journal. It also reveals that a checkpoint was restored to an earlier
state.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from attrs import asdict, evolve, field, frozen

from js_sync.backup.disk import make_folders, sync
from twinstream.core.base.hooks import HOOKS, reached
from twinstream.core.wire.response import read_json
from twinstream.spark.errors import JournalError
from twinstream.spark.source.offsets import Position
from twinstream.spark.source.stream_mark import Mark

if TYPE_CHECKING:
    from twinstream.spark.landing.landed_seqs import Seqs
    from twinstream.spark.landing.staging import Written

__all__ = ["BatchEntry", "BatchLog", "TableEntry", "of_one_stream"]

_Kind: TypeAlias = Literal["begin", "landed", "replayed", "accepted"]

#: The end of the file is read in pieces of this size until a whole entry is found.
_TAIL: Final = 64 * 1024


@frozen(kw_only=True)
class TableEntry:
    """The rows and files that a batch wrote to one table."""

    rows: int
    files: int
    bytes: int


@frozen(kw_only=True)
class BatchEntry:
    """One landed batch: sequences ``start`` up to, not including, ``end``.

    ``messages`` is the number of rows, including dead letters, one per sequence. ``backlog`` is the
    number of sequences in the stream after the batch when it was landed. ``began`` is RFC 3339,
    ``seconds`` the duration. ``replays`` counts how often it was landed again. ``created`` and
    ``mark`` distinguish the stream from a later one and from an earlier state of it. ``filter`` has
    the landed subjects, separated by commas, empty for all; journals of older releases lack it.
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
        """Number of messages that are not dead letters."""
        return self.messages - self.dead_letters

    @property
    def position(self) -> Position:
        """The position of the stream after the batch."""
        return Position(self.end, self.created, mark=self.mark)

    def counted(self, seqs: Seqs, written: Iterable[Written], dead_letters: str) -> BatchEntry:
        """Return the entry with the counts of what the batch wrote."""
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
        """Bytes of all files that the batch wrote."""
        return sum(each.bytes for each in self.tables.values())

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> BatchEntry:
        """Read one entry."""
        tables = {name: TableEntry(**each) for name, each in value.get("tables", {}).items()}
        members = Mark.read_in(value)
        members["tables"] = tables
        return cls(**members)


def of_one_stream(entries: Mapping[int, BatchEntry]) -> dict[int, BatchEntry]:
    """Return the batches that were landed from the same stream as the last one, ascending.

    A copy of a stream has another creation time, and its first batch begins where the previous one
    ended; a re-created stream begins at the start.
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
    """Reads and appends lines; a line that a crash truncated is skipped and then overwritten."""

    def __init__(self, file: Path) -> None:
        self._file: Final = file

    def begin(self, entry: BatchEntry) -> None:
        """Record the bounds of a batch before any of its files is written."""
        self._append("begin", entry)

    def landed(self, entry: BatchEntry) -> None:
        """Record a batch whose rows are all in their tables."""
        if HOOKS:
            reached("batch log: before landed", entry)
        self._append("landed", entry)

    def replayed(self, entry: BatchEntry) -> None:
        """Record a batch that was landed again."""
        self._append("replayed", entry)

    def accepted(self, entry: BatchEntry) -> None:
        """Record that the last batch counts as one of a copy of the stream, created later."""
        self._append("accepted", entry)

    def entries(self) -> dict[int, BatchEntry]:
        """Return the landed batches by number, ascending; the last entry of each counts."""
        found = {entry.batch: entry for kind, entry in self._lines() if kind != "begin"}
        return dict(sorted(found.items()))

    def last(self) -> BatchEntry | None:
        """Return the landed batch with the highest number."""
        best: BatchEntry | None = None
        for kind, entry in self._tail():
            if kind in {"landed", "accepted"} and (best is None or entry.batch >= best.batch):
                best = entry
        return best

    def known(self, batch: int) -> BatchEntry | None:
        """Return the last entry of a batch, begun or landed."""
        found: BatchEntry | None = None
        for kind, entry in self._tail():
            if entry.batch == batch and kind != "replayed":
                found = entry
        return found

    def finished(self, batch: int) -> BatchEntry | None:
        """Return the entry of a batch if its rows are all in their tables, or ``None``."""
        found: BatchEntry | None = None
        for kind, entry in self._tail():
            if entry.batch == batch:
                found = None if kind == "begin" else entry
        return found

    def is_interrupted(self) -> bool:
        """Return whether the last batch was begun and not landed."""
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
        """Yield the last entries, including at least one landed entry if there is any."""
        size, data = _TAIL, b""
        total = self._file.stat().st_size if self._file.exists() else 0
        while True:
            data = self._end(min(size, total))
            if size >= total:
                break
            data = data.partition(b"\n")[2]  # the first line of a piece is usually incomplete
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
    """Remove an incomplete last line, which a crash left."""
    size = os.fstat(handle).st_size
    keep = size
    while keep and os.pread(handle, 1, keep - 1) != b"\n":
        keep -= 1
    if keep != size:
        os.ftruncate(handle, keep)
