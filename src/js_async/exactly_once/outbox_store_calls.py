"""The calls of a relay to its outbox: beside other work, and with the outbox's own troubles told.

A database that is locked by somebody, or whose disk is full, is trouble that passes, as a server
that is away. An error in a statement or in the store itself is not.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Final, TypeVar

from js_async.runtime.concurrency import whole
from js_async.exactly_once.outbox_store import OutboxStore
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
# The lower byte of a code is its kind, the rest says more.
_KIND: Final = 0xFF


class StoreTrouble(TwinstreamError):
    """The outbox cannot do its work now."""


class StoreCalls:
    """Calls a store; raises `StoreTrouble` for what passes, and other errors as they are.

    A cancellation during a call takes effect when the call has returned, so that what it claimed
    can be released.
    """

    def __init__(self, store: OutboxStore) -> None:
        self._store: Final = store
        self._claimed = False

    async def claim(self) -> bool:
        """Become the only relay; nothing happens when it is already."""
        return self._claimed or await self.call(self._claim)

    async def release(self) -> None:
        """Let another relay work, also after a claim whose outcome nobody waited for."""
        if self._claimed:
            await self.call(self._release)

    def _claim(self, store: OutboxStore) -> bool:
        self._claimed = store.claim()
        return self._claimed

    def _release(self, store: OutboxStore) -> None:
        self._claimed = False
        store.release()

    async def call(self, work: Callable[[OutboxStore], T]) -> T:
        """Return what `work` returns, which is called with the store."""
        try:
            return await whole(lambda: work(self._store))
        except (sqlite3.OperationalError, OSError) as error:
            if not _passes(error):
                raise
            raise StoreTrouble(f"the outbox cannot be used now: {error}") from error


def _passes(error: sqlite3.OperationalError | OSError) -> bool:
    if isinstance(error, OSError):
        return True
    # Errors that the module raises by itself have no code.
    return getattr(error, "sqlite_errorcode", 0) & _KIND in _PASSING
