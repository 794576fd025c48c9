"""The base class of the iterators that end when they are closed."""

from __future__ import annotations

from typing import Final, Generic, Self, TypeVar

from js_async.client.owned import Owned
from js_async.runtime.concurrency import BlockHint, LoopHint, TimedLock
from twinstream.core.deadline import NEVER, Deadline, Seconds
from twinstream.errors import IterationEnded, RequestTimeout

__all__ = ["Iteration"]

T = TypeVar("T")
Entered = TypeVar("Entered")

# The longest wait for another caller that is taking a buffered item (seconds).
_MOVING: Final = 1.0


class Iteration(Owned, BlockHint, LoopHint, Generic[T]):
    """The base class of iterators that end when they are closed.

    Subclasses define `_take_next`, `is_ended`, `buffered` and `close`.

    Several threads or tasks may share one iterator. A lock lets only one of them take an item at a
    time, so subclasses need no lock for their state.
    """

    def __init__(self, source: str) -> None:
        super().__init__()
        self._source: Final = source
        self._taking = TimedLock()

    @property
    def is_ended(self) -> bool:
        """Whether the iterator has ended, so that `next` would raise `IterationEnded`."""
        raise NotImplementedError

    async def _take(self, deadline: Deadline) -> T | None:
        """Return the next item, or None when the iterator has ended.

        Raises `RequestTimeout` if no item arrived before the deadline.
        """
        lock, held = self._taking, False
        try:
            held = lock.try_acquire() or await self._acquire(deadline)
            return await self._take_next(deadline)
        finally:
            lock.release(held)

    async def _acquire(self, deadline: Deadline) -> bool:
        """Wait for the lock that allows taking an item. Raises `RequestTimeout` at the deadline."""
        if await self._taking.acquire(deadline):
            return True
        # Another caller holds the lock. Items are buffered, so that caller needs the lock only for
        # a moment: wait for it beyond the deadline.
        if self.buffered and await self._taking.acquire(Deadline.after(_MOVING)):
            return True
        raise RequestTimeout("no item in time: other callers wait for this iterator, too")

    @property
    def buffered(self) -> int:
        """The number of items that have arrived and were not taken."""
        raise NotImplementedError

    def __repr__(self) -> str:
        state = "ended" if self.is_ended else f"{self.buffered} buffered"
        return f"<{type(self).__name__} {self._source}: {state}>"

    async def _take_next(self, deadline: Deadline) -> T | None:
        """Return the next item as `_take` does. Only one caller at a time runs this."""
        raise NotImplementedError

    async def close(self) -> None:
        """End the iterator."""
        raise NotImplementedError

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """Return the next item; the iteration ends after `close`."""
        item = await self._take(NEVER)
        if item is None:
            raise StopAsyncIteration
        return item

    async def next(self, timeout: Seconds | None = None) -> T:
        """Return the next item.

        Args:
            timeout: The longest wait in seconds; None waits without limit.

        Raises:
            RequestTimeout: No item arrived in time.
            IterationEnded: The iterator has ended (check `is_ended` first).
        """
        item = await self._take(Deadline.after(timeout))
        if item is None:
            raise IterationEnded("the iteration has ended: it was drained or closed")
        return item

    async def __aenter__(self: Entered) -> Entered:
        # Not `Self`: the completion library `jedi` would then offer only this class's attributes.
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._is_parents:
            await self.close()
