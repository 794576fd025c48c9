"""The file descriptors of this process, as Linux lists them."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["open_files", "socket_to"]

_OWN = Path("/proc/self/fd")


def open_files(path: Path) -> list[str]:
    """Return the names of the open files at a path or below it, once for each descriptor."""
    found: list[str] = []
    for each in list(_OWN.iterdir()):
        with suppress(FileNotFoundError):  # that of the listing itself
            found.append(os.readlink(each))
    return [name for name in found if Path(name).is_relative_to(path)]


@contextmanager
def socket_to(port: int) -> Iterator[socket.socket]:
    """Yield a second descriptor of the client's socket that is connected to a port."""
    for each in list(_OWN.iterdir()):
        with suppress(OSError):
            number = os.dup(int(each.name))
            with socket.socket(fileno=number) as sock:
                if sock.getpeername()[1:2] == (port,):
                    yield sock
                    return
    raise AssertionError(f"no socket is connected to port {port}")
