"""Remove files that no table names any more: replaced ones, and those of killed attempts."""

from __future__ import annotations

import math
import shutil
import time
from pathlib import Path
from typing import Final

from attrs import frozen

from twinstream.spark.pipeline.compact import all_tables
from twinstream.spark.pipeline.config import PipelineConfig
from twinstream.spark.pipeline.folders import Folders
from twinstream.spark.pipeline.settled import settled

__all__ = ["KEEP", "Leftover", "vacuum"]

KEEP: Final = 7 * 24 * 3600.0
"""Seconds that replaced files are kept by default: queries that read them have ended by then."""


@frozen(kw_only=True)
class Leftover:
    """A file or folder that no table names."""

    path: Path
    bytes: int


def vacuum(config: PipelineConfig, *, keep: float = KEEP, dry_run: bool = False) -> list[Leftover]:
    """Remove what was left aside ``keep`` seconds ago or earlier; return it.

    With ``dry_run`` nothing is removed. With a short ``keep`` a query that reads an old version
    of a table just now may miss its files. Raises `PipelineBusy` while the pipeline runs.
    """
    folders = Folders(config.path)
    with settled(config, "vacuum"):
        found = [_measured(path) for path in _aside(folders, time.time() - keep)]
        if config.sink == "delta":
            for table in all_tables(config):
                found += _delta(folders.root / table, keep, dry_run=dry_run)
        if not dry_run:
            _remove(folders, found)
    return found


def _aside(folders: Folders, before: float) -> list[Path]:
    # Nobody else works on the folder, so what is staged was left by an attempt that was killed.
    found = sorted(folders.staging.iterdir()) if folders.staging.is_dir() else []
    replaced = sorted(folders.replaced.iterdir()) if folders.replaced.is_dir() else []
    found += [path for path in replaced if _is_older(path.name, before)]
    for source in sorted(folders.lock.parent.glob("*/checkpoint.*")):
        if _is_older(source.name.partition(".")[2], before):
            found.append(source)
    return found


def _is_older(name: str, before: float) -> bool:
    """Tell whether a name is an earlier time; another name is not one of ours."""
    return name.isascii() and name.isdigit() and int(name) / 1e9 <= before


def _delta(folder: Path, keep: float, *, dry_run: bool) -> list[Leftover]:
    from twinstream.spark.pipeline.delta_sink import open_table

    delta = open_table(folder)
    if delta is None:
        return []
    hours = math.ceil(keep / 3600)  # Delta takes whole hours: rather too long than too short
    names = delta.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True)
    found = [_measured(folder / name) for name in names if (folder / name).exists()]
    if not dry_run:
        delta.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)
    return found


def _measured(path: Path) -> Leftover:
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return Leftover(path=path, bytes=sum(each.stat().st_size for each in files))


def _remove(folders: Folders, found: list[Leftover]) -> None:
    for each in found:
        if each.path.is_dir():
            shutil.rmtree(each.path)
    for folder in (folders.staging, folders.replaced):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
