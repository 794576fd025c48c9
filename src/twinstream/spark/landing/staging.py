"""Files on their way into a table: written by Spark's tasks, durable before they count."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import frozen

from js_sync.backup.disk import make_folders, sync

__all__ = ["STAGING", "Seqs", "Staging", "Written", "files_in", "seqs_in"]

STAGING: Final = "_staging"
"""Folder of what is on its way; readers of Parquet pass over names that begin so."""

_PARQUET: Final = "*.parquet"
_TRIES: Final = 100


@frozen
class Seqs:
    """What a batch wrote, read back from its files."""

    count: int = 0
    distinct: int = 0
    first: int = 0
    last: int = 0


@frozen
class Written:
    """The files that a batch has in one table."""

    table: str
    files: tuple[Path, ...]

    @property
    def rows(self) -> int:
        """Rows, from the footers of the files."""
        return sum(pq.read_metadata(file).num_rows for file in self.files)

    @property
    def bytes(self) -> int:
        """Bytes of the files."""
        return sum(file.stat().st_size for file in self.files)


class Staging:
    """A folder of one attempt, for files before they are put into tables.

    As a writer makes one attempt at a time, folders that its killed attempts left are removed
    first. A task that still writes for one of those finds its folder gone.
    """

    def __init__(self, parent: Path, writer: str) -> None:
        for left in parent.glob(f"{escape(writer)}.*"):  # names of streams may hold brackets
            shutil.rmtree(left)
        self.folder: Final = parent / f"{writer}.{uuid.uuid4().hex}"
        """Where the files of the attempt are written."""
        _make(self.folder)

    def put(self, files: Sequence[Path], target: Path) -> tuple[Path, ...]:
        """Make the files those of a new folder, which is there completely or not at all.

        They stay on the disk from here on, so that a stream may forget their messages.
        """
        ready = self.folder / uuid.uuid4().hex
        ready.mkdir()
        for number, file in enumerate(files):
            file.rename(ready / f"part-{number:05}-{file.name}")
        sync([ready])
        make_folders(target.parent)
        ready.rename(target)
        sync([target.parent])
        return files_in(target)

    def close(self) -> None:
        """Remove what was written and not put anywhere."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):  # another writer has something in it, or has removed it
            self.folder.parent.rmdir()


def _make(folder: Path) -> None:
    for _ in range(_TRIES):
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            return folder.mkdir()
        except FileNotFoundError:
            continue  # another writer has just removed the parent, which was empty
    raise FileNotFoundError(f"{folder.parent} is removed again and again")


def files_in(folder: Path) -> tuple[Path, ...]:
    """Return the Parquet files of a folder, in the order of their names."""
    return tuple(sorted(folder.glob(_PARQUET)))


def seqs_in(written: Iterable[Written], column: str) -> Seqs:
    """Read the sequences back from the files of a batch, and count them."""
    import pyarrow.compute as pc

    chunks: list[pa.Array] = []
    for each in written:
        for file in each.files:
            chunks += pq.ParquetFile(file).read(columns=[column]).column(column).chunks
    if not any(map(len, chunks)):
        return Seqs()
    seqs = pa.chunked_array(chunks)
    ends = pc.min_max(seqs).as_py()
    # With uint64=decimal sequences are decimals.
    return Seqs(len(seqs), pc.count_distinct(seqs).as_py(), int(ends["min"]), int(ends["max"]))
