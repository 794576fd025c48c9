"""Durable, private and regular files and folders.

A rename or a new file survives a power failure only if its folder is synced, too. Files with
messages are created with mode 0600, because not every user of the machine may read the stream.
Files to read must be regular files, because opening a FIFO or a device could block forever.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO, Final

__all__ = [
    "create_private",
    "make_folders",
    "make_private",
    "open_regular",
    "remove_tree",
    "sync",
    "temporary_stem",
]

_PRIVATE: Final = 0o600
# Names of files have at most 255 bytes. The end of a temporary name has up to 95.
_LONGEST_STEM: Final = 160
_KEPT: Final = 100


def sync(paths: Iterable[Path]) -> None:
    """Sync files and folders to disk."""
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_tree(path: Path) -> None:
    """Remove a folder with its contents, or a file. Of a symbolic link only the link is removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def temporary_stem(path: Path) -> str:
    """Return the beginning of the names of temporary files for `path`: a dot, and its name.

    A long name is shortened, because temporary names are longer than the name itself. A digest
    keeps different names apart.
    """
    name = os.fsencode(path.name)
    if len(name) <= _LONGEST_STEM:
        return f".{path.name}"
    return f".{name[:_KEPT].decode(errors='ignore')}~{hashlib.sha256(name).hexdigest()[:32]}"


def make_folders(folder: Path) -> None:
    """Create a folder and its missing parents, and sync them to disk."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    sync([each.parent for each in missing])


def create_private(path: Path) -> BinaryIO:
    """Create a file that only its owner can read, and open it for writing.

    Raises `FileExistsError` if the file exists.
    """
    return open(path, "xb", opener=_private)


def make_private(path: str) -> None:
    """Create an empty file that only its owner can read, unless the file exists."""
    with suppress(FileExistsError):
        create_private(Path(path)).close()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, _PRIVATE)


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading. Raises `OSError` for a FIFO, a device or a folder."""
    # Without O_NONBLOCK, opening a FIFO waits until a process writes to it.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with ExitStack() as undo:
        undo.callback(os.close, number)
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(f"{path} is not a regular file")
        file = os.fdopen(number, "rb")
        undo.pop_all()
    return file
