"""The folders of a Parquet table: one for each batch, or for several that were joined."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from twinstream.spark.errors import JournalError

__all__ = ["BATCH_FOLDER", "batch_folders", "reaches"]

BATCH_FOLDER: Final = "batch_id="
"""What the names of the folders of batches begin with."""


def batch_folders(table: Path) -> dict[int, Path]:
    """Return the folders of a table by the number of the (last) batch in it, ascending.

    Raises `JournalError` for a folder that is not one of a batch but that readers take for one.
    """
    if not table.is_dir():
        return {}
    found = {_number(path): path for path in table.glob(f"{BATCH_FOLDER}*")}
    return dict(sorted(found.items()))


def reaches(table: Path, number: int) -> bool:
    """Tell whether a table has a batch with this number or a higher one."""
    return max(batch_folders(table), default=-1) >= number


def _number(folder: Path) -> int:
    text = folder.name.removeprefix(BATCH_FOLDER)
    if not (text.isascii() and text.isdigit()):
        raise JournalError(
            f"{folder} is not the folder of a batch, which ends in a number: somebody else put it"
            " there, and readers of the table see it; move it away"
        )
    return int(text)
