"""Exchange the names of two folders, atomically if the operating system supports it.

Linux exchanges two names atomically. On other systems the old folder is renamed first, and then the
new folder gets the name. Between the two steps no folder has the name. If the exchange was
interrupted there, `finish` completes it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from pathlib import Path
from typing import Final

__all__ = ["exchange", "exchange_in_steps", "finish"]

_AT_FDCWD: Final = -100
_EXCHANGE: Final = 2

# The error numbers of kernels and file systems that do not support an exchange.
_CANNOT: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})


def exchange(new: Path, current: Path) -> None:
    """Exchange the names of two folders on the same file system.

    Afterwards ``new`` has the previous content of ``current``.
    """
    if not _exchange_at_once(new, current):
        exchange_in_steps(new, current)


def exchange_in_steps(new: Path, current: Path) -> None:
    """Exchange the names of two folders in four renames, for systems without an atomic exchange."""
    waiting, old = _names(current)
    new.rename(waiting)
    current.rename(old)
    waiting.rename(current)
    old.rename(new)


def finish(current: Path) -> None:
    """Complete an exchange that was interrupted while no folder had the name ``current``.

    Also remove the folders that an interruption at another moment left behind, because a later
    exchange needs their names.
    """
    waiting, old = _names(current)
    if waiting.exists() and not current.exists():
        waiting.rename(current)
    for left in (waiting, old):
        if left.exists():
            shutil.rmtree(left)


def _names(current: Path) -> tuple[Path, Path]:
    return current.with_name(f"_new.{current.name}"), current.with_name(f"_old.{current.name}")


def _exchange_at_once(new: Path, current: Path) -> bool:
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    names = os.fsencode(new), os.fsencode(current)
    if call(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(new), None, str(current))
