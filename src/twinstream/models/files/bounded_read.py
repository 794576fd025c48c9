"""Read a small file as a whole, with a limit for its size."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, Final

__all__ = ["LARGEST", "SMALL", "bounded", "read_small", "read_small_text"]

LARGEST: Final = 1 << 26
"""The largest accepted file with configurations or state, in bytes: 64 MiB.

It is the largest payload that a server can be configured to accept (`max_payload`), so no request
or response of a server is larger.
"""

SMALL: Final = 1 << 20
"""The largest accepted file with credentials, in bytes: 1 MiB. Usual files have a few KiB."""


def bounded(file: BinaryIO, limit: int = LARGEST) -> bytes:
    """Return the rest of an open file. Raises `OSError` if it has more than `limit` bytes.

    The size is not asked for beforehand: a file may grow, and a pipe or a device has no size.
    """
    data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(f"it has more than {limit >> 20} MiB; is it the right file?")
    return data


def read_small(path: str | Path, limit: int = LARGEST) -> bytes:
    """Return the content of a file. Raises `OSError` also for more than `limit` bytes."""
    with open(path, "rb") as file:
        return bounded(file, limit)


def read_small_text(path: str | Path, limit: int = LARGEST) -> str:
    """Return the UTF-8 text of a file, with LF at the end of each line as in Python's text mode.

    Raises `OSError` also for more than `limit` bytes, and `UnicodeDecodeError` for other encodings.
    """
    text = read_small(path, limit).decode("utf-8")
    return text.replace("\r\n", "\n").replace("\r", "\n")
