"""A file that is larger than any file with configurations or state."""

from __future__ import annotations

from pathlib import Path

__all__ = ["huge"]


def huge(path: Path) -> Path:
    """Make a file of 1 GiB, which takes no space on the disk, and return its path."""
    with path.open("wb") as file:
        file.truncate(1 << 30)
    return path
