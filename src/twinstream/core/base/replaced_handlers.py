"""Signal handlers that the program had set before the SDK replaced them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeGuard

__all__ = ["is_of_program"]

_OF_PYTHON: Final = frozenset({"_signal", "asyncio.runners"})
"""The modules of Python's own handlers."""


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
