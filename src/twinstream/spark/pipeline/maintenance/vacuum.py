"""Remove files that no table uses.

These are replaced files, and files of killed attempts to land a batch.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from stat import S_ISREG
from typing import Final

from twinstream.disk.safe_files import remove_tree
from twinstream.lake.local_store import LocalStore
from twinstream.spark.pipeline.letters.finish import planned_folders
from twinstream.spark.pipeline.maintenance.compact import all_tables
from twinstream.spark.pipeline.maintenance.leftover import Leftover
from twinstream.spark.pipeline.maintenance.maintenance_lock import maintenance_lock
from twinstream.spark.pipeline.settings.config import PipelineConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.tables.open_sink import delta_place

__all__ = ["KEEP", "Leftover", "vacuum"]

KEEP: Final = 7 * 24 * 3600.0
"""The default number of seconds for which replaced files are kept. During this time, queries that
read the files can end."""


def vacuum(config: PipelineConfig, *, keep: float = KEEP, dry_run: bool = False) -> list[Leftover]:
    """Remove files that no table uses, and return them.

    A running pipeline waits for the end of this call before it lands its next batch.

    Args:
        config: the pipeline.
        keep: the number of seconds for which a file is kept after it was replaced. Delta tables use
            whole hours, rounded up. Older snapshots of Iceberg tables expire. With a short time, a
            query that still reads an old version of a table may fail.
        dry_run: return the files without removing them.

    Raises:
        StorageError: if an object store does not answer, or if the lock in it was lost meanwhile.
        CheckpointError: if the tables have a part of an unfinished batch.
    """
    folders = Folders.of(config.path)
    with maintenance_lock(config, "vacuum") as held:
        found = [_measured(path) for path in _unused(folders, time.time() - keep)]
        if config.sink == "delta":
            for table in all_tables(config):
                found += _delta(config, table, keep, held.check, dry_run=dry_run)
        if config.sink == "iceberg":
            from twinstream.spark.pipeline.maintenance.vacuum_iceberg import iceberg_leftovers

            for source in config.sources:
                before = time.time() - keep
                found += iceberg_leftovers(config, source, before, held.check, dry_run=dry_run)
        if not dry_run:
            _remove(folders, found)
    return found


def _unused(folders: Folders, before: float) -> list[Path]:
    # The caller has the exclusive lock, so no running process uses staged files or creates objects.
    found = sorted(folders.staging.iterdir()) if folders.staging.is_dir() else []
    if found:
        planned = planned_folders(folders)
        found = [path for path in found if path.name not in planned]
    replaced = sorted(folders.replaced.iterdir()) if folders.replaced.is_dir() else []
    found += [path for path in replaced if _is_older(path.name, before)]
    return found + LocalStore(folders.state).unfinished()


def _is_older(name: str, before: float) -> bool:
    """Return whether the time in a name is not later than `before`.

    The name has the time in nanoseconds since 1970, and `before` is in seconds. The result is
    false for a name that is no number, because such a name is not from this package.
    """
    return name.isascii() and name.isdigit() and int(name) / 1e9 <= before


def _delta(
    config: PipelineConfig, table: str, keep: float, check: Callable[[], None], *, dry_run: bool
) -> list[Leftover]:
    place = delta_place(config)
    delta = place.open(table)
    if delta is None:
        return []
    hours = math.ceil(keep / 3600)  # Delta accepts only whole hours
    names = delta.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True)
    sizes = {name: place.size(table, name) for name in names}
    found = [
        Leftover(path=config.path / table / name, bytes=size)
        for name, size in sizes.items()
        if size is not None
    ]
    # No batch was unfinished when the files were listed. Names are unique, so no table will use
    # them, even if the lock is lost now.
    check()
    if not dry_run:
        place.remove(table, names)
    return found


def _measured(path: Path) -> Leftover:
    # Of a symbolic link only the link is removed.
    files = [path, *path.rglob("*")] if path.is_dir() and not path.is_symlink() else [path]
    sizes = (each.lstat() for each in files)
    return Leftover(path=path, bytes=sum(e.st_size for e in sizes if S_ISREG(e.st_mode)))


def _remove(folders: Folders, found: list[Leftover]) -> None:
    for each in found:
        if isinstance(each.path, Path) and os.path.lexists(each.path):
            remove_tree(each.path)
    for folder in (folders.staging, folders.replaced):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
