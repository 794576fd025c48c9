"""Count the sequences of a batch from the reports of its tasks and the footers of its files.

Each task checks that the sequences of its range ascend, and the ranges of a batch do not overlap.
So if the batch has only files of these tasks, with as many rows as the tasks reported, each
sequence occurs once. The driver then reads no sequences and needs no more memory for a large batch
than for a small batch. Otherwise, an earlier attempt has added files to some of the tables, or
another program has written to the batch's folders. Only in these two cases does the driver read
the sequences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from attrs import frozen

from twinstream.lake.objects.files import arrow_files
from twinstream.spark.errors import SparkSourceError
from twinstream.spark.landing.staging import Written

__all__ = ["Ascending", "Seqs", "between", "pieces", "seqs_in"]

_MOST_SIGNED: Final = 2**63 - 1
_DECIMAL: Final = pa.decimal128(20, 0)

# The approximate number of sequences that the driver has in memory at once, about 100 MB.
_PIECE: Final = 1_000_000


@frozen
class Seqs:
    """The rows in the files of a batch.

    `count` is the number of rows, `distinct` the number of different sequences, and `first`
    and `last` are the lowest and the highest sequence, or 0 without rows.
    """

    count: int = 0
    distinct: int = 0
    first: int = 0
    last: int = 0


class Ascending:
    """A check of the pages of a range: their sequences must ascend within `[start, end)`."""

    def __init__(self, start: int, end: int) -> None:
        self._next = start
        self._end = end

    def check(self, seqs: pa.Array) -> None:
        """Check the next page.

        Raises `SparkSourceError` unless its sequences are ascending, above those of the previous
        page, and within the range.
        """
        if not len(seqs):
            return
        first, last = seqs[0].as_py(), seqs[-1].as_py()
        rising = pc.all(pc.less(seqs[:-1], seqs[1:])).as_py() is not False
        if first < self._next or last >= self._end or not rising:
            raise SparkSourceError(
                f"a page has sequences {first} to {last}, but sequences from {self._next} to"
                f" {self._end - 1}, ascending, were expected: nothing of it was landed; please"
                " report this"
            )
        self._next = last + 1


def seqs_in(written: Sequence[Written], column: str, found: int) -> Seqs:
    """Count the rows and sequences in the files of a batch.

    `column` is the name of the column with sequences. `found` is the number of rows that the
    tasks of the batch reported.
    """
    bounds = [each for files in written for each in files.bounds(column)]
    count = sum(each.rows for each in written)
    if not bounds:
        return Seqs(count)
    # Sequences are decimals if uint64=decimal.
    first, last = int(min(low for low, _ in bounds)), int(max(high for _, high in bounds))
    if count == found and not any(each.is_earlier for each in written):
        return Seqs(count, count, first, last)
    return Seqs(count, _distinct(written, column, first, last + 1, count), first, last)


def _distinct(written: Sequence[Written], column: str, low: int, high: int, count: int) -> int:
    files = [str(file) for each in written for file in each.files]
    rows = ds.dataset(files, filesystem=arrow_files(written[0].lake))
    kind = rows.schema.field(column).type
    found = 0
    for start, end in pieces(low, high, count):
        wanted = between(column, kind, start, end)
        parts = rows.to_batches(columns=[column], filter=wanted)
        seqs = pa.chunked_array([each.column(column) for each in parts], kind)
        found += pc.count_distinct(seqs).as_py()
    return found


def pieces(low: int, high: int, count: int) -> Iterator[tuple[int, int]]:
    """Split `[low, high)`, which has `count` rows, into ranges with about `_PIECE` rows."""
    parts = max(1, -(-count // _PIECE))
    edges = [low + (high - low) * at // parts for at in range(parts + 1)]
    return pairwise(edges)


def between(column: str, kind: pa.DataType, low: int, high: int) -> ds.Expression:
    """Return an expression for rows whose sequence is in `[low, high)`.

    If the column has decimals or `high` is above the range of int64, the bounds are decimals,
    because Arrow converts plain numbers to int64.
    """
    if pa.types.is_decimal(kind) or high > _MOST_SIGNED:
        first, end = (pa.scalar(Decimal(each), _DECIMAL) for each in (low, high))
        return (ds.field(column) >= first) & (ds.field(column) < end)
    return (ds.field(column) >= low) & (ds.field(column) < high)
