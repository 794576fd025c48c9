"""Functions of a program: what they must be like to be called by the SDK."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction, signature
from typing import Any

from twinstream.errors import BadArgument

__all__ = ["check_takes_one", "check_told"]


def check_told(function: object, name: str) -> None:
    """Refuse what a plain call with the news cannot tell, where that can be seen.

    The coroutine of another would be lost, and the news with it.
    """
    if function is None:
        return
    if not callable(function) or iscoroutinefunction(function):
        raise BadArgument(f"{name} must be a plain function, got {function!r}")
    if iscoroutinefunction(type(function).__call__):
        raise BadArgument(f"{name} must be callable without waiting, got {function!r}")
    check_takes_one(function, name)


def check_takes_one(function: Callable[..., Any], name: str) -> None:
    """Refuse what cannot be called with one argument, where that can be seen."""
    try:
        # Of the function itself: a decorator may give the one it wraps more arguments.
        found = signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        # Of some builtins nobody knows it.
        return
    try:
        found.bind(None)
    except TypeError as error:
        raise BadArgument(
            f"{name} must take one argument, {function!r} takes {found}: {error}"
        ) from error
