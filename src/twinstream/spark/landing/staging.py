"""Staging: the folder to which Spark's tasks write files before the files move to tables."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Container, Sequence
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from attrs import frozen

from twinstream.core.hooks import HOOKS, reached
from twinstream.disk.safe_files import make_folders, remove_tree, sync
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.task_report import Bounds, TaskFile
from twinstream.spark.landing.footers import Footer

__all__ = ["STAGING", "Staging", "Written", "files_in", "remove_attempts", "remove_staged"]

STAGING: Final = "_staging"
"""Name of the folder of staged files. Parquet readers skip names that begin with an underscore."""

_PARQUET: Final = "*.parquet"
_TRIES: Final = 100


@frozen
class Written:
    """The files of a batch in one table.

    `is_earlier` is true if an earlier attempt to land the batch added the files. `known` describes
    the files if they were reported or are in the log of the table. Otherwise their footers are
    read. `lake` is the lake of the table if it is on an object store.
    """

    table: str
    files: tuple[Path, ...]
    is_earlier: bool = False
    known: tuple[TaskFile, ...] = ()
    lake: ObjectFolder | None = None

    @classmethod
    def of(
        cls,
        table: str,
        known: Sequence[TaskFile],
        lake: ObjectFolder | None = None,
        *,
        is_earlier: bool = False,
    ) -> Written:
        """Return files that need not be read."""
        paths = tuple(each.path for each in known)
        return cls(table, paths, is_earlier, tuple(known), lake)

    @property
    def rows(self) -> int:
        """The number of rows."""
        if self.known:
            return sum(each.rows for each in self.known)
        return sum(pq.read_metadata(file).num_rows for file in self.files)

    @property
    def bytes(self) -> int:
        """The size of the files in bytes."""
        if self.known:
            return sum(each.bytes for each in self.known)
        return sum(file.stat().st_size for file in self.files)

    def bounds(self, column: str) -> list[Bounds]:
        """Return the bounds of the sequences in each file that has some, from the column."""
        if self.known:
            return [(each.first, each.last) for each in self.known]
        found = (Footer.of(file).bounds(column) for file in self.files)
        return [each for each in found if each is not None]


class Staging:
    """The folder of one attempt to land a batch, for files that are not in their tables yet."""

    def __init__(self, parent: Path, writer: str) -> None:
        self.folder: Final = parent / f"{writer}.{uuid.uuid4().hex}"
        """The folder for the files of the attempt."""
        _make(self.folder)

    def put(
        self, files: Sequence[Path], target: Path, *, is_flat: bool = False
    ) -> tuple[Path, ...]:
        """Move the files to the new folder `target`, and return their new paths.

        Files in a folder of their partition get such a folder there, too, unless `is_flat`.

        The folder appears atomically and is synced to disk. The contents of the files must be
        synced before this call. Otherwise, a power failure could lose messages that the stream has
        removed after this call.
        """
        if HOOKS:
            reached("staging: before put", target)
        ready = self.folder / uuid.uuid4().hex
        ready.mkdir()
        homes = {ready}
        for number, file in enumerate(files):
            home = ready if is_flat else ready / file.parent.relative_to(self.folder)
            home.mkdir(parents=True, exist_ok=True)
            file.rename(home / f"part-{number:05}-{file.name}")
            homes.update(each for each in (home, *home.parents) if each.is_relative_to(ready))
        sync(homes)
        make_folders(target.parent)
        ready.rename(target)
        sync([target.parent])
        return files_in(target)

    def close(self) -> None:
        """Remove the folder, with the files that were not moved to a table."""
        remove_staged(self.folder)


def remove_staged(folder: Path) -> None:
    """Remove the folder of an attempt, and the folder of all attempts if it was the last one."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # another writer uses the parent folder, or has removed it
        folder.parent.rmdir()


def remove_attempts(parent: Path, writer: str, keep: Container[str] = ()) -> None:
    """Remove the folders of attempts of a writer, which were killed, except those named in `keep`.

    The writer must make no attempt at the same time. If a task of a killed attempt still runs, it
    fails, because its folder no longer exists.
    """
    for left in parent.glob(f"{escape(writer)}.*"):  # stream names may contain brackets
        if left.name not in keep:
            remove_tree(left)


def _make(folder: Path) -> None:
    for _ in range(_TRIES):
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            return folder.mkdir()
        except (FileExistsError, FileNotFoundError):
            # Another writer has just removed the empty parent, perhaps while `mkdir` looked whether
            # what exists is a folder.
            if folder.parent.is_file():
                raise
    raise FileNotFoundError(f"{folder.parent} was removed by other processes repeatedly")


def files_in(folder: Path) -> tuple[Path, ...]:
    """Return the Parquet files below a folder, in the order of their paths."""
    return tuple(sorted(folder.rglob(_PARQUET)))
