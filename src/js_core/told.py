"""Functions of a program that are told of something; nobody waits for what they return."""

from __future__ import annotations

from inspect import iscoroutinefunction

from js_core.errors import BadArgument

__all__ = ["check_told"]


def check_told(function: object, name: str) -> None:
    """Refuse what a plain call cannot tell: its coroutine would be lost, and the news with it."""
    if function is None:
        return
    if not callable(function) or iscoroutinefunction(function):
        raise BadArgument(f"{name} must be a plain function, got {function!r}")
    if iscoroutinefunction(type(function).__call__):
        raise BadArgument(f"{name} must be callable without waiting, got {function!r}")
