"""What a vacuum removes."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from twinstream.lake.objects.folder import ObjectFolder

__all__ = ["Leftover"]


@frozen(kw_only=True)
class Leftover:
    """A file or folder that no table uses, and its size in bytes."""

    path: Path | ObjectFolder
    bytes: int
