"""List the folders of a Parquet table: one for each batch, or for several compacted batches."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from twinstream.spark.errors import JournalError

__all__ = ["BATCH_FOLDER", "batch_folders", "reaches"]

BATCH_FOLDER: Final = "batch_id="
"""The prefix of the names of batch folders."""


def batch_folders(table: Path) -> dict[int, Path]:
    """Return the folders of a table by the number of their last batch, ascending.

    Raises `JournalError` if a name has the prefix of batch folders but no number, because readers
    of the table would read the files in such a folder.
    """
    try:
        names = os.listdir(table)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    found = {_number(table, name): name for name in names if name.startswith(BATCH_FOLDER)}
    return {number: table / name for number, name in sorted(found.items())}


def reaches(table: Path, number: int) -> bool:
    """Return whether a table has a batch with this number or a higher number."""
    return max(batch_folders(table), default=-1) >= number


def _number(table: Path, name: str) -> int:
    text = name.removeprefix(BATCH_FOLDER)
    if not (text.isascii() and text.isdigit()):
        raise JournalError(
            f"{table / name} is not a batch folder, whose name ends in a number: another program"
            " put it there, and readers of the table read it; move it away"
        )
    return int(text)
