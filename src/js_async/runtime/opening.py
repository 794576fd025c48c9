"""The seam: what a call returns that opens something.

A module of its own, for editors: jedi takes every module named `_io` for the one of Python.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from js_async.runtime.concurrency import BlockHint

__all__ = ["Opening", "opening"]

T = TypeVar("T")


class Opening(Coroutine[Any, Any, T], BlockHint):
    """Something being opened: await it, or use it in `async with`, which closes it.

    It is a coroutine, so that `create_task` and `asyncio.run` take it as well.
    """

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._opened: Any = None

    def __await__(self) -> Generator[Any, None, T]:
        return self._work.__await__()

    def send(self, value: Any) -> Any:
        """Go on with the work; as of a coroutine."""
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        """Go on with an error; as of a coroutine."""
        return self._work.throw(*error)

    def close(self) -> None:
        """End the work where it is; as of a coroutine. Nothing that was opened is closed."""
        self._work.close()

    def _unused(self) -> None:
        """Close the work, which has not begun, so that Python does not warn of it."""
        self._work.close()

    async def __aenter__(self) -> T:
        self._opened = await self._work
        return self._opened  # type: ignore[no-any-return]

    async def __aexit__(self, *error: Any) -> None:
        await self._opened.__aexit__(*error)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            raise AttributeError(
                f"{name} is not there before this is open: await it, or use it in `async with`"
            )


def opening(work: Coroutine[Any, Any, T]) -> Opening[T]:
    """Return the thing being opened."""
    return Opening(work)
