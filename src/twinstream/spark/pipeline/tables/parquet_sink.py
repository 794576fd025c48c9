"""Tables of Parquet files. A batch adds a folder to a table, and is replaced atomically."""

from __future__ import annotations

import os
import uuid
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.dataset as ds

from twinstream.disk.safe_files import make_folders, remove_tree, sync
from twinstream.lake.letters_plan import LettersPlan
from twinstream.lake.task_report import TaskFile
from twinstream.spark.landing.batch_folders import BATCH_FOLDER, batch_folders, reaches
from twinstream.spark.landing.footers import Footer
from twinstream.spark.landing.partitions import with_partitions
from twinstream.spark.landing.split_tables import BATCH_COLUMN, TableSplit
from twinstream.spark.landing.staging import files_in
from twinstream.spark.landing.table_fit import check_fit, file_schemas
from twinstream.spark.landing.tables import Fitting, ParquetBatch, folders_in
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.tables.column_change import ColumnChange
from twinstream.spark.pipeline.tables.parquet_files import Part, scanned
from twinstream.spark.pipeline.tables.rebuild import Rebuilt
from twinstream.spark.pipeline.tables.sink import Writer

__all__ = ["ParquetSink"]


# The last sequence of a stream.
_LAST: Final = 2**64 - 1


