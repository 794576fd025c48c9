"""Read the dead letters of many batches that are in the same files, without a read for each batch.

Compaction puts the letters of many batches into one file. To find those of one batch, a reader
reads the footer of the file, or even all its rows. So the letters of small batches are read
together, and then divided.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from twinstream.lake.objects.files import arrow_files
from twinstream.spark.landing.split_tables import BATCH_COLUMN
from twinstream.spark.pipeline.letters.letter_pages import (
    PAGE,
    BatchLetters,
    LetterPage,
    letter_pages,
)
from twinstream.spark.pipeline.tables.parquet_files import damage_named

__all__ = ["letters_by_batch"]


def letters_by_batch(
    batches: Sequence[BatchLetters], payload: str, most: int = PAGE
) -> Iterator[tuple[BatchLetters, Iterator[LetterPage]]]:
    """Yield each batch with its letters, as `letter_pages` yields them, in the same order.

    At most `most` letters, or one page of a batch, are in memory at once. Read those of a batch
    before you ask for the next one.
    """
    for _, group in groupby(batches, lambda each: each.files):
        for together in _read_together(list(group), most):
            yield from _divided(together, payload)


def _read_together(batches: Sequence[BatchLetters], most: int) -> Iterator[list[BatchLetters]]:
    """Divide batches with the same files into groups that have at most `most` letters.

    A batch with more letters is a group of its own.
    """
    counts: Counter[int] = _counts(batches[0]) if len(batches) > 1 else Counter()
    group: list[BatchLetters] = []
    total = 0
    for each in batches:
        if group and total + counts[each.batch] > most:
            yield group
            group, total = [], 0
        group.append(each)
        total += counts[each.batch]
    yield group


def _counts(letters: BatchLetters) -> Counter[int]:
    """Return the number of letters of each batch in the files of a batch."""
    found: Counter[int] = Counter()
    if not letters.files:
        return found
    names = [str(file) for file in letters.files]
    with damage_named(names, [BATCH_COLUMN], letters.lake):
        schema = pa.schema([(BATCH_COLUMN, pa.int64())])
        rows = ds.dataset(names, schema=schema, filesystem=arrow_files(letters.lake))
        for each in rows.to_batches():
            values = pc.value_counts(each.column(BATCH_COLUMN))
            found.update({item["values"]: item["counts"] for item in values.to_pylist()})
    return found


def _divided(
    together: Sequence[BatchLetters], payload: str
) -> Iterator[tuple[BatchLetters, Iterator[LetterPage]]]:
    first, *others = together
    if not others:
        yield first, letter_pages(first, payload)
        return
    found: dict[int, list[LetterPage]] = defaultdict(list)
    for page in letter_pages(first, payload, [each.batch for each in others]):
        for number in page.batches.unique().to_pylist():
            found[number].append(_of_batch(page, number))
    for letters in together:
        yield letters, iter(found[letters.batch])


def _of_batch(page: LetterPage, batch: int) -> LetterPage:
    mask = pc.equal(page.batches, batch)
    return LetterPage(
        page.messages.where(mask), page.reasons.filter(mask), page.batches.filter(mask)
    )
