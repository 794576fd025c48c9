"""What the threads of a scripted server share: a condition, signs for scripts, and failures."""

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
    """The client did not do what the script expects; the message says at which step."""


class Stage:
    """One condition that every thread of a server waits on, and what it is about."""

    def __init__(self, patience: float) -> None:
        self.patience: Final = patience
        self.news: Final = threading.Condition()
        self.told: Final[set[str]] = set()
        self.reached: Final[set[str]] = set()
        self.failures: Final[list[ScriptError]] = []
        self.is_over = False

    def note(self, change: Callable[[], object]) -> None:
        """Change something that others may wait for."""
        with self.news:
            change()
            self.news.notify_all()

    def wait(self, ready: Callable[[], T | None], seconds: float | None = None) -> T | None:
        """Return what `ready` finds, or None when the time passed or the server stops.

        `ready` runs under the lock whenever something happened; it may raise.
        """
        deadline = time.monotonic() + (self.patience if seconds is None else seconds)
        with self.news:
            while True:
                found = ready()
                left = deadline - time.monotonic()
                if found is not None or left <= 0 or self.is_over:
                    return found
                self.news.wait(min(left, _LONGEST))
