"""Base of the endless iterators: iterate, take one with a timeout, close as a context manager."""

from __future__ import annotations

from typing import Final, Generic, Self, TypeVar

from js_async.client.owned import Owned
from js_async.runtime.concurrency import BlockHint, LoopHint, TimedLock
from twinstream.core.deadline import NEVER, Deadline, Seconds
from twinstream.errors import IterationEnded, RequestTimeout

__all__ = ["Iteration"]

T = TypeVar("T")
Entered = TypeVar("Entered")

# Longer than a caller needs to take a buffered item (seconds).
_MOVING: Final = 1.0


class Iteration(Owned, BlockHint, LoopHint, Generic[T]):
    """Base of iterators that end when they are closed. Subclasses implement `_take_next`.

    Several threads or tasks may take items from one iterator. They do so one at a time, so that its
    state has one owner at any moment. What one of them buffers is found by the next one.
    """

    def __init__(self, source: str) -> None:
        super().__init__()
        self._source: Final = source
        self._taking = TimedLock()

    @property
    def is_ended(self) -> bool:
        """Whether `next` would raise `IterationEnded`: it is closed, or at its end."""
        raise NotImplementedError

    async def _take(self, deadline: Deadline) -> T | None:
        """Return the next item, or None when the iterator has ended.

        Raises `RequestTimeout` if none arrived before the deadline.
        """
        lock, held = self._taking, False
        try:
            held = lock.try_acquire() or await self._acquire(deadline)
            return await self._take_next(deadline)
        finally:
            lock.release(held)

    async def _acquire(self, deadline: Deadline) -> bool:
        """Wait for the turn to take an item; raises `RequestTimeout`."""
        if await self._taking.acquire(deadline):
            return True
        # Another caller may be taking an item just now; the next buffered one is for this caller.
        if self.buffered and await self._taking.acquire(Deadline.after(_MOVING)):
            return True
        raise RequestTimeout("no item in time: other callers wait for this iterator, too")

    @property
    def buffered(self) -> int:
        """Number of items that have arrived and were not handed over."""
        raise NotImplementedError

    def __repr__(self) -> str:
        state = "ended" if self.is_ended else f"{self.buffered} buffered"
        return f"<{type(self).__name__} {self._source}: {state}>"

    async def _take_next(self, deadline: Deadline) -> T | None:
        """Do the work of `_take`; only one caller at a time runs it."""
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
        """Return the next item within `timeout` seconds; None waits without limit.

        Raises `RequestTimeout`, and `IterationEnded` after the end (check `is_ended` first).
        """
        item = await self._take(Deadline.after(timeout))
        if item is None:
            raise IterationEnded("the iteration has ended: it was drained or closed")
        return item

    async def __aenter__(self: Entered) -> Entered:
        # Not `Self`: jedi would complete the base's attributes instead of the subclass's.
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._is_parents:
            await self.close()
