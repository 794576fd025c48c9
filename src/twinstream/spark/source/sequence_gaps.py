"""Find gaps in the sequences of a range while it is read.

A gap is normal if messages were deleted or a filter skips them. But if the stream now starts above
the first sequence of the gap, limits or a purge may have removed messages before they were read.
For a page without gaps the search compares only two numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SequenceGaps"]


class SequenceGaps:
    """The gaps of a range `[start, end)` whose pages are passed to `in_page` in order."""

    def __init__(self, start: int, end: int) -> None:
        self._next = start
        self._end = end

    def in_page(self, seqs: pa.Array) -> int | None:
        """Return the first missing sequence before or in a page, or `None` if none is missing."""
        if not len(seqs):
            return None
        low, self._next = self._next, seqs[-1].as_py() + 1
        return None if self._next - low == len(seqs) else low + _run(seqs, low)

    def at_end(self) -> int | None:
        """Return the first missing sequence after the last page, or `None` if none is missing."""
        return self._next if self._next < self._end else None


def _run(seqs: pa.Array, low: int) -> int:
    """Return how many of `seqs` are contiguous from `low` on."""
    found, beyond = 0, len(seqs)
    while found < beyond:
        middle = (found + beyond) // 2
        if seqs[middle].as_py() == low + middle:
            found = middle + 1
        else:
            beyond = middle
    return found
