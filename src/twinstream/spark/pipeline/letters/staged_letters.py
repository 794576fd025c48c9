"""Where the tasks of a replay of dead letters write files, until a plan names them."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Final

from twinstream.disk.safe_files import sync
from twinstream.spark.landing.outputs import LakeOutput
from twinstream.spark.landing.staging import Staging, remove_attempts
from twinstream.spark.pipeline.letters.finish import planned_folders
from twinstream.spark.pipeline.settings.folders import Folders

__all__ = ["StagedLetters"]

# How the names of the plans' folders begin.
_STAGED: Final = "_letters"


class StagedLetters:
    """The files of one replay.

    They are in a folder of staged files. In a lake on an object store, they are in the folders of
    their tables, where readers do not see them: `output` is for these.
    """

    def __init__(self, folders: Folders, output: LakeOutput | None) -> None:
        self._staging: Staging | None = None
        self.folder: Path | LakeOutput
        """Where tasks write the files."""
        if output is None:
            remove_attempts(folders.staging, _STAGED, planned_folders(folders))
            self._staging = Staging(folders.staging, _STAGED)
            self.folder = self._staging.folder
            self.name = self.folder.name
        else:
            self.folder = output
            self.name = f"{_STAGED}.{uuid.uuid4().hex}"

    name: str
    """The name of the folder, which no other replay has."""

    def settle(self) -> None:
        """Make the names of the files durable."""
        if self._staging is not None:
            sync([self._staging.folder, self._staging.folder.parent])

    def close(self) -> None:
        """Remove the files. On an object store, they stay until a vacuum."""
        if self._staging is not None:
            self._staging.close()
