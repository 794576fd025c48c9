"""Errors that name the right statement if `with` or `for` is written for the other twin.

Classes of `js_async` inherit from the first two, those of `js_sync` from the others. The methods
are hidden from type checkers, which would take them for support of the statement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

__all__ = ["AsyncBlock", "AsyncLoop", "SyncBlock", "SyncLoop"]


class _Hint:
    """Base class: what happens to an object that is used in the wrong statement."""

    def _unused(self) -> None:
        """Release the resources of the object, because it will not be used."""

    def _refuse(self, wrong: str, right: str) -> NoReturn:
        self._unused()
        name = type(self).__name__
        raise TypeError(f"{name} needs {right!r}: write {right!r} instead of {wrong!r}")


class AsyncBlock(_Hint):
    """For use in `async with`."""

    if not TYPE_CHECKING:

        def __enter__(self) -> NoReturn:
            self._refuse("with", "async with")

        def __exit__(self, *_: object) -> None:
            """Needed for Python to call `__enter__`."""


class AsyncLoop(_Hint):
    """For use in `async for`."""

    if not TYPE_CHECKING:

        def __iter__(self) -> NoReturn:
            self._refuse("for", "async for")


class SyncBlock(_Hint):
    """For use in `with`."""

    if not TYPE_CHECKING:

        async def __aenter__(self) -> NoReturn:
            self._refuse("async with", "with")

        async def __aexit__(self, *_: object) -> None:
            """Needed for Python to call `__aenter__`."""


class SyncLoop(_Hint):
    """For use in `for`."""

    if not TYPE_CHECKING:

        def __aiter__(self) -> NoReturn:
            self._refuse("async for", "for")
