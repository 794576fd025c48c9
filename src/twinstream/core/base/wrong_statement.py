"""Errors that name the right statement, for objects used in a `with` or `for` of the wrong kind.

Classes of `js_async` inherit from `AsyncBlock` and `AsyncLoop`, classes of `js_sync` from
`SyncBlock` and `SyncLoop`. The methods of these base classes are hidden from type checkers, which
would otherwise accept the wrong statement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

__all__ = ["AsyncBlock", "AsyncLoop", "SyncBlock", "SyncLoop"]


class _Hint:
    """The base class, which raises the error for the wrong statement."""

    def _unused(self) -> None:
        """Release the resources of the object before the error. Subclasses may override this."""

    def _refuse(self, wrong: str, right: str) -> NoReturn:
        self._unused()
        name = type(self).__name__
        raise TypeError(f"{name} needs {right!r}: write {right!r} instead of {wrong!r}")


class AsyncBlock(_Hint):
    """The base class of objects that need `async with` instead of `with`."""

    if not TYPE_CHECKING:

        def __enter__(self) -> NoReturn:
            self._refuse("with", "async with")

        def __exit__(self, *_: object) -> None:
            """Do nothing. Python calls `__enter__` only if this method exists."""


class AsyncLoop(_Hint):
    """The base class of objects that need `async for` instead of `for`."""

    if not TYPE_CHECKING:

        def __iter__(self) -> NoReturn:
            self._refuse("for", "async for")


class SyncBlock(_Hint):
    """The base class of objects that need `with` instead of `async with`."""

    if not TYPE_CHECKING:

        async def __aenter__(self) -> NoReturn:
            self._refuse("async with", "with")

        async def __aexit__(self, *_: object) -> None:
            """Do nothing. Python calls `__aenter__` only if this method exists."""


class SyncLoop(_Hint):
    """The base class of objects that need `for` instead of `async for`."""

    if not TYPE_CHECKING:

        def __aiter__(self) -> NoReturn:
            self._refuse("async for", "for")
