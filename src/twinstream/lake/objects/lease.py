"""A lock in a store on S3: an object that says who has it, and for how long.

The owner writes the object again and again. A process that sees the object unchanged for the time
of a lease takes the lock over. Each process measures times with its own clock, so the clocks of
machines may differ. The owner measures from before its last write, so its lease ends before another
process may take the lock. A write that replaces the object names the ETag of the one that it
replaces, so of several processes, one gets the lock. The object is never deleted.

An owner that has slept could still want to commit. So it must call `check` between reading a table
and its commit, which must fail if the table has got another version since. A process that takes the
lock over gives each table another version, before it reads the tables.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, Literal, TypeAlias

from attrs import asdict, evolve, frozen

from twinstream.core.deadline import unsleeping
from twinstream.lake.errors import JournalError, StorageError
from twinstream.lake.objects.store import ObjectStore
from twinstream.lake.store import KeyTaken
from twinstream.lake.stored_members import checked_members

__all__ = ["HeldLease", "Lease", "Phase"]

# Writes of the owner during a lease.
_WRITES: Final = 3

# Seconds between two looks at the object of another owner.
_PAUSE: Final = 0.5

# The name of the object.
_KEY: Final = "maintenance.json"

Phase: TypeAlias = Literal["", "closing", "held"]
"""What the owner lets others do: with `closing`, no batch begins; with `held`, no planned batch is
landed either. It is empty if the lock is free."""


@frozen
class _Lock:
    """The content of the object. Each write has another `beat`, so that each has another ETag.

    `seconds` is the time for which an owner that does not write the object has the lock.
    """

    number: int = 0
    owner: str = ""
    purpose: str = ""
    seconds: float = 0.0
    phase: str = ""
    is_taken_over: bool = False
    beat: int = 0

    @classmethod
    def from_json(cls, data: bytes) -> _Lock:
        try:
            value: Any = json.loads(data)
            return cls(**checked_members(cls, value))
        except (ValueError, TypeError, AttributeError) as error:
            raise JournalError(
                f"{_KEY} in the journal cannot be read ({error}); another program changed it:"
                " remove it while no command works on the tables"
            ) from error

    @property
    def data(self) -> bytes:
        return json.dumps(asdict(self)).encode()


class _Watch:
    """Looks at the object, and finds out whether its owner still writes it."""

    def __init__(self, store: ObjectStore) -> None:
        self._store: Final = store
        self._seen: _Lock | None = None
        self._since = 0.0

    def look(self) -> tuple[_Lock, str | None, bool]:
        """Return the content and the ETag of the object, and whether an owner has the lock."""
        found = self._store.tagged(_KEY)
        lock, etag = (_Lock(), None) if found is None else (_Lock.from_json(found[0]), found[1])
        now = unsleeping()
        if lock != self._seen:
            self._seen, self._since = lock, now
        return lock, etag, bool(lock.owner) and now - self._since < lock.seconds


class Lease:
    """The lock of the lake whose journals are in a store. A lease has so many `seconds`."""

    def __init__(self, store: ObjectStore, seconds: float) -> None:
        self._store: Final = store
        self._seconds: Final = seconds
        # Kept for all batches: of a command that was killed, only the first one waits.
        self._watch: Final = _Watch(store)

    def user(self) -> str | None:
        """Return the purpose of the owner, or `None` if the lock is free.

        A process that is gone is the owner until this object has seen it unchanged for a lease.
        """
        lock, _, is_owned = self._watch.look()
        return lock.purpose if is_owned else None

    def lets_plan(self, is_to_end: Callable[[], bool]) -> bool:
        """Wait until a batch may be planned. Return false if `is_to_end` returns true before."""
        return self._waited(is_to_end, ("closing", "held"))

    def lets_land(self, is_to_end: Callable[[], bool]) -> bool:
        """Wait until a batch that is planned may be landed. Return false as `lets_plan` does."""
        return self._waited(is_to_end, ("held",))

    def _waited(self, is_to_end: Callable[[], bool], phases: tuple[Phase, ...]) -> bool:
        while True:
            lock, _, is_owned = self._watch.look()
            if not is_owned or lock.phase not in phases:
                return True
            if is_to_end():
                return False
            time.sleep(_PAUSE)

    @contextmanager
    def held(self, purpose: str, wait: Callable[[str], bool]) -> Generator[HeldLease | None]:
        """Hold the lock for the block.

        While another process has the lock, `wait` is called with its purpose. If it returns false,
        the value of the block is `None`.
        """
        lease = self._acquired(purpose, wait)
        if lease is None:
            yield None
            return
        with lease:
            yield lease

    def _acquired(self, purpose: str, wait: Callable[[str], bool]) -> HeldLease | None:
        self._store.check_replace()
        watch = _Watch(self._store)
        while True:
            lock, etag, is_owned = watch.look()
            if is_owned:
                if not wait(lock.purpose):
                    return None
                time.sleep(_PAUSE)
                continue
            began = unsleeping()
            # Without the object, nothing is known about earlier owners: perhaps it was removed.
            is_taken_over = etag is None or bool(lock.owner) or lock.is_taken_over
            own = _Lock(
                lock.number + 1,
                uuid.uuid4().hex,
                purpose,
                self._seconds,
                "closing",
                is_taken_over,
            )
            try:
                new = self._store.replace(_KEY, own.data, etag)
            except KeyTaken:
                continue  # another process was faster
            return HeldLease(self._store, own, new, began)


class HeldLease:
    """The lock while this process has it. A thread renews it."""

    def __init__(self, store: ObjectStore, lock: _Lock, etag: str, began: float) -> None:
        self._store: Final = store
        self._lock = lock
        self._etag = etag
        self._until = began + lock.seconds
        self._writing: Final = threading.Lock()
        self._is_over: Final = threading.Event()
        self._thread: Final = threading.Thread(
            target=self._renew, name="twinstream-lease", daemon=True
        )

    @property
    def is_taken_over(self) -> bool:
        """Whether an owner before this one may have slept, and may still want to commit.

        This is so until a call of `settle`, also for later owners.
        """
        return self._lock.is_taken_over

    def settle(self) -> None:
        """Record that no earlier owner can change the tables or the journals any more."""
        self._write(is_taken_over=False)

    def check(self) -> None:
        """Raise `StorageError` if this process may have the lock no longer."""
        if unsleeping() < self._until:
            found = self._store.get(_KEY)
            if found is not None and _Lock.from_json(found).owner == self._lock.owner:
                return
        raise StorageError(
            f"the lock of the tables was lost, because {_KEY} in the journal could not be written"
            f" for {self._lock.seconds:g} s; another command may work on the tables now, and"
            " nothing more was changed: run this one again"
        )

    def enter(self, phase: Phase) -> None:
        """Let other processes see another phase. Raises as `check` does."""
        self._write(phase=phase)
        self.check()

    def _write(self, **changes: Any) -> None:
        with self._writing:
            began = unsleeping()
            changed = evolve(self._lock, beat=self._lock.beat + 1, **changes)
            try:
                self._etag = self._store.replace(_KEY, changed.data, self._etag)
            except KeyTaken:
                self._until = 0.0  # another process has the lock
                return
            self._lock, self._until = changed, began + changed.seconds

    def _renew(self) -> None:
        while not self._is_over.wait(self._lock.seconds / _WRITES):
            try:
                self._write()
            except StorageError as error:
                logging.getLogger("twinstream.pipeline").warning("lock not renewed: %s", error)
            if unsleeping() >= self._until:
                return

    def __enter__(self) -> HeldLease:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Free the lock. If the server does not answer, the lease ends by itself."""
        self._is_over.set()
        self._thread.join()
        try:
            self._write(owner="", purpose="", phase="")
        except StorageError:
            pass
