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

from pathlib import Path
from typing import Final

from attrs import frozen

from twinstream.spark.landing.staging import STAGING

__all__ = ["Folders", "SourceFolder"]

STATE: Final = "_pipeline"
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
        """The file that is locked while somebody writes."""
        return self.root / STATE / "lock"

    @property
    def staging(self) -> Path:
        """What is being written."""
        return self.root / STAGING

    @property
    def replaced(self) -> Path:
        """What was replaced, kept for those who still read it."""
        return self.root / REPLACED
