"""A queue of rows to store. If it has many rows, it writes most of them to disk."""

from __future__ import annotations

import pickle
import tempfile
from collections import deque
from collections.abc import Callable
from typing import BinaryIO, Final, TypeAlias

from twinstream.spark.sink.rows import OutMessage

__all__ = ["Keyed", "RowQueue"]

Keyed: TypeAlias = tuple[bytes, OutMessage]
"""A key and its row."""

# The number of rows that are written to disk together.
_BLOCK: Final = 20_000


class RowQueue:
    """A FIFO queue of rows, which may have to contain all rows of a task.

    Blocks of `block` rows are written to a temporary file.
    """

    def __init__(self, block: int = _BLOCK) -> None:
        self._block: Final = block
        self._front: list[Keyed] = []
        self._back: list[Keyed] = []
        self._blocks: deque[tuple[int, int]] = deque()
        self._file: BinaryIO | None = None
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, row: Keyed) -> None:
        """Add a row at the end."""
        self._back.append(row)
        self._size += 1
        if len(self._back) == self._block:
            self._spill()

    def peek(self, most: int) -> list[Keyed]:
        """Return the first rows, at most `most`, without removing them."""
        while len(self._front) < most and (self._blocks or self._back):
            self._front += self._next_block()
        return self._front[:most]

    def drop(self, count: int) -> None:
        """Remove the first `count` rows, which `peek` has returned."""
        del self._front[:count]
        self._size -= count

    def sift(self, keep: Callable[[Keyed], bool]) -> None:
        """Remove the rows for which `keep` returns false, and keep the order of the others."""
        kept = RowQueue(self._block)
        while rows := self.peek(self._block):
            self.drop(len(rows))
            for row in rows:
                if keep(row):
                    kept.put(row)
        self.close()
        self._front, self._back, self._blocks = kept._front, kept._back, kept._blocks
        self._file, self._size = kept._file, kept._size

    def close(self) -> None:
        """Remove the temporary file, if there is one."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _next_block(self) -> list[Keyed]:
        """Remove and return the next block of the file, or the newest rows after all blocks."""
        if not self._blocks:
            rows, self._back = self._back, []
            return rows
        assert self._file is not None
        offset, size = self._blocks.popleft()
        self._file.seek(offset)
        found: list[Keyed] = pickle.loads(self._file.read(size))  # safe: `_spill` wrote the file
        return found

    def _spill(self) -> None:
        """Move the newest rows to the end of the file, as one block."""
        if self._file is None:
            # `close` closes the file.
            self._file = tempfile.TemporaryFile(prefix="twinstream-")  # noqa: SIM115
        packed = pickle.dumps(self._back, pickle.HIGHEST_PROTOCOL)
        offset = self._file.seek(0, 2)
        self._file.write(packed)
        self._blocks.append((offset, len(packed)))
        self._back = []
