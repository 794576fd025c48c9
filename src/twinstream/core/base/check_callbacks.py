"""Validate the callbacks that users pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twinstream.errors import BadArgument

__all__ = ["check_takes_one", "check_told"]


def check_told(function: object, name: str) -> None:
    """Raise `BadArgument` unless a callback is a plain function of one argument, or None.

    A coroutine function is refused, because its coroutine would never run and the report would be
    lost. Callables without a signature, such as some builtins, are accepted.
    """
    if function is None:
        return
    from inspect import iscoroutinefunction

    if not callable(function) or iscoroutinefunction(function):
        raise BadArgument(f"{name} must be a plain function, got {function!r}")
    if iscoroutinefunction(type(function).__call__):
        raise BadArgument(f"{name} must not be a coroutine function, got {function!r}")
    check_takes_one(function, name)


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
