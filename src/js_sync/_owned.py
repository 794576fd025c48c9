# Generated from src/js_async/_owned.py by codegen/twin.py. Edit that file instead.
"""What a `with` block closes at its end, unless a forked child leaves it."""

from __future__ import annotations

from typing import Self

from js_sync._io import Forks

__all__ = ["Owned"]


class Owned:
    """The base of what is closed at the end of its `with` block, by the process that made it.

    A child that was forked within the block leaves it too, with `sys.exit` for example. Closing is
    its parent's business then, and an error would hide the exit code.
    """

    _made_in: int

    def __new__(cls, *_: object, **__: object) -> Self:
        made = super().__new__(cls)
        made._made_in = Forks.count
        return made

    @property
    def is_parents(self) -> bool:
        """Return whether this process was forked off since it was made."""
        return self._made_in != Forks.count
