"""Where Delta tables are, and how the files of a batch get there: the interface, and local folders.

Delta's own package reads and writes the log of a table in both places.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Protocol

from attrs import evolve
from deltalake import DeltaTable, Schema
from deltalake.exceptions import TableNotFoundError

from twinstream.disk.safe_files import make_folders, sync
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.task_report import TaskFile
from twinstream.spark.landing.durable import synced_below
from twinstream.spark.landing.outputs import DATA, LakeOutput
from twinstream.spark.landing.staging import Staging, Written
from twinstream.spark.landing.table_files import BOUNDED
from twinstream.spark.landing.tables import folders_in
from twinstream.spark.pipeline.settings.folders import Folders

__all__ = [
    "BOUNDED_COLUMNS",
    "BatchFiles",
    "DeltaPlace",
    "LocalDelta",
    "last_batch",
    "open_table",
    "table_settings",
]


def open_table(folder: Path) -> DeltaTable | None:
    """Return the newest version of the Delta table in a folder, or `None` if there is none."""
    try:
        return DeltaTable(str(folder))
    except TableNotFoundError:
        return None


BOUNDED_COLUMNS: Final = "delta.dataSkippingStatsColumns"


def table_settings(columns: Iterable[str], further: Iterable[str] = ()) -> dict[str, str]:
    """Return the settings of a new table with these columns, of which `further` have bounds, too.

    Without them, readers use no bounds of columns behind the first 32, which has those of a batch.
    """
    return {BOUNDED_COLUMNS: ",".join(sorted({*columns} & {*BOUNDED, *further}))}


def last_batch(delta: DeltaTable, source: str) -> int:
    """Return the last batch of a source, by its ID, in a table, or -1 if it has none."""
    found = delta.transaction_version(source)
    return -1 if found is None else found


class BatchFiles(Protocol):
    """The files of one attempt to land a batch."""

    @property
    def folder(self) -> Path | LakeOutput:
        """Where tasks write the files."""
        ...

    def into(self, table: str, files: Sequence[TaskFile]) -> list[TaskFile]:
        """Move files into the folder of a table. Their new paths are relative to that folder."""
        ...

    def close(self) -> None:
        """Remove files that were not moved."""
        ...


class DeltaPlace(Protocol):
    """The Delta tables of a lake."""

    lake: ObjectFolder | None
    """The lake, if it is on an object store."""

    doubtful: tuple[type[Exception], ...]
    """Errors of a change of a table after which it is unknown whether the table has it."""

    def existing(self, prefix: str) -> list[str]:
        """Return the folders of the lake whose names begin with a prefix."""
        ...

    def open(self, table: str) -> DeltaTable | None:
        """Return the newest version of a table, or `None` if there is none."""
        ...

    def opened(self, table: str) -> DeltaTable | None:
        """Return a version of a table that may be older, without requests if possible."""
        ...

    def landed(self, table: str, delta: DeltaTable, source: str) -> int:
        """Return the last batch of a source, by its ID, in a version of a table, or -1."""
        ...

    def committed(self, table: str, source: str, batch: int, version: int) -> None:
        """Note that the last batch of a source in a version of a table is known."""
        ...

    def create(
        self, table: str, schema: Schema, partitions: Sequence[str], settings: dict[str, str]
    ) -> DeltaTable:
        """Create a table, unless there is one, and return it.

        `partitions` are the columns with the values of partitions.
        """
        ...

    def files(self, writer: str, name: str) -> BatchFiles:
        """Return the files of a new attempt. The names of files begin with `name`."""
        ...

    def written(
        self, table: str, files: Sequence[TaskFile], *, is_earlier: bool = False
    ) -> Written:
        """Return files of a table, whose paths are relative to its folder."""
        ...

    def settle(self, table: str, first: int, last: int) -> None:
        """Make versions `first` to `last` of a table's log durable."""
        ...

    def changed(self, table: str) -> AbstractContextManager[None]:
        """Return a context that makes all changes of a table in its block durable."""
        ...

    def url(self, table: str) -> str:
        """Return the address of a table."""
        ...

    def path(self, table: str, name: str) -> Path:
        """Return the path of a file below the folder of a table, relative to `lake` if given."""
        ...

    def size(self, table: str, name: str) -> int | None:
        """Return the size in bytes of a file below the folder of a table, or `None` without it."""
        ...

    def remove(self, table: str, names: Iterable[str]) -> None:
        """Remove files below the folder of a table."""
        ...

    def failed(self, table: str, error: Exception) -> Exception:
        """Return the error for a commit that has failed with one of the `doubtful` errors."""
        ...


