"""The lock on the tables of a pipeline: shared by its batches, exclusive for maintenance commands.

A source holds the shared lock while it starts, and while it lands or releases a batch. A
command such as `compact` first locks the gate file, so that no further batch begins. Then the
command waits until the current batches have ended, and gets the exclusive lock. The pipeline
continues when the command ends. When a process ends, even if it is killed, the operating system
releases its locks.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Final

from twinstream.spark.landing.lock import locked
from twinstream.spark.pipeline.settings.folders import Folders

__all__ = ["TableLock"]

# Seconds between two attempts to get a lock.
_PAUSE: Final = 0.05


class TableLock:
    """The lock of one pipeline's tables."""

    def __init__(self, folders: Folders) -> None:
        self._root: Final = folders.lake
        self._maintenance: Final = folders.maintenance
        self._gate: Final = folders.gate
        self._tables: Final = folders.tables

    @contextmanager
    def shared(self, is_to_end: Callable[[], bool]) -> Generator[bool]:
        """Hold the shared lock for the block, and yield whether the lock was acquired.

        The lock is not acquired if `is_to_end` returns true during the wait for it.
        """
        with ExitStack() as stack:
            with _opened(self._gate) as gate:
                granted = _acquired(gate, fcntl.LOCK_SH, is_to_end)
                if granted:
                    tables = stack.enter_context(_opened(self._tables))
                    granted = _acquired(tables, fcntl.LOCK_SH, is_to_end)
            yield granted

    @contextmanager
    def alone(self, purpose: str) -> Generator[None]:
        """Hold the exclusive lock for the block, after the current batches have ended.

        Raises `PipelineBusy` while another command has the lock. `purpose` describes this command
        in the errors of other commands.
        """
        with (
            locked(self._maintenance, self._root, purpose),
            _opened(self._gate) as gate,
            _opened(self._tables) as tables,
        ):
            for file in (gate, tables):
                _acquired(file, fcntl.LOCK_EX, lambda: False)
            yield


@contextmanager
def _opened(file: Path) -> Generator[IO[str]]:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+", encoding="utf-8") as opened:
        yield opened


def _acquired(file: IO[str], kind: int, is_to_end: Callable[[], bool]) -> bool:
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if is_to_end():
                return False
            time.sleep(_PAUSE)
        else:
            return True
