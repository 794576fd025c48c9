"""The store in a folder of a local file system: an object is a file."""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path
from typing import Final

from twinstream.disk.safe_files import make_folders, open_regular, sync
from twinstream.lake.errors import JournalError
from twinstream.lake.store import KeyTaken
from twinstream.models.files.bounded_read import bounded

__all__ = ["LocalStore"]

# Names of files that are not linked to the name of their object yet.
_UNFINISHED: Final = re.compile(r"\..+\.[0-9a-f]{32}")


class LocalStore:
    """A store below the folder `root`.

    A file is written under another name and then linked to its own name. The link fails if the name
    exists. So readers see whole files only, and of several writers one succeeds.
    """

    def __init__(self, root: Path) -> None:
        self._root: Final = root

    def create(self, key: str, data: bytes) -> None:
        """Store an object, or raise `KeyTaken` if there is one with the key."""
        target = self._root / key
        make_folders(target.parent)
        building = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        try:
            with building.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.link(building, target)
        except FileExistsError:
            # The process that created it may have ended before it did this.
            sync([target.parent])
            raise KeyTaken(key) from None
        finally:
            building.unlink(missing_ok=True)
        sync([target.parent])

    def get(self, key: str) -> bytes | None:
        """Return the object with a key, or `None` if there is none.

        Raises `JournalError` if the file cannot be read or is no small regular file.
        """
        path = self._root / key
        try:
            with open_regular(path) as file:
                return bounded(file)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise JournalError(f"the file {path} cannot be read: {error}") from error

    def names(self, folder: str) -> list[str]:
        """Return the last parts of the keys directly below a folder, in their order."""
        try:
            found = os.listdir(self._root / folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name for name in found if not name.startswith("."))

    def folders(self) -> list[str]:
        """Return the names of the folders below the root, in their order."""
        found = self._root.iterdir() if self._root.is_dir() else ()
        return sorted(each.name for each in found if each.is_dir())

    def delete(self, key: str) -> None:
        """Delete an object, if there is one."""
        (self._root / key).unlink(missing_ok=True)

    def unfinished(self) -> list[Path]:
        """Return the files of objects that were not created, because their process was killed.

        No other process may create objects during this call.
        """
        files = (path for path in self._root.rglob(".*") if _UNFINISHED.fullmatch(path.name))
        return sorted(files)
