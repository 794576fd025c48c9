"""The sequences of a batch, counted from the footers of its files."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinstream.spark.errors import SparkSourceError
from twinstream.spark.landing.landed_seqs import Ascending, Seqs, pieces, seqs_in
from twinstream.spark.landing.staging import Written

WIDE = pa.decimal128(20, 0)


def file_of(
    folder: Path, name: str, seqs: Sequence[Any], kind: pa.DataType | None = None, **how: Any
) -> Path:
    file = folder / name
    table = pa.table({"data": ["x"] * len(seqs), "_seq": pa.array(seqs, kind or pa.int64())})
    pq.write_table(table, file, **how)
    return file


def written(*files: Path, is_earlier: bool = False) -> list[Written]:
    return [Written("orders", files, is_earlier)]


def test_files_of_the_tasks_are_counted_without_their_rows(tmp_path: Path) -> None:
    one = file_of(tmp_path, "one", range(1, 5001), row_group_size=1000)
    two = file_of(tmp_path, "two", range(5001, 9001))
    for file in (one, two):
        data = bytearray(file.read_bytes())
        data[4:2000] = bytes(1996)  # no page of rows can be read any more
        file.write_bytes(data)
    assert seqs_in(written(one, two), "_seq", 9000) == Seqs(9000, 9000, 1, 9000)


@pytest.mark.parametrize("size", [3, 2_500_000])
def test_doubles_are_found_where_files_are_not_those_of_the_tasks(
    tmp_path: Path, size: int
) -> None:
    one = file_of(tmp_path, "one", range(size))
    two = file_of(tmp_path, "two", range(size - 1, size + 2))
    doubled = Seqs(size + 3, size + 2, 0, size + 1)
    assert seqs_in(written(one, two), "_seq", size) == doubled, "there are more rows than found"
    earlier = written(one, is_earlier=True) + written(two)
    assert seqs_in(earlier, "_seq", size + 3) == doubled, "an earlier attempt left some of them"
    fewer = seqs_in(written(one), "_seq", size + 1)
    assert (fewer.count, fewer.distinct) == (size, size)


def test_sequences_may_be_decimals_and_files_without_statistics(tmp_path: Path) -> None:
    large = [Decimal(2**64 - 3), Decimal(2**64 - 2)]
    decimals = file_of(tmp_path, "decimals", large, WIDE)
    assert seqs_in(written(decimals), "_seq", 2) == Seqs(2, 2, 2**64 - 3, 2**64 - 2)
    assert seqs_in(written(decimals, is_earlier=True), "_seq", 2).distinct == 2
    silent = file_of(tmp_path, "silent", [5, 3, 9], write_statistics=False)
    assert seqs_in(written(silent), "_seq", 3) == Seqs(3, 3, 3, 9)
    empty = file_of(tmp_path, "empty", [])
    assert seqs_in(written(empty, silent), "_seq", 3) == Seqs(3, 3, 3, 9)
    assert seqs_in([], "_seq", 0) == Seqs()


def test_pieces_depend_on_the_rows_not_on_the_sequences() -> None:
    assert list(pieces(1, 2**63, 51)) == [(1, 2**63)]
    found = list(pieces(0, 10**12, 2_500_000))
    assert len(found) == 3
    assert (found[0][0], found[-1][1]) == (0, 10**12)


@pytest.mark.parametrize(
    "pages",
    [
        [[1, 2, 2]],
        [[2, 1]],
        [[1, 2, 3], [3, 4]],
        [[1, 2, 3], [1]],
        [[0, 1]],
        [[9, 10]],
    ],
)
def test_a_task_refuses_sequences_that_do_not_ascend(pages: list[list[int]]) -> None:
    order = Ascending(1, 10)
    *good, bad = (pa.array(page, pa.int64()) for page in pages)
    for page in good:
        order.check(page)
    with pytest.raises(SparkSourceError, match="ascending, were expected"):
        order.check(bad)


def test_task_handles_gaps_and_empty_pages() -> None:
    order = Ascending(1, 2**64)
    order.check(pa.array([1, 5, 6], pa.int64()))
    order.check(pa.array([], pa.int64()))
    order.check(pa.array([7, 2**63, 2**64 - 1], pa.uint64()))
