"""The relay's calls to its outbox, in a thread if necessary.

Some errors are temporary, for example if the database is locked or its disk is full. The relay
repeats the call after such an error. Other errors, for example of an SQL statement, end the relay.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Final, TypeVar

from js_async.outbox.store import OutboxStore
from js_async.runtime.concurrency import whole
from twinstream.errors import TwinstreamError

__all__ = ["StoreCalls", "StoreTrouble"]

T = TypeVar("T")

_PASSING: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_PROTOCOL,
    }
)
# The lower byte of an SQLite error code is the primary code, for example `SQLITE_IOERR`.
_KIND: Final = 0xFF


class StoreTrouble(TwinstreamError):
    """A temporary error of the outbox: it cannot be used now."""


class StoreCalls:
    """The calls to one store. They raise `StoreTrouble` for temporary errors of the store.

    All other errors of the store are raised unchanged. A cancellation takes effect only after the
    store has returned, so that a claim can be released.
    """

    def __init__(self, store: OutboxStore) -> None:
        self._store: Final = store
        self._claimed = False

    async def claim(self) -> bool:
        """Claim the outbox for this relay if necessary; return whether the relay has the claim."""
        return self._claimed or await self.call(self._claim)

    async def release(self) -> None:
        """End the claim of the outbox, even if `claim` was cancelled after it succeeded."""
        if self._claimed:
            await self.call(self._release)

    def _claim(self, store: OutboxStore) -> bool:
        self._claimed = store.claim()
        return self._claimed

    def _release(self, store: OutboxStore) -> None:
        self._claimed = False
        store.release()

    async def call(self, work: Callable[[OutboxStore], T]) -> T:
        """Call `work` with the store and return its result."""
        try:
            return await whole(lambda: work(self._store))
        except (sqlite3.OperationalError, OSError) as error:
            if not _passes(error):
                raise
            raise StoreTrouble(f"the outbox cannot be used now: {error}") from error


def _passes(error: sqlite3.OperationalError | OSError) -> bool:
    if isinstance(error, OSError):
        return True
    # Errors that Python's `sqlite3` module raises by itself have no code. They are not temporary.
    return getattr(error, "sqlite_errorcode", 0) & _KIND in _PASSING
