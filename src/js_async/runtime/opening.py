"""`Opening` and `Loop`: what methods return for `async with` and `async for`.

Part of the seam between the twins.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from js_async.runtime.concurrency import BlockHint, LoopHint

__all__ = ["Loop", "Opening", "looped", "opening", "opens"]

F = TypeVar("F", bound=Callable[..., AsyncGenerator[Any]])
M = TypeVar("M", bound=Callable[..., "Opening[Any]"])
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

        def __aiter__(self) -> object:
            self._unused()
            raise TypeError(
                "this is not open: await it, or use it in `async with`; then use `async for`"
            )

        def __getattr__(self, name: str) -> object:
            raise AttributeError(
                f"{name} is not available before this is open: await it, or use it in `async with`"
            )


def opening(work: Coroutine[Any, Any, T]) -> Opening[T]:
    """Return an `Opening` for the coroutine `work`, which opens an object and returns it."""
    return Opening(work)


def opens(method: M) -> M:
    """Mark a method that returns an `Opening`, so that `inspect.iscoroutinefunction` is True.

    Frameworks and documentation tools ask it which methods have to be awaited. The decorator
    returns the method itself, so a call costs the same as without it.
    """
    if sys.version_info >= (3, 12):
        return inspect.markcoroutinefunction(method)
    # Python 3.11 looks only at this flag of the code, as in `types.coroutine`. It does not decide
    # what a call does: that is the first instruction of the code.
    code = method.__code__
    method.__code__ = code.replace(co_flags=code.co_flags | inspect.CO_COROUTINE)
    return method


class Loop(AsyncGenerator[T], LoopHint):
    """The generator of the method `name`, whose errors name the right statement.

    `async for` uses the generator itself.
    """

    def __init__(self, name: str, items: AsyncGenerator[T]) -> None:
        self._name = name
        self._items = items

    def __aiter__(self) -> AsyncGenerator[T]:
        return self._items

    def asend(self, value: None) -> Coroutine[Any, Any, T]:
        """Resume the generator, like `generator.asend`."""
        return self._items.asend(value)

    def athrow(self, *error: Any) -> Coroutine[Any, Any, T]:
        """Raise an error in the generator, like `generator.athrow`."""
        return self._items.athrow(*error)

    def aclose(self) -> Coroutine[Any, Any, None]:
        """End the generator, like `generator.aclose`."""
        return self._items.aclose()

    def _name_in_errors(self) -> str:
        return f"{self._name}()"


def looped(method: F) -> F:
    """Wrap a method that returns a generator, so that wrong uses of it name the right statement."""

    @wraps(method)
    def made(*values: Any, **named: Any) -> Loop[Any]:
        return Loop(method.__name__, method(*values, **named))

    return made  # type: ignore[return-value]
