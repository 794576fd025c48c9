"""A wait of a task in the asyncio twin. `fast.py` has the version that connections use."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Final, Protocol

__all__ = ["Waiter", "Wakeable"]


class Wakeable(Protocol):
    """A wait that ends when its signal is set."""

    def wake(self) -> None:
        """End the wait, unless it has ended."""
        ...


class Waiter:
    """A single wait of a task, which resumes in the next iteration of the loop."""

    __slots__ = ("_future",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._future: Final[asyncio.Future[None]] = loop.create_future()

    def wake(self) -> None:
        """End the wait, unless it has ended."""
        if not self._future.done():
            self._future.set_result(None)

    def __await__(self) -> Generator[object, None, None]:
        return self._future.__await__()
