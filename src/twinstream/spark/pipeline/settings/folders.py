"""Paths of a pipeline: the tables for readers, and the pipeline's own state.

::

    path/
      <table>/…                          the tables
      dead_letters/…                     messages that do not match their schema
      _pipeline/<source>/…               the journal: the plan and the entry of each batch
      _staging/ _replaced/               unfinished and replaced files, until they are removed

Parquet readers skip names that begin with an underscore.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from attrs import frozen

from twinstream.spark.landing.staging import STAGING

__all__ = ["STATE", "Folders"]

STATE: Final = "_pipeline"
REPLACED: Final = "_replaced"


@frozen
class Folders:
    """The paths of one pipeline, below the folder `root`."""

    root: Path

    @property
    def state(self) -> Path:
        """The folder with the journals of the sources, and with the locks."""
        return self.root / STATE

    @property
    def lock(self) -> Path:
        """The file that is locked while the pipeline runs."""
        return self.state / "lock"

    @property
    def maintenance(self) -> Path:
        """The file that is locked while a command changes the tables, or waits to do so."""
        return self.state / "maintenance.lock"

    @property
    def gate(self) -> Path:
        """The file that a maintenance command locks so that no further batch begins."""
        return self.state / "gate.lock"

    @property
    def tables(self) -> Path:
        """The file that is locked while a process changes the tables."""
        return self.state / "tables.lock"

    @property
    def staging(self) -> Path:
        """The folder of files that are not in a table yet."""
        return self.root / STAGING

    @property
    def replaced(self) -> Path:
        """The folder of replaced files, which are kept for readers that have not finished."""
        return self.root / REPLACED
