"""Small JSON files, written in one step, and folders that are on the disk when a call returns."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from twinstream.core.wire import response as answers
from twinstream.spark.errors import JournalError
from js_sync.backup.disk import make_folders, sync

__all__ = ["read_json", "synced_below", "write_json"]

_Read = TypeVar("_Read")


@contextmanager
def synced_below(folder: Path) -> Generator[None]:
    """Sync what the block makes below a folder, for writers that do not sync by themselves."""
    before = set(folder.rglob("*"))
    yield
    made = set(folder.rglob("*")) - before
    sync([*made, *{each.parent for each in made}])


def read_json(file: Path, make: Callable[[dict[str, Any]], _Read]) -> _Read:
    """Return what ``make`` makes of an object in a file.

    Raises `JournalError` for a file that cannot be read, or holds something else.
    """
    try:
        return make(cast("dict[str, Any]", answers.read_json(file.read_text(encoding="utf-8"))))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise JournalError(
            f"the file {file} cannot be read ({error}); it is written in one step, so something"
            " else changed it: restore it, or land into a new folder"
        ) from error


def write_json(file: Path, value: dict[str, Any]) -> None:
    """Write a file in one step: whoever looks sees the old one, the new one or none."""
    make_folders(file.parent)
    building = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with building.open("w", encoding="utf-8") as out:
            json.dump(value, out, indent=1)
            out.flush()
            os.fsync(out.fileno())
        building.replace(file)
    finally:
        building.unlink(missing_ok=True)  # only there after a failure
    sync([file.parent])
