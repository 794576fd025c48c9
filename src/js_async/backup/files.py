"""The folder of a backup. It has a temporary name until the backup is complete.

The temporary folder is beside the target: `.NAME.part-` and eight random characters. Its archive
is locked while the backup is written, so that later backups remove only the folders of backups that
were killed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, cast

from twinstream.core.backup.backup import DATA_FILE, META_FILE, SUMS_FILE, Backup
from twinstream.core.backup.s2_frames import S2Frames
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.wire.response import read_json
from twinstream.disk.exchange import exchange_at_once
from twinstream.disk.local_path import local_path
from twinstream.disk.safe_files import (
    create_private,
    make_folders,
    open_regular,
    sync,
    temporary_stem,
)
from twinstream.errors import BadArgument
from twinstream.models import DecodeError, StreamConfig, StreamState, decode
from twinstream.models.files.bounded_read import bounded

__all__ = ["BackupWriter", "read_backup", "verify"]

_PIECE: Final = 1 << 20
_FILES: Final = frozenset({DATA_FILE, META_FILE, SUMS_FILE})
# The end of the name of a temporary folder. `-former` stands behind the name of a former backup,
# where the file system cannot exchange two folders.
_LEFTOVER: Final = re.compile(r"\.part-[a-z0-9_]{8}(-former)?")


class BackupWriter:
    """The writer of a backup folder.

    `exchange` exchanges the names of two folders, or returns False if it cannot do that.
    """

    def __init__(
        self,
        target: Path,
        *,
        overwrite: bool,
        exchange: Callable[[Path, Path], bool] = exchange_at_once,
    ) -> None:
        # Resolve a symbolic link: the backup replaces the folder to which the link points.
        self._target: Final = target.resolve()
        self._overwrite: Final = overwrite
        self._exchange: Final = exchange
        self._folder: Path | None = None
        self._file: BinaryIO | None = None
        self._sum: Final = hashlib.sha256()

    def open(self) -> None:
        """Create the temporary folder and the archive file in it.

        Raises `OSError`, and `BadArgument` if the target must not be replaced.
        """
        self._check_target()
        parent = self._target.parent
        make_folders(parent)
        prefix = f"{temporary_stem(self._target)}.part-"
        self._folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        self._file = create_private(self._folder / DATA_FILE)
        _lock(self._file)

    def _check_target(self) -> None:
        """Raise `BadArgument` unless the target is absent, empty, or a backup to overwrite."""
        if not self._target.exists():
            return
        if not self._target.is_dir():
            raise BadArgument(f"{self._target} is a file; a backup is a folder")
        names = {each.name for each in self._target.iterdir()}
        if names and not self._overwrite:
            raise BadArgument(
                f"{self._target} is not empty: choose another folder, or replace the backup in it"
                " with overwrite=True (--overwrite on the command line)"
            )
        foreign = sorted(names - _FILES)
        if foreign:
            raise BadArgument(
                f"{self._target} contains {foreign[0]}, so it is not just a backup; left alone"
            )

    def write(self, chunks: list[bytes]) -> None:
        """Append chunks to the archive."""
        file = cast("BinaryIO", self._file)
        with self._named(DATA_FILE):
            for chunk in chunks:
                file.write(chunk)
                self._sum.update(chunk)

    def finish(self, members: dict[str, Any]) -> None:
        """Write the metadata, sync everything to disk, and rename the folder to the target.

        An earlier backup in the target is removed, and so are temporary folders of earlier backups
        to this target that were killed.
        """
        folder, file = cast("Path", self._folder), cast("BinaryIO", self._file)
        with self._named(DATA_FILE):
            _sync(file)
        self._add(folder / META_FILE, json.dumps(members, indent=2, ensure_ascii=False) + "\n")
        self._add(folder / SUMS_FILE, f"{self._sum.hexdigest()}  {DATA_FILE}\n")
        sync([folder])
        if HOOKS:
            reached("backup: before rename", folder)
        # Another process may have written to the target meanwhile.
        self._check_target()
        self._move(folder)
        file.close()
        _remove_leftovers(self._target)

    def _move(self, folder: Path) -> None:
        """Give the folder the name of the target. Remove an earlier backup after that is durable.

        If the process is killed here, the target is one of the two backups. Where the file system
        cannot exchange two folders, it may be missing; then `read_backup` names the complete ones.
        """
        former = None
        if not self._target.exists() or not any(self._target.iterdir()):
            # A rename over an empty folder is atomic.
            os.rename(folder, self._target)
        elif self._exchange(folder, self._target):
            former = folder
        else:
            former = folder.with_name(f"{folder.name}-former")
            os.rename(self._target, former)
            try:
                os.rename(folder, self._target)
            except OSError:
                os.rename(former, self._target)
                raise
        self._folder = None
        sync([self._target.parent])
        if HOOKS:
            reached("backup: renamed", self._target)
        if former is not None:
            shutil.rmtree(former)

    def _add(self, path: Path, text: str) -> None:
        with self._named(path.name), create_private(path) as file:
            file.write(text.encode())
            _sync(file)

    @contextmanager
    def _named(self, name: str) -> Generator[None]:
        """Add the file name to an `OSError` that has none, for example if the disk is full."""
        try:
            yield
        except OSError as error:
            if error.filename is None:
                error.filename = str(self._target / name)
            raise

    def discard(self) -> None:
        """Remove the temporary folder, unless the backup is complete."""
        if self._file is not None:
            # Closing writes buffered data, which may not fit on the disk.
            with suppress(OSError):
                self._file.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _lock(file: IO[bytes]) -> bool:
    """Lock the file until it is closed. Return False if another process or call has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # The file system has no locks.
        pass
    return True


