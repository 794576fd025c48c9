"""The shared state of a scripted server's threads: a condition, signs and failures."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

__all__ = ["ScriptError", "Stage"]

T = TypeVar("T")

# The longest single wait for a condition (seconds): platforms limit it.
_LONGEST: Final = 3600.0


class ScriptError(AssertionError):
    """The client did not do what the script expects; the message names the step."""


class Stage:
    """The condition on which all threads of a server wait, and the state it protects."""

    def __init__(self, patience: float) -> None:
        self.patience: Final = patience
        self.news: Final = threading.Condition()
        self.told: Final[set[str]] = set()
        self.reached: Final[set[str]] = set()
        self.failures: Final[list[ScriptError]] = []
        self.is_over = False

    def note(self, change: Callable[[], object]) -> None:
        """Change the state and notify waiting threads."""
        with self.news:
            change()
            self.news.notify_all()

    def wait(self, ready: Callable[[], T | None], seconds: float | None = None) -> T | None:
        """Return the result of `ready`, or None after a timeout or when the server stops.

        `ready` is called with the lock held after each change; it may raise.
        """
        deadline = time.monotonic() + (self.patience if seconds is None else seconds)
        with self.news:
            while True:
                found = ready()
                left = deadline - time.monotonic()
                if found is not None or left <= 0 or self.is_over:
                    return found
                self.news.wait(min(left, _LONGEST))
