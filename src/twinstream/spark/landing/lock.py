"""A lock for one writer at a time on a folder of tables; it ends with its process."""

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
    """Hold the lock of a folder, or raise `PipelineBusy`, which names the holder.

    ``lock`` is the file that is locked; ``purpose`` is shown to other processes. The operating
    system releases the lock when the process ends, also if it is killed.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            raise PipelineBusy(
                f"{folder} is in use by {holder}; wait until it has ended, or stop it"
            ) from None
        file.truncate(0)
        file.write(f"'{purpose}' (process {os.getpid()})")
        file.flush()
        yield
