"""Exchange the names of two folders atomically. Only Linux can do this."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path
from typing import Final

__all__ = ["exchange_at_once"]

_AT_FDCWD: Final = -100
_EXCHANGE: Final = 2

# The error numbers of kernels and file systems that do not support an exchange.
_CANNOT: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})


def exchange_at_once(new: Path, current: Path) -> bool:
    """Exchange the names of two folders on the same file system.

    Afterwards `new` has the previous content of `current`. Return False and change nothing if
    the operating system or the file system does not support an exchange. Raises `OSError`.
    """
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
