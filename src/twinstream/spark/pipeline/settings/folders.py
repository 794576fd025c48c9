"""Paths of a pipeline: the tables for readers, and the pipeline's own state.

::

    path/
      <table>/…                          the tables
      dead_letters/…                     messages that do not match their schema
      _pipeline/<source>/source.json     the identity of the stream and of its checkpoint
      _pipeline/<source>/checkpoint/     Spark's checkpoint: how far the source is landed
      _pipeline/<source>/journal.jsonl   the bounds and the results of each batch
      _staging/ _replaced/               unfinished and replaced files, until they are removed

Parquet readers skip names that begin with an underscore.
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
    """The folder with the state of one source."""

    path: Path

    @property
    def identity(self) -> Path:
        """The file with the identity of the stream and of the checkpoint."""
        return self.path / "source.json"

    @property
    def checkpoint(self) -> Path:
        """The folder of Spark's checkpoint."""
        return self.path / "checkpoint"

    @property
    def journal(self) -> Path:
        """The file with the journal of the batches."""
        return self.path / "journal.jsonl"


@frozen
class Folders:
    """The paths of one pipeline, below the folder `root`."""

    root: Path

    def source(self, name: str) -> SourceFolder:
        """Return the folder with the state of a source."""
        return SourceFolder(self.root / STATE / name)

    @property
    def lock(self) -> Path:
        """The file that is locked while the pipeline runs."""
        return self.root / STATE / "lock"

    @property
    def maintenance(self) -> Path:
        """The file that is locked while a command changes the tables, or waits to do so."""
        return self.root / STATE / "maintenance.lock"

    @property
    def gate(self) -> Path:
        """The file that a maintenance command locks so that no further batch begins."""
        return self.root / STATE / "gate.lock"

    @property
    def tables(self) -> Path:
        """The file that is locked while a process changes the tables."""
        return self.root / STATE / "tables.lock"

    @property
    def staging(self) -> Path:
        """The folder of files that are not in a table yet."""
        return self.root / STAGING

    @property
    def replaced(self) -> Path:
        """The folder of replaced files, which are kept for readers that have not finished."""
        return self.root / REPLACED
