"""A lock that allows one process at a time to write to a folder of tables."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.errors import PipelineBusy

__all__ = ["locked", "refuse_busy", "this_process"]

# Attempts to get the lock, and the seconds between them. `refuse_busy` of another process has the
# lock for a moment.
_ATTEMPTS: Final = 5
_PAUSE: Final = 0.02


@contextmanager
def locked(lock: Path, folder: Path | ObjectFolder, purpose: str) -> Generator[None]:
    """Hold the lock of a folder for the block.

    Raises `PipelineBusy` if another process has the lock; the error names that process and its
    purpose. `lock` is the file that is locked, and `purpose` is shown to other processes. The
    operating system releases the lock when the process ends, even if it is killed.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a+", encoding="utf-8") as file:
        _acquire(file, fcntl.LOCK_EX, folder)
        file.truncate(0)
        file.write(this_process(purpose))
        file.flush()
        yield


def this_process(purpose: str) -> str:
    """Return how other processes name this one."""
    return f"'{purpose}' (process {os.getpid()} of {socket.gethostname()})"


def refuse_busy(lock: Path, folder: Path | ObjectFolder) -> None:
    """Raise `PipelineBusy` if another process has the lock of a folder, as `locked` does.

    A command calls this before slow work, such as the start of Spark, and calls `locked` after it.
    """
    if lock.exists():
        with lock.open("a+", encoding="utf-8") as file:
            _acquire(file, fcntl.LOCK_SH, folder)


def _acquire(file: IO[str], kind: int, folder: Path | ObjectFolder) -> None:
    """Lock a file, with a few attempts. Raises `PipelineBusy` with the purpose in the file."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt < _ATTEMPTS:
                time.sleep(_PAUSE)
        else:
            return
    file.seek(0)
    raise PipelineBusy.of(folder, file.read(1000).strip() or "another process")
