"""Exchange the names of two folders, atomically if the operating system supports it.

Linux exchanges two names atomically. On other systems the old folder is renamed first, and then the
new folder gets the name. Between the two steps no folder has the name. If the exchange was
interrupted there, `finish` completes it.
"""

from __future__ import annotations

import os
from pathlib import Path

from twinstream.disk.exchange import exchange_at_once
from twinstream.disk.safe_files import remove_tree

__all__ = ["exchange", "exchange_in_steps", "finish"]


def exchange(new: Path, current: Path) -> None:
    """Exchange the names of two folders on the same file system.

    Afterwards `new` has the previous content of `current`.
    """
    if not exchange_at_once(new, current):
        exchange_in_steps(new, current)


def exchange_in_steps(new: Path, current: Path) -> None:
    """Exchange the names of two folders in four renames, for systems without an atomic exchange."""
    waiting, old = _names(current)
    new.rename(waiting)
    current.rename(old)
    waiting.rename(current)
    old.rename(new)


def finish(current: Path) -> None:
    """Complete an exchange that was interrupted while no folder had the name `current`.

    Also remove the folders that an interruption at another moment left behind, because a later
    exchange needs their names.
    """
    waiting, old = _names(current)
    if waiting.exists() and not current.exists():
        waiting.rename(current)
    for left in (waiting, old):
        if os.path.lexists(left):
            remove_tree(left)


def _names(current: Path) -> tuple[Path, Path]:
    return current.with_name(f"_new.{current.name}"), current.with_name(f"_old.{current.name}")
