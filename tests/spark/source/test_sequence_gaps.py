"""Holes in a range, page by page."""

from __future__ import annotations

import pyarrow as pa
import pytest

from twinstream.spark.source.sequence_gaps import SequenceGaps


@pytest.mark.parametrize(
    ("pages", "found"),
    [
        ([[5, 6, 7], [8, 9]], [None, None, None]),
        ([[6, 7], [8, 9]], [5, None, None]),
        ([[5, 6], [8, 9]], [None, 7, None]),
        ([[5, 7, 9]], [6, None]),
        ([[5, 6, 7], []], [None, None, 8]),
        ([], [5]),
        ([[9]], [5, None]),
    ],
)
def test_holes_are_found_where_they_begin(pages: list[list[int]], found: list[int | None]) -> None:
    holes = SequenceGaps(5, 10)
    told = [holes.in_page(pa.array(page, pa.int64())) for page in pages]
    assert [*told, holes.at_end()] == found
