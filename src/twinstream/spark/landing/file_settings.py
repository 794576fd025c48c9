"""What decides into which files a task writes the rows of a table."""

from __future__ import annotations

from typing import Final

from attrs import frozen

__all__ = ["FILE_SIZE", "MAX_PARTITIONS", "FileSettings"]

FILE_SIZE: Final = 128 * 1024 * 1024
"""The default size in bytes from which on a task begins another file."""

MAX_PARTITIONS: Final = 200
"""The default limit of partitions in a task, which has an open file for each."""


@frozen(kw_only=True)
class FileSettings:
    """The settings of the files of one stream's tables."""

    size: int = FILE_SIZE
    """The size in bytes from which on a task begins another file."""
    max_partitions: int = MAX_PARTITIONS
    """The largest number of partitions, of all tables together, for which a task has rows."""
    bounds: tuple[str, ...] = ()
    """Further columns whose bounds a task reports."""
    in_catalog: bool = False
    """Whether the tables are in a catalog. Then their files have all columns of the table, and the
    names of the tables have no hyphens."""
