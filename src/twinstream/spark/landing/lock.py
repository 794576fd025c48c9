"""A lock that allows one process at a time to write to a folder of tables."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from twinstream.spark.errors import PipelineBusy

__all__ = ["locked"]


@contextmanager
def locked(lock: Path, folder: Path, purpose: str) -> Generator[None]:
    """Hold the lock of a folder for the block.

    Raises `PipelineBusy` if another process has the lock; the error names that process and its
    purpose. ``lock`` is the file that is locked, and ``purpose`` is shown to other processes. The
    operating system releases the lock when the process ends, even if it is killed.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read(1000).strip() or "another process"
            raise PipelineBusy(
                f"{folder} is in use by {holder}; wait until it has ended, or stop it"
            ) from None
        file.truncate(0)
        file.write(f"'{purpose}' (process {os.getpid()})")
        file.flush()
        yield
