"""Change batches of a Parquet table atomically: build a new folder and exchange the two folders.

Unchanged files are linked, not copied. The old folder is kept until a vacuum removes it. If a
reader has listed the old files and opens them after the exchange, it looks for them in the new
folder. The new folder does not have the files that were replaced, so the reader's query fails.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final, Self

import pyarrow.dataset as ds
from attrs import evolve

from twinstream.disk.safe_files import make_folders, sync
from twinstream.spark.landing.batch_folders import BATCH_FOLDER
from twinstream.spark.landing.partition_rows import partition_of
from twinstream.spark.landing.staging import files_in
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.tables import swap
from twinstream.spark.pipeline.tables.column_change import ColumnChange, changed_rows
from twinstream.spark.pipeline.tables.parquet_files import Part, merge, write_rows

__all__ = ["Rebuilt"]


class Rebuilt:
    """A new version of a table. It replaces the current version when the `with` block ends."""

    def __init__(self, folders: Folders, table: str) -> None:
        self._current: Final = folders.root / table
        self._folder: Final = folders.staging / f"_rebuild.{uuid.uuid4().hex}"
        self._old: Final = folders.replaced / f"{time.time_ns()}" / table
        self._new: Final = self._folder / "table"

    def __enter__(self) -> Self:
        swap.finish(self._current)
        self._new.mkdir(parents=True)
        return self

    def keep(self, batches: Iterable[Path]) -> None:
        """Link the folders of batches, unchanged, into the new version."""
        for folder in batches:
            home = self._new / folder.name
            homes = {home}
            home.mkdir()
            for file in files_in(folder):
                own = home / file.parent.relative_to(folder)
                make_folders(own)
                os.link(file, own / file.name)
                homes.add(own)
            sync(homes)

    def put(self, number: int, parts: Sequence[Part]) -> None:
        """Write the rows of the parts to the folder of batch `number`, in a file per partition.

        Without rows, no folder is written.
        """
        home = self._new / f"{BATCH_FOLDER}{number}"
        for partition in sorted({partition_of(file) for part in parts for file in part.files}):
            inside = [
                evolve(part, files=[f for f in part.files if partition_of(f) == partition])
                for part in parts
            ]
            merge(inside, home / partition)

    def change(self, batches: Iterable[Path], change: ColumnChange) -> None:
        """Write the rows of the folders of batches with other columns.

        Each partition of a batch gets one file.
        """
        own = change.in_files
        for folder in batches:
            for partition, files in groupby(files_in(folder), partition_of):
                rows = ds.dataset([str(file) for file in files], schema=own.read_columns)
                changed = changed_rows(self._current.name, rows, own)
                write_rows(changed, own.columns, self._new / folder.name / partition)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._replace_current()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _replace_current(self) -> None:
        sync([self._new])
        make_folders(self._current.parent)
        if self._current.exists():
            swap.exchange(self._new, self._current)
            self._old.parent.mkdir(parents=True, exist_ok=True)
            self._new.rename(self._old)
        else:
            self._new.rename(self._current)
        sync([self._current.parent])
