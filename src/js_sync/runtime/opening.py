"""`opening` and `Loop`, the blocking counterparts of the asyncio twin's names.

Part of the seam between the twins.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import wraps
from typing import Any, TypeVar

from js_sync.runtime.concurrency import LoopHint

__all__ = ["Loop", "looped", "opening", "opens"]

F = TypeVar("F", bound=Callable[..., Generator[Any]])
M = TypeVar("M", bound=Callable[..., Any])
T = TypeVar("T")


def opening(work: T) -> T:
    """Return `work`. In this twin, it is the object, which is already open."""
    return work


def opens(method: M) -> M:
    """Return `method`. In this twin, it is an ordinary method, which returns an open object."""
    return method


class Loop(Generator[T], LoopHint):
    """The generator of the method `name`, whose errors name the right statement.

    `for` uses the generator itself.
    """

    def __init__(self, name: str, items: Generator[T]) -> None:
        self._name = name
        self._items = items

    def __iter__(self) -> Generator[T]:
        return self._items

    def send(self, value: None) -> T:
        """Resume the generator, like `generator.send`."""
        return self._items.send(value)

    def throw(self, *error: Any) -> T:
        """Raise an error in the generator, like `generator.throw`."""
        return self._items.throw(*error)

    def close(self) -> None:
        """End the generator, like `generator.close`."""
        self._items.close()

    def _name_in_errors(self) -> str:
        return f"{self._name}()"


def looped(method: F) -> F:
    """Wrap a method that returns a generator, so that wrong uses of it name the right statement."""

    @wraps(method)
    def made(*values: Any, **named: Any) -> Loop[Any]:
        return Loop(method.__name__, method(*values, **named))

    return made  # type: ignore[return-value]
