"""Base of objects that a `with` block closes, except in a forked child."""

from __future__ import annotations

from typing import Final

from js_async.runtime.concurrency import Forks

__all__ = ["Owned"]


class Owned:
    """Base of objects that are closed at the end of a `with` block, by the process that made them.

    A child that was forked within the block leaves the block too, for example with `sys.exit`. The
    object belongs to its parent then, and an error would hide the exit code.
    """

    def __init__(self) -> None:
        self._made_in: Final = Forks.count

    @property
    def _is_parents(self) -> bool:
        """Whether this process was forked after the object was created."""
        return self._made_in != Forks.count
