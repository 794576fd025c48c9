# Generated from src/js_async/consume/iterator.py by codegen/twin.py. Edit that file instead.
"""What all endless iterations have in common: iterate, take one in time, close with a block."""

from __future__ import annotations

from typing import Final, Generic, Self, TypeVar

from twinstream.core.deadline import NEVER, Deadline, Seconds
from twinstream.errors import IterationEnded, RequestTimeout
from js_sync.runtime.concurrency import BlockHint, LoopHint, TimedLock
from js_sync.client.owned import Owned

__all__ = ["Iteration"]

T = TypeVar("T")
Entered = TypeVar("Entered")

# Longer than a caller needs to take what is buffered (seconds).
_MOVING: Final = 1.0


class Iteration(Owned, BlockHint, LoopHint, Generic[T]):
    """The base of iterations that end when they are closed; a subclass says how to take one.

    Several threads or tasks may take from one iteration. They do it one at a time: the state of an
    iteration has one owner at any moment, and what one of them moves into a buffer the next one
    finds there.
    """

    def __init__(self, source: str) -> None:
        super().__init__()
        self._source: Final = source
        self._taking = TimedLock()

    @property
    def is_ended(self) -> bool:
        """Tell whether `next` would raise `IterationEnded`: closed, or at its end."""
        raise NotImplementedError

    def _take(self, deadline: Deadline) -> T | None:
        """Return the next one, or None when the iteration has ended.

        Raises `RequestTimeout` when none came before the deadline.
        """
        lock, held = self._taking, False
        try:
            held = lock.try_acquire() or self._acquire(deadline)
            return self._take_next(deadline)
        finally:
            lock.release(held)

    def _acquire(self, deadline: Deadline) -> bool:
        """Wait for the turn to take; raises `RequestTimeout`."""
        if self._taking.acquire(deadline):
            return True
        # Another caller may be just taking one: the next one is for this caller.
        if self.buffered and self._taking.acquire(Deadline.after(_MOVING)):
            return True
        raise RequestTimeout("nothing came in time: others wait for this iteration, too")

    @property
    def buffered(self) -> int:
        """How many arrived and were not handed over."""
        raise NotImplementedError

    def __repr__(self) -> str:
        state = "ended" if self.is_ended else f"{self.buffered} buffered"
        return f"<{type(self).__name__} {self._source}: {state}>"

    def _take_next(self, deadline: Deadline) -> T | None:
        """Do as `_take`; one caller at a time is in it."""
        raise NotImplementedError

    def close(self) -> None:
        """End the iteration."""
        raise NotImplementedError

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        """Return the next one; the iteration ends after `close`."""
        item = self._take(NEVER)
        if item is None:
            raise StopIteration
        return item

    def next(self, timeout: Seconds | None = None) -> T:
        """Return the next one within `timeout` seconds; None waits without limit.

        Raises `RequestTimeout`, and `IterationEnded` after the end (ask `is_ended` first).
        """
        item = self._take(Deadline.after(timeout))
        if item is None:
            raise IterationEnded("the iteration has ended: it was drained or closed")
        return item

    def __enter__(self: Entered) -> Entered:
        # Not `Self`: jedi would complete what the base has, not what the subclass has.
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_parents:
            self.close()
