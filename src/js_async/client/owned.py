"""What a `with` block closes at its end, unless a forked child leaves it."""

from __future__ import annotations

from typing import Final

from js_async.runtime.concurrency import Forks

__all__ = ["Owned"]


class Owned:
    """The base of what is closed at the end of its `with` block, by the process that made it.

    A child that was forked within the block leaves it too, with `sys.exit` for example. Closing is
    its parent's business then, and an error would hide the exit code.
    """

    def __init__(self) -> None:
        self._made_in: Final = Forks.count

    @property
    def _is_parents(self) -> bool:
        """Return whether this process was forked off since it was made."""
        return self._made_in != Forks.count
