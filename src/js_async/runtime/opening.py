"""`Opening`: the return type of methods that open something. Part of the seam between the twins."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from js_async.runtime.concurrency import BlockHint

__all__ = ["Opening", "opening"]

T = TypeVar("T")


class Opening(Coroutine[Any, Any, T], BlockHint):
    """An object that is being opened: await it, or use it in `async with`, which closes it.

    The class has the interface of a coroutine, so that `create_task` and `asyncio.run` accept it.
    """

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._opened: Any = None

    def __await__(self) -> Generator[Any, None, T]:
        return self._work.__await__()

    def send(self, value: Any) -> Any:
        """Resume the coroutine, like `coroutine.send`."""
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an error in the coroutine, like `coroutine.throw`."""
        return self._work.throw(*error)

    def close(self) -> None:
        """End the coroutine, like `coroutine.close`. Does not close an object that is open."""
        self._work.close()

    def _unused(self) -> None:
        """Close the coroutine, which was never awaited, so that Python does not warn about it."""
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
    """Return an `Opening` for the coroutine `work`, which opens an object and returns it."""
    return Opening(work)
