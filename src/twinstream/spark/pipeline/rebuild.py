"""Change batches of a Parquet table atomically: build a new folder and exchange it for the old one.

Unchanged files are linked, not copied. The old folder is kept until a vacuum removes it. A reader
that has listed the old files opens them in the new folder, where replaced files do not exist.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Self

from js_sync.backup.disk import make_folders, sync
from twinstream.spark.landing.batch_folders import BATCH_FOLDER
from twinstream.spark.landing.staging import files_in
from twinstream.spark.pipeline import swap
from twinstream.spark.pipeline.folders import Folders
from twinstream.spark.pipeline.parquet_files import Part, merge

__all__ = ["Rebuilt"]


class Rebuilt:
    """A new version of a table, which replaces it at the end of the ``with`` block."""

    def __init__(self, folders: Folders, table: str) -> None:
        self._current: Final = folders.root / table
        self._aside: Final = folders.staging / f"_rebuild.{uuid.uuid4().hex}"
        self._old: Final = folders.replaced / f"{time.time_ns()}" / table
        self._new: Final = self._aside / "table"

    def __enter__(self) -> Self:
        swap.finish(self._current)
        self._new.mkdir(parents=True)
        return self

    def keep(self, batches: Iterable[Path]) -> None:
        """Keep the folders of batches unchanged."""
        for folder in batches:
            home = self._new / folder.name
            home.mkdir()
            for file in files_in(folder):
                os.link(file, home / file.name)
            sync([home])

    def put(self, number: int, parts: Sequence[Part]) -> Path | None:
        """Write all these rows to one folder, named after the last batch; none without rows."""
        return merge(parts, self._new / f"{BATCH_FOLDER}{number}")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._take_place()
        finally:
            shutil.rmtree(self._aside, ignore_errors=True)

    def _take_place(self) -> None:
        sync([self._new])
        make_folders(self._current.parent)
        if self._current.exists():
            swap.exchange(self._new, self._current)
            self._old.parent.mkdir(parents=True, exist_ok=True)
            self._new.rename(self._old)
        else:
            self._new.rename(self._current)
        sync([self._current.parent])
