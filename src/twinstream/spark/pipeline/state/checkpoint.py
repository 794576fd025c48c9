"""Read Spark's checkpoint: the ID of the query, the end of each batch, the committed batches.

Spark writes a file with the end of a batch before it runs the batch, and a commit file afterwards.
The files are small text files. Their format is the same since Spark 2.1: a version, metadata, and a
JSON line for each source.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from twinstream.core.wire.response import read_json
from twinstream.models.files.bounded_read import read_small_text
from twinstream.spark.errors import CheckpointError
from twinstream.spark.source.offsets import Offset, Position

__all__ = ["Bounds", "Checkpoint"]

_FORMATS: Final = ("v1", "v2")

_NUMBER: Final = re.compile(r"[0-9]{1,19}")

# Names of temporary files. Spark writes such a file, and then renames it to the batch number.
_UNFINISHED: Final = re.compile(r"\.\d+\.[0-9a-f-]{36}\.tmp")


@frozen
class Bounds:
    """The bounds of a batch: its first sequence, `start`, and the position after it, `end`."""

    start: int
    end: Position


class Checkpoint:
    """The checkpoint of a query that reads one stream."""

    def __init__(self, folder: Path, stream: str) -> None:
        self._folder: Final = folder
        self._stream: Final = stream

    def query_id(self) -> str | None:
        """Return the ID of the query, or `None` if there is no checkpoint.

        Raises `CheckpointError` if the checkpoint cannot be read.
        """
        file = self._folder / "metadata"
        if not file.exists():
            return None
        try:
            members: Any = read_json(read_small_text(file))
            return str(members["id"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"the checkpoint {self._folder} cannot be read: {error}"
            ) from error

    def last_begun(self) -> int:
        """Return the number of the last batch that Spark planned, or -1 if there is none."""
        return _last(self._folder / "offsets")

    def last_committed(self) -> int:
        """Return the number of the last batch that Spark committed, or -1 if there is none."""
        return _last(self._folder / "commits")

    def clear_unfinished(self) -> None:
        """Remove the temporary file of a Spark process that was killed while it planned batch 0.

        Since 4.1, Spark requires an empty folder for a new query. With the temporary file, the
        query would never start again. No other process may use the checkpoint during this call.
        """
        folder = self._folder / "offsets"
        if not folder.is_dir() or self.last_begun() >= 0:
            return
        for file in list(folder.iterdir()):
            if _UNFINISHED.fullmatch(file.name):
                file.unlink()
                file.with_name(f".{file.name}.crc").unlink(missing_ok=True)

    def bounds(self, batch: int, origin: int) -> Bounds:
        """Return the bounds of a batch. `origin` is the first sequence of batch 0.

        Raises `CheckpointError` if the checkpoint's file for the batch cannot be read.
        """
        end = self._position(batch)
        if end.since is not None:
            start = end.since
        else:
            start = origin if batch == 0 else self._position(batch - 1).next
        return Bounds(start, end)

    def _position(self, batch: int) -> Position:
        file = self._folder / "offsets" / str(batch)
        try:
            version, _, *sources = read_small_text(file).splitlines()
            if version not in _FORMATS:
                raise ValueError(f"this release does not support format {version!r}")
            (text,) = sources
            value: Any = read_json(text)
            return Offset.from_json(value).streams[self._stream]
        except (OSError, ValueError, KeyError) as error:
            raise CheckpointError(
                f"the checkpoint's file {file} cannot be read: {error!r}"
            ) from error


def _last(folder: Path) -> int:
    if not folder.is_dir():
        return -1
    return max(
        (int(file.name) for file in folder.iterdir() if _NUMBER.fullmatch(file.name)), default=-1
    )
