"""The lock on the tables of a pipeline: shared by its batches, exclusive for maintenance commands.

A source holds the shared lock while it starts, and while it lands or releases a batch. A
command such as `compact` first locks the gate file, so that no further batch begins. Then the
command waits until the current batches have ended, and gets the exclusive lock. The pipeline
continues when the command ends. When a process ends, even if it is killed, the operating system
releases its locks.

The files are those of one machine. A lake on an object store also has a lock there, for commands
and pipelines of several machines (`Lease`).
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Final, Protocol

from twinstream.lake.objects.lease import Lease, Phase
from twinstream.lake.objects.store import ObjectStore
from twinstream.spark.errors import PipelineBusy
from twinstream.spark.landing.lock import locked, refuse_busy, this_process
from twinstream.spark.pipeline.settings.folders import Folders

__all__ = ["ExclusiveLock", "TableLock"]

# Seconds between two attempts to get a lock.
_PAUSE: Final = 0.05


class ExclusiveLock(Protocol):
    """The exclusive lock while a command has it."""

    @property
    def is_taken_over(self) -> bool:
        """Whether the process that had the lock before may have slept, and still wants to write."""
        ...

    def settle(self) -> None:
        """Record that no earlier owner can change the tables or the journals any more."""
        ...

    def check(self) -> None:
        """Raise `StorageError` if this process may have the lock no longer."""
        ...

    def enter(self, phase: Phase) -> None:
        """Let batches that are planned be landed (`closing`), or not (`held`)."""
        ...


class _FileLock:
    """A lock of this machine alone, which the operating system takes from no process."""

    is_taken_over = False

    def settle(self) -> None:
        """Do nothing."""

    def check(self) -> None:
        """Do nothing."""

    def enter(self, phase: Phase) -> None:
        """Do nothing, because no batch is landed while the command has the lock."""


class TableLock:
    """The lock of one pipeline's tables."""

    def __init__(self, folders: Folders) -> None:
        self._root: Final = folders.lake
        self._maintenance: Final = folders.maintenance
        self._gate: Final = folders.gate
        self._tables: Final = folders.tables
        self._lease: Final = _lease_of(folders)

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
            if self._lease is not None:
                granted = granted and self._lease.lets_plan(is_to_end)
            yield granted

    def lets_land(self, is_to_end: Callable[[], bool]) -> bool:
        """Wait until the batch that is planned may be landed. The caller has the shared lock.

        Return false if `is_to_end` returns true before that. A command of another machine may have
        got the exclusive lock since the caller got the shared one.
        """
        return self._lease is None or self._lease.lets_land(is_to_end)

    def user(self) -> str | None:
        """Return the purpose of the command that has the exclusive lock, or `None` if none has."""
        try:
            refuse_busy(self._maintenance, self._root)
        except PipelineBusy as busy:
            return busy.user
        return None if self._lease is None else self._lease.user()

    @contextmanager
    def alone(self, purpose: str, *, waits: bool = True) -> Generator[ExclusiveLock]:
        """Hold the exclusive lock for the block, after the current batches have ended.

        While another command has the lock, wait for it, or without `waits` raise `PipelineBusy`.
        `purpose` describes this command to other commands.
        """
        with (
            self._turn(purpose, waits=waits),
            _opened(self._gate) as gate,
            _opened(self._tables) as tables,
        ):
            for file in (gate, tables):
                _acquired(file, fcntl.LOCK_EX, lambda: False)
            if self._lease is None:
                yield _FileLock()
                return
            with self._lease.held(this_process(purpose), lambda _: waits) as lease:
                if lease is None:
                    raise PipelineBusy.of(self._root, self._lease.user() or "another process")
                yield lease

    @contextmanager
    def _turn(self, purpose: str, *, waits: bool) -> Generator[None]:
        """Lock the file of commands for the block, after those that have it."""
        with ExitStack() as stack:
            while True:
                try:
                    stack.enter_context(locked(self._maintenance, self._root, purpose))
                    break
                except PipelineBusy:
                    if not waits:
                        raise
                time.sleep(_PAUSE)
            yield


def _lease_of(folders: Folders) -> Lease | None:
    store, lake = folders.store, folders.bucket
    if lake is None or not isinstance(store, ObjectStore):
        return None
    return Lease(store, lake.storage.lease)


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
