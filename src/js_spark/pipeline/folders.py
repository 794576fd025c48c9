"""Where a pipeline keeps what: tables to be read by anybody, and its own state beside them.

::

    path/
      <table>/…                          the tables
      dead_letters/…                     what does not fit its schema
      _pipeline/<source>/source.json     which stream this is, and which checkpoint belongs to it
      _pipeline/<source>/checkpoint/     Spark's checkpoint: how far the source is landed
      _pipeline/<source>/journal.jsonl   what each batch read and wrote
      _staging/ _replaced/               unfinished and replaced files, until they are removed

Readers of Parquet pass over names that begin with an underscore.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from js_spark.errors import JournalError

__all__ = ["Folders", "SourceFolder", "read_json", "write_json"]

STATE: Final = "_pipeline"
STAGING: Final = "_staging"
REPLACED: Final = "_replaced"


@frozen
class SourceFolder:
    """The state of one source."""

    path: Path

    @property
    def identity(self) -> Path:
        """The file that says which stream and checkpoint this is."""
        return self.path / "source.json"

    @property
    def checkpoint(self) -> Path:
        """Spark's checkpoint."""
        return self.path / "checkpoint"

    @property
    def journal(self) -> Path:
        """The journal of the batches."""
        return self.path / "journal.jsonl"


@frozen
class Folders:
    """The folders of one pipeline."""

    root: Path

    def source(self, name: str) -> SourceFolder:
        """Return the state of a source."""
        return SourceFolder(self.root / STATE / name)

    @property
    def lock(self) -> Path:
        """The file that whoever writes holds locked."""
        return self.root / STATE / "lock"

    @property
    def staging(self) -> Path:
        """What is being written."""
        return self.root / STAGING

    @property
    def replaced(self) -> Path:
        """What was replaced, kept for those who still read it."""
        return self.root / REPLACED


def read_json(file: Path) -> dict[str, Any]:
    """Read an object. Raises `JournalError` for a file that cannot be read."""
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return found
    except (OSError, ValueError) as error:
        raise JournalError(
            f"the pipeline's file {file} cannot be read ({error}); it is written in one step, so"
            " something else changed it: restore it, or land into a new folder"
        ) from error


def write_json(file: Path, value: dict[str, Any]) -> None:
    """Write a file in one step: whoever looks sees the old one or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    building = file.with_name(f".{file.name}.{os.getpid()}")
    with building.open("w", encoding="utf-8") as out:
        json.dump(value, out, indent=1)
        out.flush()
        os.fsync(out.fileno())
    building.replace(file)
    _sync_folder(file.parent)


def _sync_folder(folder: Path) -> None:
    """Make names in a folder durable, where the system can."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
