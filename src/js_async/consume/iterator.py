"""The base class of the iterators that end when they are closed."""

from __future__ import annotations

from typing import Final, Generic, Self, TypeVar

from js_async.client.closable import Closable
from js_async.consume.item_source import ItemSource, NothingInTime
from js_async.runtime.concurrency import BlockHint, LoopHint
from twinstream.core.deadline import NEVER, Deadline, Seconds
from twinstream.errors import IterationEnded

__all__ = ["Iteration"]

T = TypeVar("T")
Entered = TypeVar("Entered")


class Iteration(Closable, BlockHint, LoopHint, Generic[T]):
    """The base class of iterators that end when they are closed.

    An iterator has the methods for programs. Its `ItemSource` has the state and does the work.
    """

    def __init__(self, source: ItemSource[T]) -> None:
        super().__init__()
        self._source: Final = source

    @property
    def is_ended(self) -> bool:
        """Whether the iterator has ended, so that `next` would raise `IterationEnded`."""
        return self._source.is_ended

    @property
    def buffered(self) -> int:
        """The number of items that have arrived and were not taken."""
        return self._source.buffered

    def __repr__(self) -> str:
        state = "ended" if self.is_ended else f"{self.buffered} buffered"
        return f"<{type(self).__name__} {self._source.label}: {state}>"

    async def close(self) -> None:
        """End the iterator."""
        raise NotImplementedError

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """Return the next item; the iteration ends after `close`."""
        item = await self._source.take(NEVER)
        if item is None:
            raise StopAsyncIteration
        return item

    async def next(self, *, timeout: Seconds | None = None) -> T | None:
        """Return the next item, or None if none arrived in time.

        Args:
            timeout: The longest wait in seconds; None waits without limit.

        Raises:
            IterationEnded: The iterator has ended (check `is_ended` first).
            RequestTimeout: No item arrived in time because of an error, which is the cause.
        """
        try:
            item = await self._source.take(Deadline.after(timeout))
        except NothingInTime:
            return None
        if item is None:
            raise IterationEnded("the iteration has ended: it was drained or closed")
        return item

    async def __aenter__(self: Entered) -> Entered:
        # Not `Self`: the completion library `jedi` would then offer only this class's attributes.
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._is_parents:
            await self.close()
