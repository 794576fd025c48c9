"""The cache folder of this package, for files that are written once per user and machine."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder() -> Path:
    """Return the folder `twinstream` in the user's cache, and create it if necessary.

    If that is not possible, return a new temporary folder.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "twinstream"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass  # the home folder is read-only, as in containers
    return Path(tempfile.mkdtemp(prefix="twinstream-"))
