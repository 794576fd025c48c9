"""Sync the files of writers that do not sync their own."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from twinstream.disk.safe_files import sync

__all__ = ["synced_below"]


@contextmanager
def synced_below(folder: Path) -> Generator[None]:
    """After the block, sync the files that were created below a folder during the block."""
    before = set(folder.rglob("*"))
    yield
    made = set(folder.rglob("*")) - before
    sync([*made, *{each.parent for each in made}])
