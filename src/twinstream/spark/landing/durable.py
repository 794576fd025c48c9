"""Durable writes: replace small JSON files atomically, and sync the files of other writers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from twinstream.core.wire import response
from twinstream.disk.safe_files import make_folders, sync
from twinstream.models.files.bounded_read import read_small_text
from twinstream.spark.errors import JournalError

__all__ = ["read_json", "synced_below", "write_json"]

_Read = TypeVar("_Read")


@contextmanager
def synced_below(folder: Path) -> Generator[None]:
    """After the block, sync the files that were created below a folder during the block.

    Use it for writers that do not sync their own files.
    """
    before = set(folder.rglob("*"))
    yield
    made = set(folder.rglob("*")) - before
    sync([*made, *{each.parent for each in made}])


def read_json(file: Path, make: Callable[[dict[str, Any]], _Read]) -> _Read:
    """Return the JSON object in a file, converted with `make`.

    Raises `JournalError` if the file cannot be read or has other contents.
    """
    try:
        return make(cast("dict[str, Any]", response.read_json(read_small_text(file))))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise JournalError(
            f"the file {file} cannot be read ({error}); it is written atomically, so another"
            " program changed it: restore it, or land into a new folder"
        ) from error


def write_json(file: Path, value: dict[str, Any]) -> None:
    """Write a JSON object to a file atomically, and sync it.

    Readers see either the old contents or the new contents of the file.
    """
    make_folders(file.parent)
    building = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with building.open("w", encoding="utf-8") as out:
            json.dump(value, out, indent=1)
            out.flush()
            os.fsync(out.fileno())
        building.replace(file)
    finally:
        building.unlink(missing_ok=True)  # the file exists only after a failure
    sync([file.parent])
