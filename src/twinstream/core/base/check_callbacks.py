"""Validation of user callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twinstream.errors import BadArgument

__all__ = ["check_takes_one", "check_told"]


def check_told(function: object, name: str) -> None:
    """Raise `BadArgument` for a callback that a plain function call cannot run, if detectable.

    The coroutine returned by a coroutine function would never run, and the report would be lost.
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
    """Raise `BadArgument` for a callback that does not take one argument, if detectable."""
    from inspect import signature

    try:
        # Wrappers are not followed: a decorator may pass more arguments to the wrapped function.
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
