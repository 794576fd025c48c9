"""The shared state of a fake server's threads: a condition, signs and failures."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

__all__ = ["ScriptError", "Stage"]

T = TypeVar("T")

# The longest single wait for a condition in seconds, which platforms limit.
_LONGEST: Final = 3600.0


class ScriptError(AssertionError):
    """Raised if the client did not do what the script expects. The text has the step."""


class Stage:
    """The condition on which all threads of a fake server wait, and the state that it protects."""

    def __init__(self, patience: float) -> None:
        self.patience: Final = patience
        self.news: Final = threading.Condition()
        self.told: Final[set[str]] = set()
        self.reached: Final[set[str]] = set()
        self.failures: Final[list[ScriptError]] = []
        self.is_over = False

    def note(self, change: Callable[[], object]) -> None:
        """Call ``change``, which changes the state, with the lock held; notify waiting threads."""
        with self.news:
            change()
            self.news.notify_all()

    def wait(self, ready: Callable[[], T | None], seconds: float | None = None) -> T | None:
        """Wait until `ready` returns another value than ``None``, and return it.

        The result is ``None`` after `seconds`, by default the server's patience, and when the
        server stops. `ready` is called after each change with the lock held. It may raise an error,
        which ends the wait.
        """
        deadline = time.monotonic() + (self.patience if seconds is None else seconds)
        with self.news:
            while True:
                found = ready()
                left = deadline - time.monotonic()
                if found is not None or left <= 0 or self.is_over:
                    return found
                self.news.wait(min(left, _LONGEST))
