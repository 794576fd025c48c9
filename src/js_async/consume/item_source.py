"""The base class of the objects from which several callers take items, one caller at a time."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from js_async.client.closable import Closable
from js_async.runtime.concurrency import Caller, Signal, TimedLock
from twinstream.core.deadline import Deadline
from twinstream.errors import RequestTimeout

__all__ = ["ItemSource", "NothingInTime"]

T = TypeVar("T")

# The longest wait for another caller that is taking a buffered item (seconds).
_MOVING: Final = 1.0
# The interval in which a draining connection looks whether all items were taken (seconds).
_LOOK: Final = 0.01


class NothingInTime(RequestTimeout):
    """No item arrived before the deadline, and nothing is known to be wrong.

    `next` of an iterator returns None then. Another `RequestTimeout` names what went wrong.
    """


class ItemSource(Closable, Generic[T]):
    """A source of items, which tasks or threads share until it is closed.

    Subclasses define `_take_next`, `is_ended`, `buffered` and `close`. A lock lets only one caller
    at a time run `_take_next`, so subclasses need no lock for the state that it uses.
    """

    def __init__(self, label: str) -> None:
        super().__init__()
        self.label: Final = label
        """Where the items come from, for the text of the public object."""
        self.turn: Final = TimedLock()
        """The lock that a caller holds while it takes an item."""
        # The callers that have not seen the end. Those that found an item buffered may be missing.
        self._takers: dict[int, Caller] = {}
        self._is_left = False

    @property
    def is_ended(self) -> bool:
        """Whether the source has ended, so that `take` would return None or raise its error."""
        raise NotImplementedError

    @property
    def buffered(self) -> int:
        """The number of items that have arrived and were not taken."""
        raise NotImplementedError

    def take_nowait(self) -> T | None:
        """Return an item if one can be taken at once and without the lock, else None.

        After None, an item may still be buffered: `take` finds it.
        """
        return None

    async def take(self, deadline: Deadline) -> T | None:
        """Return the next item, or None when the source has ended.

        Raises `NothingInTime` if no item arrived before the deadline. If the reason is known,
        another `RequestTimeout` names it.
        """
        item = self.take_nowait()
        if item is not None:
            return item
        lock, has_turn, item = self.turn, False, None
        caller = Caller()
        self._takers[caller.key] = caller
        try:
            has_turn = lock.try_acquire() or await self.acquire(deadline)
            item = await self._take_next(deadline)
        finally:
            lock.release(has_turn)
            if item is None and self.is_ended:
                self._takers.pop(caller.key, None)
        return item

    async def acquire(self, deadline: Deadline) -> bool:
        """Wait for the lock `turn`. Raises `NothingInTime` at the deadline."""
        if await self.turn.acquire(deadline):
            return True
        # Another caller holds the lock. Items are buffered, so that caller needs the lock only for
        # a moment: wait for it beyond the deadline.
        if self.buffered and await self.turn.acquire(Deadline.after(_MOVING)):
            return True
        raise NothingInTime("no item in time: other callers wait for this iterator, too")

    async def _take_next(self, deadline: Deadline) -> T | None:
        """Return the next item as `take` does. Only one caller at a time runs this."""
        raise NotImplementedError

    async def drained(self, deadline: Deadline) -> None:
        """Wait until the items that have arrived were taken, and their callers came back for more.

        A caller that is busy with its last item then acknowledges it before the connection closes.
        The wait also ends at the deadline, and if no caller can take the items: all have ended, or
        the only one waits here.
        """
        never = Signal()
        while not self._is_left and not deadline.expired():
            callers = list(self._takers.values())
            if not (any(each.may_call_again() for each in callers) if callers else self.buffered):
                break
            await never.sleep(Deadline.after(_LOOK))
        if self.buffered:
            await self.close()

    def _note_closed(self) -> None:
        """Record that the source was closed, so that `drained` does not wait."""
        self._is_left = True

    async def close(self) -> None:
        """End the source."""
        raise NotImplementedError
