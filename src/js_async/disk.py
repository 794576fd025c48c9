"""Files and folders that are on the disk when a call returns.

A rename or a new file survives a power cut only if the folder that it is in is synced, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

__all__ = ["make_folders", "sync"]


def sync(paths: Iterable[Path]) -> None:
    """Return when the files and folders are on the disk."""
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def make_folders(folder: Path) -> None:
    """Make a folder and those above it, where they are missing."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    sync([each.parent for each in missing])
