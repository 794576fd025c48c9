"""Paths of the local file system; the URL of another one is refused, not written beside it.

`Path("s3a://lake/orders")` is a relative path: without a check, data would go into a folder `s3a:`
of the working directory, and everything would report success.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, cast

from twinstream.errors import BadArgument

__all__ = ["local_path"]

#: Also `dbfs:/…` and what `Path` makes of a URL. One letter is a drive of Windows.
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):[/\\]", re.ASCII)
_LOCAL: Final = re.compile(r"file:(?://(?:localhost)?)?(/(?!/).*)", re.ASCII | re.IGNORECASE)


def local_path(path: object, name: str = "path") -> Path:
    """Return a path that was given as text or as a path; `file:///…` is one of this machine.

    Raises `BadArgument`, which calls it `name`, for anything else and for any other scheme.
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
            " are; mount it as one, or write there and copy the result"
        )
    return whole
