"""The base class of objects that a `with` block closes, except in a forked child."""

from __future__ import annotations

from typing import Final

from js_async.runtime.concurrency import Forks

__all__ = ["CLOSING", "Closable"]

CLOSING: Final = ("abandon", "close", "drain", "release", "stop")
"""Names of methods that end the work of an object."""


class Closable:
    """The base class of objects that only the process that created them may close.

    A child process that was forked within a `with` block also leaves the block, for example by
    `sys.exit`. It must not close the parent's object. An error of `close` would also hide the
    child's exit code. So the methods in `CLOSING` begin with a check of `_is_parents`, and do
    nothing in a forked child.
    """

    def __init__(self) -> None:
        self._made_in: Final = Forks.count

    @property
    def _is_parents(self) -> bool:
        """Whether this process was forked after the object was created."""
        return self._made_in != Forks.count
