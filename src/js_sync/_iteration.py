# Generated from src/js_async/_iteration.py by codegen/twin.py. Edit that file instead.
"""What all endless iterations have in common: iterate, take one in time, close with a block."""

from __future__ import annotations

from typing import Generic, Self, TypeVar

from js_core.deadline import NEVER, Deadline, Seconds
from js_core.errors import BadArgument
from js_sync._io import BlockHint, LoopHint

__all__ = ["Iteration"]

T = TypeVar("T")


class Iteration(BlockHint, LoopHint, Generic[T]):
    """The base of iterations that end when they are closed; a subclass says how to take one."""

    def take(self, deadline: Deadline) -> T | None:
        """Return the next one, or None when the iteration has ended.

        Raises `RequestTimeout` when none came before the deadline.
        """
        raise NotImplementedError

    def close(self) -> None:
        """End the iteration."""
        raise NotImplementedError

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        """Return the next one; the iteration ends after `close`."""
        item = self.take(NEVER)
        if item is None:
            raise StopIteration
        return item

    def next(self, timeout: Seconds | None = None) -> T:
        """Return the next one within `timeout` seconds; None waits for ever.

        Raises `RequestTimeout`, and `BadArgument` when the iteration has ended.
        """
        item = self.take(Deadline.after(timeout))
        if item is None:
            raise BadArgument("the iteration has ended: it was drained or closed")
        return item

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
