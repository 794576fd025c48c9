"""Paths of a pipeline: the tables for readers, and the pipeline's own state.

::

    path/
      <table>/…                          the tables
      dead_letters/…                     messages that do not match their schema
      _pipeline/<source>/…               the journal: the plan and the entry of each batch
      _staging/ _replaced/               unfinished and replaced files, until they are removed

Parquet readers skip names that begin with an underscore.

A lake on an object store has the tables and the journals there, and no `_staging` or `_replaced`.
Its locks are files of the machine.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Final

from attrs import frozen

from twinstream.lake.local_store import LocalStore
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.objects.store import ObjectStore
from twinstream.lake.store import Store
from twinstream.spark.landing.staging import STAGING

__all__ = ["STATE", "Folders"]

STATE: Final = "_pipeline"
REPLACED: Final = "_replaced"


@frozen
class Folders:
    """The paths of one pipeline, below the folder `root`.

    If the lake is on an object store, `bucket` is its folder there, and only the locks are below
    `root`.
    """

    root: Path
    bucket: ObjectFolder | None = None

    @classmethod
    def of(cls, path: Path | ObjectFolder) -> Folders:
        """Return the paths of a pipeline with the tables in the folder `path`."""
        if isinstance(path, Path):
            return cls(path)
        digest = hashlib.sha256(f"{path.storage.endpoint} {path}".encode()).hexdigest()[:32]
        home = Path(tempfile.gettempdir()) / f"twinstream-{os.getuid()}"
        home.mkdir(mode=0o700, exist_ok=True)
        return cls(home / digest, path)

    @property
    def lake(self) -> Path | ObjectFolder:
        """The folder with the tables."""
        return self.bucket or self.root

    @property
    def store(self) -> Store:
        """The store of the journals."""
        if self.bucket is None:
            return LocalStore(self.state)
        return ObjectStore(self.bucket / STATE)

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
