"""Errors that name the right statement where `with` or `for` is written for the other twin.

Classes of `js_async` inherit from the first two, those of `js_sync` from the others. Type checkers
do not see the methods, which they would take for support of the statement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

__all__ = ["AsyncBlock", "AsyncLoop", "SyncBlock", "SyncLoop"]


class _Hint:
    """The base of all: what happens to an object that is used in the wrong way."""

    def _unused(self) -> None:
        """Release what the object holds, as the program will not use it."""

    def _refuse(self, wrong: str, right: str) -> NoReturn:
        self._unused()
        name = type(self).__name__
        raise TypeError(f"{name} is for {right!r}: write {right!r} in the place of {wrong!r}")


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
