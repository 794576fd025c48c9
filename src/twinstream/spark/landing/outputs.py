"""Where the tasks of a batch write their files: in a folder, or in a lake on an object store."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
from attrs import frozen

from twinstream.disk.safe_files import sync
from twinstream.lake.objects.files import SMALL_PART, arrow_files
from twinstream.lake.objects.folder import ObjectFolder

__all__ = ["DATA", "FolderOutput", "LakeOutput"]

DATA: Final = "data"
"""Name of the folder with the files of batches, in the folder of a Delta table."""


@frozen
class FolderOutput:
    """The local folder `folder`, from which the driver moves the files."""

    folder: Path

    def lacks(self, table: str) -> bool:
        """Return `False`, because a table gets its folder with its first batch."""
        return False

    def open(self, table: str, partition: str) -> tuple[Path, pa.NativeFile]:
        """Create a file in the folder of its partition, and return its path and the open file."""
        path = self.folder / partition / f"{uuid.uuid4().hex}.parquet"
        if partition:
            path.parent.mkdir(parents=True, exist_ok=True)
        return path, pa.OSFile(str(path), "wb")

    def finish(self, paths: Iterable[Path]) -> None:
        """Make closed files durable."""
        sync(paths)


@frozen
class LakeOutput:
    """The folders of tables in a lake, where files have the name of a batch and another part.

    Readers do not see the files before the log of the table names them. A file appears when it is
    closed, and it is durable then. `homes` has the folders of tables by the name of the table, if a
    catalog decides where a table is. Otherwise, a folder is named as its table.
    """

    lake: ObjectFolder
    name: str
    homes: Mapping[str, str] | None = None

    def lacks(self, table: str) -> bool:
        """Return whether the folder of a table is unknown, because it does not exist yet."""
        return self.homes is not None and table not in self.homes

    def open(self, table: str, partition: str) -> tuple[Path, pa.NativeFile]:
        """Begin a file, and return its path below the lake and the open file.

        Its name does not have the partition, which is in the log of the table.
        """
        home = table if self.homes is None else self.homes[table]
        path = f"{home}/{DATA}/{self.name}{uuid.uuid4().hex}.parquet"
        files = arrow_files(self.lake, SMALL_PART) if partition else arrow_files(self.lake)
        return Path(path), files.open_output_stream(path)

    def finish(self, paths: Iterable[Path]) -> None:
        """Do nothing."""