def _leftovers(target: Path) -> list[Path]:
    """Return the temporary folders of backups to this target."""
    start = temporary_stem(target)
    return [
        each
        for each in target.parent.iterdir()
        if each.name.startswith(start)
        and _LEFTOVER.fullmatch(each.name[len(start) :])
        and each.is_dir()
    ]


def _remove_leftovers(target: Path) -> None:
    """Remove the temporary folders of killed backups. One that cannot be removed stays."""
    for folder in _leftovers(target):
        with suppress(OSError), open_regular(folder / DATA_FILE) as file:
            if _FILES.issuperset(each.name for each in folder.iterdir()) and _lock(file):
                shutil.rmtree(folder)


def _missing(folder: Path) -> str:
    """Return what to do if there is no folder, because a killed backup could not exchange it."""
    if folder.exists() or not folder.parent.is_dir():
        return ""
    whole = sorted(str(each) for each in _leftovers(folder) if _FILES.issubset(os.listdir(each)))
    if not whole:
        return ""
    return f"; a backup that was killed has left {' and '.join(whole)}: rename one of them"


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def read_backup(path: str | os.PathLike[str]) -> Backup:
    """Return the `Backup` in a folder, without reading its archive.

    The `nats` command writes backups in the same format. Raises `BadArgument` if the folder is no
    backup.

    Args:
        path: The folder.
    """
    folder = local_path(path)
    try:
        with open_regular(folder / DATA_FILE) as data:
            size = os.fstat(data.fileno()).st_size
        loaded = read_json(_content(folder / META_FILE))
        sums = folder / SUMS_FILE
        line = _content(sums).decode() if sums.exists() else ""
    except (OSError, ValueError) as error:
        hint = _missing(folder)
        raise BadArgument(f"{folder} is no backup of a stream: {error}{hint}") from error
    members = cast("dict[str, Any]", loaded) if isinstance(loaded, dict) else {}
    try:
        config = decode(members["config"], StreamConfig)
        state = decode(members["state"], StreamState)
    except (DecodeError, KeyError, TypeError) as error:
        raise BadArgument(
            f"{folder / META_FILE} has no configuration and state: {error}"
        ) from error
    if not config.name:
        raise BadArgument(f"{folder / META_FILE}: the configuration has no name")
    return Backup(
        path=folder,
        config=config,
        state=state,
        size=size,
        sha256=line.split()[0] if line else None,
        members=members,
    )


def _content(path: Path) -> bytes:
    with open_regular(path) as file:
        return bounded(file)


def verify(backup: Backup) -> None:
    """Read the archive, and raise `BadArgument` if it is damaged or truncated."""
    file_path = backup.path / DATA_FILE
    found, frames = hashlib.sha256(), S2Frames()
    with open_regular(file_path) as file:
        while piece := file.read(_PIECE):
            found.update(piece)
            frames.feed(piece)
    if not frames.whole:
        reason = frames.trouble or "it is cut short"
        raise BadArgument(f"{file_path} is damaged: {reason}")
    if backup.sha256 not in {None, found.hexdigest()}:
        raise BadArgument(f"{file_path} is damaged: its checksum is not the one in {SUMS_FILE}")
