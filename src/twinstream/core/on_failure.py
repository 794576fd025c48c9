"""Context managers that act only if their block fails, is cancelled or is interrupted.

The twins of `AsyncOnFailure` and `AsyncOnError` are `OnFailure` and `OnError`. `OnFailure` is also
for functions of the asyncio twin that do not wait. An interrupt may occur before the block is
entered, so enter it before the change that it has to undo.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

__all__ = ["AsyncOnError", "AsyncOnFailure", "OnError", "OnFailure"]


class OnFailure:
    """Call `undo` if the block raises any exception. The exception then continues."""

    __slots__ = ("_undo",)

    def __init__(self, undo: Callable[[], object]) -> None:
        self._undo = undo

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._undo()


class OnError:
    """Call `handle` with the exception if the block raises one. The exception then continues."""

    __slots__ = ("_handle",)

    def __init__(self, handle: Callable[[BaseException], object]) -> None:
        self._handle = handle

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, *_: object) -> None:
        if error is not None:
            self._handle(error)


class AsyncOnFailure:
    """Await `undo()` if the block raises any exception. The exception then continues."""

    __slots__ = ("_undo",)

    def __init__(self, undo: Callable[[], Awaitable[object]]) -> None:
        self._undo = undo

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            await self._undo()


class AsyncOnError:
    """Await `handle(error)` if the block raises an exception. The exception then continues."""

    __slots__ = ("_handle",)

    def __init__(self, handle: Callable[[BaseException], Awaitable[object]]) -> None:
        self._handle = handle

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, kind: object, error: BaseException | None, *_: object) -> None:
        if error is not None:
            await self._handle(error)
