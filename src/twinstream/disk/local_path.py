"""Paths of the local file system. URLs of other file systems are refused.

`Path("s3a://lake/orders")` is a relative path. Without a check, data would be written to a folder
`s3a:` in the working directory, without an error.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, cast

from twinstream.errors import BadArgument

__all__ = ["local_path"]

# A URL with a scheme, also `dbfs:/…` and a URL that `Path` has normalised. A single letter is not
# a scheme but a Windows drive.
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):[/\\]", re.ASCII)
_LOCAL: Final = re.compile(r"file:(?://(?:localhost)?)?(/(?!/).*)", re.ASCII | re.IGNORECASE)


def local_path(path: object, name: str = "path") -> Path:
    """Return a local path for text, a path object or a `file:` URL.

    Raises `BadArgument`, with `name` in its message, for other values and other schemes.
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
