"""The state that the threads of a fake server share, and the condition on which they wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

__all__ = ["ScriptError", "Stage"]

T = TypeVar("T")

# The longest single wait for a condition (seconds), because platforms limit the timeout.
_LONGEST: Final = 3600.0


class ScriptError(AssertionError):
    """Raised if the client did not do what the script expects. The text names the step.

    What to do: Compare the steps of the script with what the client does.
    """


class Stage:
    """The condition on which all threads of a fake server wait, and the state that it protects.

    `given` are the signs that the test has given to scripts, and `reached` are the signs that
    scripts have given to the test. A sign is any string. `failures` are the errors of scripts.
    """

    def __init__(self, patience: float) -> None:
        self.patience: Final = patience
        self.changed: Final = threading.Condition()
        self.given: Final[set[str]] = set()
        self.reached: Final[set[str]] = set()
        self.failures: Final[list[ScriptError]] = []
        self.is_over = False

    def note(self, change: Callable[[], object]) -> None:
        """Call `change`, which changes the state, with the lock held; notify waiting threads."""
        with self.changed:
            change()
            self.changed.notify_all()

    def wait(self, ready: Callable[[], T | None], seconds: float | None = None) -> T | None:
        """Wait until `ready` returns a value other than `None`, and return this value.

        The result is `None` if `seconds` (by default the server's patience) have passed, or if the
        server stops. `ready` is called first and after each change, with the lock held. An error
        that it raises ends the wait.
        """
        deadline = time.monotonic() + (self.patience if seconds is None else seconds)
        with self.changed:
            while True:
                found = ready()
                left = deadline - time.monotonic()
                if found is not None or left <= 0 or self.is_over:
                    return found
                self.changed.wait(min(left, _LONGEST))
