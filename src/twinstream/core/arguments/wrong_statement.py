"""Errors that name the right statement, for objects used in a `with` or `for` of the wrong kind.

Classes of `js_async` inherit from `AsyncBlock` and `AsyncLoop`, classes of `js_sync` from
`SyncBlock` and `SyncLoop`. The methods of these base classes are hidden from type checkers, which
would otherwise accept the wrong statement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NoReturn

__all__ = ["AsyncBlock", "AsyncLoop", "NoContainer", "SyncBlock", "SyncLoop"]


class _Hint:
    """The base class, which raises the error for the wrong statement."""

    def _unused(self) -> None:
        """Release the resources of the object before the error. Subclasses may override this."""

    def _refuse(self, wrong: str, right: str) -> NoReturn:
        self._unused()
        shown = self._name_in_errors()
        raise TypeError(f"{shown} needs {right!r}: write {right!r} instead of {wrong!r}")

    def _name_in_errors(self) -> str:
        """Return the name of the object in errors. Subclasses may override this."""
        return type(self).__name__


class AsyncBlock(_Hint):
    """The base class of objects that need `async with` instead of `with`."""

    if not TYPE_CHECKING:

        def __enter__(self) -> NoReturn:
            self._refuse("with", "async with")

        def __exit__(self, *_: object) -> None:
            """Do nothing. Python calls `__enter__` only if this method exists."""


class AsyncLoop(_Hint):
    """The base class of objects that need `async for` instead of `for` or `await`."""

    if not TYPE_CHECKING:

        def __await__(self) -> NoReturn:
            self._refuse("await", "async for")

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


class NoContainer:
    """The base class of buckets and stores, which are not used with `in`, `[]` or a loop.

    Each such access would be a request, which may wait and fail.
    """

    # The method that returns an item, or raises `_missing`.
    _get: ClassVar[str]
    _missing: ClassVar[str]
    # The method that iterates over the names.
    _list: ClassVar[str]

    if not TYPE_CHECKING:

        def _refuse_use(self, use: str, instead: str) -> NoReturn:
            raise TypeError(f"{type(self).__name__} has no {use}: {instead}")

        def __contains__(self, name: object) -> NoReturn:
            self._refuse_use("'in'", f"{self._get} raises {self._missing} for what is not there")

        def __getitem__(self, name: object) -> NoReturn:
            self._refuse_use("items", f"use {self._get}")

        def __setitem__(self, name: object, value: object) -> NoReturn:
            self._refuse_use("items", "use put()")

        def __delitem__(self, name: object) -> NoReturn:
            self._refuse_use("items", "use delete()")

        def __iter__(self) -> NoReturn:
            self._refuse_use("items", f"iterate over {self._list}")

        def __aiter__(self) -> NoReturn:
            self._refuse_use("items", f"iterate over {self._list}")
