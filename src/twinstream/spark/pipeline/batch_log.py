"""The journal of one source: a line of JSON when a batch begins, and one when it is landed.

Spark's checkpoint, not this journal, decides where to go on. Verification, replay, release and
reports work on the journal, and it shows when a checkpoint was put back to an earlier state.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from attrs import asdict, evolve, field, frozen

from twinstream.core.wire.response import read_json
from twinstream.spark.errors import JournalError
from twinstream.spark.source.stream_mark import Mark
from twinstream.spark.source.offsets import Position
from js_sync.backup.disk import make_folders, sync

if TYPE_CHECKING:
    from twinstream.spark.landing.staging import Seqs, Written

__all__ = ["BatchEntry", "BatchLog", "TableEntry", "of_one_stream"]

_Kind: TypeAlias = Literal["begin", "landed", "replayed", "accepted"]

#: The end of the file is read in pieces of this size until a whole entry is found.
_TAIL: Final = 64 * 1024


@frozen(kw_only=True)
class TableEntry:
    """What a batch wrote into one table."""

    rows: int
    files: int
    bytes: int


@frozen(kw_only=True)
class BatchEntry:
    """One landed batch: sequences ``start`` up to, not including, ``end``.

    ``messages`` are all rows, dead letters included, each of another sequence. ``backlog`` counts
    the sequences that the stream held behind the batch when it was landed. ``began`` is RFC 3339,
    ``seconds`` how long it took. ``replays`` counts how often it was landed again. ``created`` and
    ``mark`` tell the stream from a later one and from an earlier state of it.
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
    tables: Mapping[str, TableEntry] = field(factory=dict[str, TableEntry])

    @property
    def rows(self) -> int:
        """Messages that are in a table of their own."""
        return self.messages - self.dead_letters

    @property
    def position(self) -> Position:
        """Where the stream stands behind the batch."""
        return Position(self.end, self.created, mark=self.mark)

    def counted(self, seqs: Seqs, written: Iterable[Written], dead_letters: str) -> BatchEntry:
        """Return the entry of the batch with what it wrote; one table is that of dead letters."""
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

    A copy of a stream has another time of creation, and its first batch begins where the one before
    ended; a stream that was made again begins anew.
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
    """Reads and appends; a line that a crash cut short is passed over and then overwritten."""

    def __init__(self, file: Path) -> None:
        self._file: Final = file

    def begin(self, entry: BatchEntry) -> None:
        """Note the bounds of a batch before anything of it is written."""
        self._append("begin", entry)

    def landed(self, entry: BatchEntry) -> None:
        """Note a batch whose rows are all in their tables."""
        self._append("landed", entry)

    def replayed(self, entry: BatchEntry) -> None:
        """Note a batch that was landed again."""
        self._append("replayed", entry)

    def accepted(self, entry: BatchEntry) -> None:
        """Note that the last batch counts as one of a stream that was made later: a copy."""
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
        """Return what was last noted of a batch, begun or landed."""
        found: BatchEntry | None = None
        for kind, entry in self._tail():
            if entry.batch == batch and kind != "replayed":
                found = entry
        return found

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
                    f"the journal {self._file} holds a line that cannot be read ({error}); restore"
                    " it, or land into a new folder"
                ) from error

    def _tail(self) -> Iterator[tuple[_Kind, BatchEntry]]:
        """Yield the last entries, at least one that is landed if there is any."""
        size, data = _TAIL, b""
        total = self._file.stat().st_size if self._file.exists() else 0
        while True:
            data = self._end(min(size, total))
            if size >= total:
                break
            data = data.partition(b"\n")[2]  # the first line of a piece is seldom whole
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
    """Remove a last line without its end: a crash wrote half of it."""
    size = os.fstat(handle).st_size
    keep = size
    while keep and os.pread(handle, 1, keep - 1) != b"\n":
        keep -= 1
    if keep != size:
        os.ftruncate(handle, keep)