class ParquetSink:
    """The Parquet tables below a pipeline's folder."""

    def __init__(self, folders: Folders) -> None:
        self.folders: Final = folders
        self._fits: Final[dict[str, Fitting]] = {}
        self._bounds: Final[dict[str, dict[str, tuple[int, int]]]] = {}

    @property
    def lake(self) -> None:
        """`None`, because the tables are on a file system."""

    def batch(self, number: int, writer: Writer) -> ParquetBatch:
        """Return a writer for a batch. It can also finish an interrupted batch."""
        folders = self.folders
        return ParquetBatch(folders.root, folders.staging, number, writer.name, self._fits)

    def existing(self, prefix: str) -> list[str]:
        """Return the tables of the lake whose names begin with a prefix."""
        return folders_in(self.folders.root, prefix)

    def output(self, name: str, split: TableSplit, new: Sequence[str] = ()) -> None:
        """Return `None`, because the tables are on a file system."""

    def home(self, table: str) -> Path:
        """Return the folder of a table."""
        return self.folders.root / table

    def reaches(self, table: str, number: int) -> bool:
        """Return whether the table has a batch with this number or a higher number."""
        return reaches(self.folders.root / table, number)

    def holds(self, table: str, number: int) -> bool:
        """Return whether the table has a folder with the number of this batch."""
        return (self.folders.root / table / f"{BATCH_FOLDER}{number}").exists()

    def scan(
        self, table: str, columns: Sequence[str], seq: str, low: int, high: int, since: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield columns of the rows with a sequence in `[low, high)`.

        Only batches numbered `since` or higher are read.
        """
        folders = batch_folders(self.folders.root / table).items()
        listed = [str(f) for last, path in folders if last >= since for f in files_in(path)]
        # Footers are read once. No other file gets the name of one that was replaced.
        known = self._bounds.get(table, {})
        self._bounds[table] = {f: known[f] if f in known else _bounds(f, seq) for f in listed}
        files = [
            f for f, (first, last) in self._bounds[table].items() if first < high and last >= low
        ]
        if files:
            yield from scanned(files, columns, seq, low, high, since)

    def files(self, table: str, batches: Collection[int]) -> dict[int, list[Path]]:
        """Return the files that may have rows of batches, by the number of the batch."""
        existing = batch_folders(self.folders.root / table)
        homes = {number: _home(list(existing), number) for number in batches}
        return {
            number: list(files_in(existing[home])) if home in existing else []
            for number, home in homes.items()
        }

    def check(self, table: str, files: Sequence[Path]) -> None:
        """Raise `SchemaError` if the columns of the files do not fit the table."""
        check_fit(self.folders.root / table, files)

    def replace(self, table: str, batches: Mapping[int, Sequence[TaskFile]]) -> None:
        """Replace all rows of batches with the rows of files, atomically.

        Without files, the rows of a batch are removed. Raises `SchemaError`, before any change, if
        the columns of the files do not fit the table.
        """
        self.check(table, [file.path for files in batches.values() for file in files])
        existing = batch_folders(self.folders.root / table)
        numbers = list(existing)
        homes: dict[int, list[int]] = {}
        for number in sorted(batches):
            homes.setdefault(_home(numbers, number), []).append(number)
        with Rebuilt(self.folders, table) as new:
            new.keep(path for last, path in existing.items() if last not in homes)
            for home, inside in homes.items():
                old = files_in(existing[home]) if home in existing else ()
                others = ~ds.field(BATCH_COLUMN).isin(inside)
                files = [file.path for number in inside for file in batches[number]]
                new.put(home, [Part(old, others), Part(files)])

    def schemas(self, table: str) -> Iterator[pa.Schema]:
        """Yield the columns of a table for each of its files, the newest file first."""
        return map(with_partitions, file_schemas(self.folders.root / table))

    def change(self, table: str, change: ColumnChange, source: SourceConfig) -> None:
        """Widen and rename columns of a table, in all rows, atomically.

        Raises `SchemaError`, before any change, if a row has two values of one column.
        """
        with Rebuilt(self.folders, table) as new:
            new.change(batch_folders(self.folders.root / table).values(), change)

    def add(
        self,
        table: str,
        files: Mapping[int, Sequence[TaskFile]],
        plan: LettersPlan,
        writer: Writer,
    ) -> None:
        """Link files into the folders of their batches, unless the plan has done it already.

        The names of the links are always the same. So of several drivers, one links a file.
        """
        root = self.folders.root / table
        # The folder of a later batch, which may be unfinished, is left alone.
        numbers = [number for number in batch_folders(root) if number <= plan.newest]
        homes: set[Path] = set()
        for number in sorted(files):
            home = root / f"{BATCH_FOLDER}{_home(numbers, number)}"
            links = _links(plan, number, files[number])
            if not home.exists():
                self._new_folder(home, links)
            homes |= _link_all(home, links)
        sync([*homes, root])

    def renew(self, table: str) -> None:
        """Do nothing: no process loses the lock of a local folder while it runs."""

    def has_added(self, table: str, plan: LettersPlan, writer: Writer) -> bool:
        """Return whether `add` has added rows of a plan to a table."""
        folders = batch_folders(self.folders.root / table).values()
        links = (file for path in folders for file in files_in(path))
        return any(file.name.startswith(_link_start(plan)) for file in links)

    def _new_folder(self, home: Path, links: Mapping[Path, Path]) -> None:
        """Let a folder appear that has links to files, unless another driver is faster."""
        ready = self.folders.staging / f"_ready.{uuid.uuid4().hex}"
        ready.mkdir()
        sync(_link_all(ready, links))
        make_folders(home.parent)
        try:
            ready.rename(home)
        except OSError:
            if not home.exists():
                raise
            remove_tree(ready)


def _bounds(file: str, seq: str) -> tuple[int, int]:
    """Return the bounds of the sequences in a file. They include all if the file is damaged."""
    try:
        found = Footer.of(Path(file)).bounds(seq)
    except (OSError, pa.ArrowInvalid):
        return 0, _LAST  # a reader names the file
    return (_LAST, 0) if found is None else (int(found[0]), int(found[1]))


def _link_start(plan: LettersPlan) -> str:
    """Return how the names of the files begin that a plan adds to a table."""
    return f"letters-{plan.number:09}-"


def _links(plan: LettersPlan, number: int, files: Sequence[TaskFile]) -> dict[Path, Path]:
    """Return the files of a batch by the paths of their links in its folder, always the same."""
    named = enumerate(sorted(files, key=lambda file: (file.partition, file.path.name)))
    return {
        Path(file.partition) / f"{_link_start(plan)}{number:09}-{at:05}.parquet": file.path
        for at, file in named
    }


def _link_all(home: Path, links: Mapping[Path, Path]) -> set[Path]:
    """Link files below a folder, unless it has the links. Return the folders of the links."""
    homes = {home}
    for path, file in links.items():
        link = home / path
        make_folders(link.parent)
        with suppress(FileExistsError):
            os.link(file, link)
        homes.add(link.parent)
    return homes


def _home(numbers: Sequence[int], number: int) -> int:
    """Return the number of the folder with a batch: the first of ascending numbers from it on."""
    at = bisect_left(numbers, number)
    return numbers[at] if at < len(numbers) else number
