"""Return type of calls that open something; part of the seam between the twins."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from js_async.runtime.concurrency import BlockHint

__all__ = ["Opening", "opening"]

T = TypeVar("T")


class Opening(Coroutine[Any, Any, T], BlockHint):
    """An object that is being opened: await it, or use it in `async with`, which closes it.

    The class implements the coroutine interface, so that `create_task` and `asyncio.run` accept it.
    """

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._opened: Any = None

    def __await__(self) -> Generator[Any, None, T]:
        return self._work.__await__()

    def send(self, value: Any) -> Any:
        """Resume the work, as for a coroutine."""
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        """Resume the work with an error, as for a coroutine."""
        return self._work.throw(*error)

    def close(self) -> None:
        """Stop the work, as for a coroutine. Whatever is open already stays open."""
        self._work.close()

    def _unused(self) -> None:
        """Close the coroutine that was never awaited, to suppress Python's own warning."""
        self._work.close()

    async def __aenter__(self) -> T:
        self._opened = await self._work
        return self._opened  # type: ignore[no-any-return]

    async def __aexit__(self, *error: Any) -> None:
        await self._opened.__aexit__(*error)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            raise AttributeError(
                f"{name} is not available before this is open: await it, or use it in `async with`"
            )


def opening(work: Coroutine[Any, Any, T]) -> Opening[T]:
    """Wrap the coroutine that opens an object."""
    return Opening(work)
