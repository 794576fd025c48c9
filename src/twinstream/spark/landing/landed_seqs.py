"""Check the sequences of a batch with the reports of its tasks and the footers of its files.

Each task checks that the sequences of its range ascend, and the ranges of a batch do not overlap.
So a batch whose files have as many rows as its tasks reported has each sequence once, and the
driver needs no more memory for a large batch than for a small one. The sequences themselves are
read only if there are other files than those of the tasks: an earlier attempt was interrupted
between two tables, or another program wrote to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from attrs import frozen

from twinstream.spark.errors import SparkSourceError
from twinstream.spark.landing.footers import Footer
from twinstream.spark.landing.staging import Written

__all__ = ["Ascending", "Seqs", "between", "pieces", "seqs_in"]

_MOST_SIGNED: Final = 2**63 - 1
_DECIMAL: Final = pa.decimal128(20, 0)

#: Number of sequences that are compared at once: some 100 MB.
_PIECE: Final = 1_000_000


@frozen
class Seqs:
    """The number of sequences in the files of a batch."""

    count: int = 0
    distinct: int = 0
    first: int = 0
    last: int = 0


class Ascending:
    """Checks, in a task, that the sequences of the range ``[start, end)`` ascend."""

    def __init__(self, start: int, end: int) -> None:
        self._next = start
        self._end = end

    def check(self, seqs: pa.Array) -> None:
        """Check the sequences of the next page. Raises `SparkSourceError`."""
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
    """Count the sequences in the files of a batch whose tasks reported ``found`` rows."""
    footers = [Footer.of(file) for each in written for file in each.files]
    bounds = [each for each in (footer.bounds(column) for footer in footers) if each is not None]
    count = sum(each.rows for each in footers)
    if not bounds:
        return Seqs(count)
    # Sequences are decimals if uint64=decimal.
    first, last = int(min(low for low, _ in bounds)), int(max(high for _, high in bounds))
    if count == found and not any(each.is_earlier for each in written):
        return Seqs(count, count, first, last)
    files = [footer.path for footer in footers]
    return Seqs(count, _distinct(files, column, first, last + 1, count), first, last)


def _distinct(files: Iterable[Path], column: str, low: int, high: int, count: int) -> int:
    rows = ds.dataset([str(file) for file in files])
    kind = rows.schema.field(column).type
    found = 0
    for start, end in pieces(low, high, count):
        wanted = between(column, kind, start, end)
        parts = rows.to_batches(columns=[column], filter=wanted)
        seqs = pa.chunked_array([each.column(column) for each in parts], kind)
        found += pc.count_distinct(seqs).as_py()
    return found


def pieces(low: int, high: int, count: int) -> Iterator[tuple[int, int]]:
    """Split ``[low, high)``, which has ``count`` sequences, into ranges of about `_PIECE`."""
    parts = max(1, -(-count // _PIECE))
    edges = [low + (high - low) * at // parts for at in range(parts + 1)]
    return pairwise(edges)


def between(column: str, kind: pa.DataType, low: int, high: int) -> ds.Expression:
    """Return a filter of the column's type: Arrow reads plain numbers as int64, which may fail."""
    if pa.types.is_decimal(kind) or high > _MOST_SIGNED:
        first, end = (pa.scalar(Decimal(each), _DECIMAL) for each in (low, high))
        return (ds.field(column) >= first) & (ds.field(column) < end)
    return (ds.field(column) >= low) & (ds.field(column) < high)
