"""Paths of the local file system. URLs of other file systems are refused.

`Path("s3a://lake/orders")` is a relative path: without a check, data would go into a folder `s3a:`
of the working directory, without any error.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, cast

from twinstream.errors import BadArgument

__all__ = ["local_path"]

#: Also matches `dbfs:/…` and a URL normalised by `Path`. A single letter is a Windows drive.
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):[/\\]", re.ASCII)
_LOCAL: Final = re.compile(r"file:(?://(?:localhost)?)?(/(?!/).*)", re.ASCII | re.IGNORECASE)


def local_path(path: object, name: str = "path") -> Path:
    """Return a path given as text or as a path; `file:///…` is a local path.

    Raises `BadArgument`, with `name` in its message, for anything else and for other schemes.
    """
    try:
        whole = Path(cast("Any", path))
    except TypeError:
        raise BadArgument(f"{name} must be text or a path, got {path!r}") from None
    text = path if isinstance(path, str) else str(whole)
    if local := _LOCAL.fullmatch(text):
        return Path(local[1])
    if found := _SCHEME.match(text):
        raise BadArgument(
            f"{name} {text!r}: {found[1]}: is not supported, only folders of the local file system"
            " are; mount it locally, or write to a local folder and copy the result"
        )
    return whole