class _StagedFiles:
    """Files in a staging folder. They get their names when they are moved."""

    def __init__(self, folders: Folders, writer: str, name: str) -> None:
        self._root: Final = folders.root
        self._staging: Final = Staging(folders.staging, writer)
        self._name: Final = name

    @property
    def folder(self) -> Path:
        return self._staging.folder

    def into(self, table: str, files: Sequence[TaskFile]) -> list[TaskFile]:
        home = self._root / table / DATA / f"{self._name}{uuid.uuid4().hex[:8]}"
        # Neither folders nor their names matter to readers, who take partitions from the log.
        moved = self._staging.put([each.path for each in files], home, is_flat=True)
        own = [path.relative_to(self._root / table) for path in moved]
        return [evolve(each, path=path) for each, path in zip(files, own, strict=True)]

    def close(self) -> None:
        self._staging.close()


class LocalDelta:
    """Delta tables in local folders."""

    lake: ObjectFolder | None = None
    doubtful: tuple[type[Exception], ...] = ()

    def __init__(self, folders: Folders) -> None:
        self._folders: Final = folders

    def existing(self, prefix: str) -> list[str]:
        """Return the folders of the lake whose names begin with a prefix."""
        return folders_in(self._folders.root, prefix)

    def open(self, table: str) -> DeltaTable | None:
        """Return the newest version of a table, or `None` if there is none."""
        return open_table(self._folders.root / table)

    def opened(self, table: str) -> DeltaTable | None:
        """Return the newest version of a table, or `None` if there is none."""
        return self.open(table)

    def landed(self, table: str, delta: DeltaTable, source: str) -> int:
        """Return the last batch of a source, by its ID, in a version of a table, or -1."""
        return last_batch(delta, source)

    def committed(self, table: str, source: str, batch: int, version: int) -> None:
        """Do nothing."""

    def create(
        self, table: str, schema: Schema, partitions: Sequence[str], settings: dict[str, str]
    ) -> DeltaTable:
        """Create a table, unless there is one, and return it."""
        folder = self._folders.root / table
        make_folders(folder)
        return DeltaTable.create(
            str(folder),
            schema,
            mode="ignore",
            partition_by=list(partitions),
            configuration=settings,
        )

    def files(self, writer: str, name: str) -> BatchFiles:
        """Return the files of a new attempt, in a staging folder."""
        return _StagedFiles(self._folders, writer, name)

    def written(
        self, table: str, files: Sequence[TaskFile], *, is_earlier: bool = False
    ) -> Written:
        """Return files of a table. Their footers are read again, as a check."""
        paths = tuple(self._folders.root / table / each.path for each in files)
        return Written(table, paths, is_earlier)

    def settle(self, table: str, first: int, last: int) -> None:
        """Sync versions `first` to `last` of a table's log to disk. deltalake does not do this."""
        log = self._folders.root / table / "_delta_log"
        sync(log / f"{version:020}.json" for version in range(first, last + 1))
        checkpoints = [
            log / f"{version:020}.checkpoint.parquet" for version in range(first, last + 1)
        ]
        sync(each for each in (*checkpoints, log / "_last_checkpoint") if each.exists())
        sync([log])

    @contextmanager
    def changed(self, table: str) -> Generator[None]:
        """Create the folder of a table, and sync the files that are created in the block."""
        folder = self._folders.root / table
        make_folders(folder)
        with synced_below(folder):
            yield

    def url(self, table: str) -> str:
        """Return the path of a table's folder."""
        return str(self._folders.root / table)

    def path(self, table: str, name: str) -> Path:
        """Return the path of a file below the folder of a table."""
        return self._folders.root / table / name

    def size(self, table: str, name: str) -> int | None:
        """Return the size in bytes of a file below the folder of a table, or `None` without it."""
        path = self._folders.root / table / name
        return path.lstat().st_size if os.path.lexists(path) else None

    def remove(self, table: str, names: Iterable[str]) -> None:
        """Remove files below the folder of a table, and folders that are empty then."""
        root = self._folders.root / table
        for name in names:
            (root / name).unlink(missing_ok=True)
            for folder in (root / name).parents:
                if folder == root or not folder.is_dir() or any(folder.iterdir()):
                    break
                folder.rmdir()

    def failed(self, table: str, error: Exception) -> Exception:
        """Return the error."""
        return error
