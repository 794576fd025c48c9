"""Validate the callbacks that users pass."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeGuard

from twinstream.errors import BadArgument

__all__ = ["NEEDS_LOOP", "check_callback", "check_takes_one", "is_of_kind", "is_of_program"]

NEEDS_LOOP: Final = (Coroutine, AsyncGenerator)
"""The types of results whose function has not run yet, and runs only with an event loop."""

# The modules of Python's own signal handlers.
_OF_PYTHON: Final = frozenset({"_signal", "asyncio.runners"})


def check_callback(function: object, name: str) -> None:
    """Raise `BadArgument` unless a callback is a plain function of one argument, or None.

    A coroutine function or a generator function is refused, because its body would never run and
    the report would be lost. Callables without a signature, such as some builtins, are accepted.
    """
    if function is None:
        return
    from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction

    kinds = (iscoroutinefunction, isgeneratorfunction, isasyncgenfunction)
    if not callable(function) or any(is_of_kind(function, kind) for kind in kinds):
        raise BadArgument(f"{name} must be a plain function, got {function!r}")
    check_takes_one(function, name)


def is_of_kind(function: object, kind: Callable[[object], bool]) -> bool:
    """Return whether a test of `inspect`, such as `isgeneratorfunction`, holds for a callback.

    The test is also applied to the function of a `partial`, and to `__call__` of an object.
    """
    while isinstance(function, partial):
        function = function.func
    return kind(function) or kind(type(function).__call__)


def check_takes_one(function: Callable[..., Any], name: str) -> None:
    """Raise `BadArgument` if the signature of a callback does not allow one argument."""
    from inspect import signature

    try:
        # For a decorated function, the signature of the wrapper counts, because the wrapper may
        # pass further arguments to the function.
        found = signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        # Some builtins have no signature.
        return
    try:
        found.bind(None)
    except TypeError as error:
        raise BadArgument(
            f"{name} must take one argument, {function!r} takes {found}: {error}"
        ) from error


def is_of_program(handler: object) -> TypeGuard[Callable[[int, Any], object]]:
    """Return whether a replaced signal handler is a function of the program, which expects a call.

    Python's own handlers end the program: `default_int_handler`, and the handler of `asyncio.run`,
    which cancels the main task.
    """
    if not callable(handler):
        return False
    while isinstance(handler, partial):
        handler = handler.func
    return getattr(handler, "__module__", "") not in _OF_PYTHON
