"""What a pipeline does for a batch does not grow with the batches before it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from js_sync import Stream
from tests.spark.pipelines import config_of, counted, rows_of
from twinstream.spark.errors import JournalError
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.tables.delta_place import open_table
from twinstream.spark.pipeline.tables.parquet_files import AT_ONCE, scanned
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[..., Stream]
Fill = Callable[..., None]


class Listings:
    """Counts how often this process lists a folder; a hook of the interpreter stays for good."""

    def __init__(self) -> None:
        self.found: Counter[str] | None = None
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if self.found is not None and event in {"os.listdir", "os.scandir"}:
            self.found[str(args[0])] += 1


LISTINGS = Listings()


@pytest.fixture
def listings() -> Iterator[Counter[str]]:
    LISTINGS.found = Counter()
    yield LISTINGS.found
    LISTINGS.found = None


def test_the_folders_of_a_table_are_not_listed_for_each_batch(
    spark: SparkSession,
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
    listings: Counter[str],
) -> None:
    stream = make_stream()
    source = f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\nmax_messages = 10'
    config = config_of(tmp_path, "parquet", server.url, source)
    table = str(tmp_path / "lake" / "orders")
    seen: list[int] = []
    for batches in (2, 8):
        fill(stream, [b"x"] * 10 * batches)
        listings.clear()
        assert run(spark, config, once=True) == {}
        seen.append(listings[table])
    assert seen[0] == seen[1]
    assert counted(Path(table), "parquet", "seq") == (100, 100)


@pytest.mark.parametrize("form", ["raw", "json"])
def test_readers_of_delta_tables_may_skip_files_by_time(
    form: str,
    spark: SparkSession,
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    source = f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\nformat = "{form}"\n'
    more = 'schema = "order.json"' if form == "json" else ""
    config = config_of(tmp_path, "delta", server.url, source + more)
    for first in (0, 10):
        fill(stream, [{"id": at} for at in range(first, first + 10)])
        assert run(spark, config, once=True) == {}
    name = "_timestamp" if form == "json" else "timestamp"
    table = tmp_path / "lake" / "orders"
    delta = open_table(table)
    assert delta is not None
    rows = rows_of(table, "delta")
    actions = pa.table(delta.get_add_actions(flatten=True)).to_pylist()
    assert len(actions) == 2
    for action in actions:
        times: list[datetime] = [
            row[name] for row in rows if row["_batch_id"] == action["min._batch_id"]
        ]
        low, high = action[f"min.{name}"], action[f"max.{name}"]
        assert low <= min(times) <= max(times) <= high
        assert (min(times) - low).total_seconds() < 0.001
        assert (high - max(times)).total_seconds() < 0.001


def test_a_scan_has_few_files_in_memory(tmp_path: Path) -> None:
    """A dataset keeps something of each file that it has read."""
    numbers = range(2 * AT_ONCE + 2)
    files = [str(tmp_path / f"{number}.parquet") for number in numbers]
    for number, file in enumerate(files):
        column = pa.array([number], pa.int64())
        rows = pa.table({"_seq": column, "_batch_id": column})
        writer = pq.ParquetWriter(file, rows.schema)
        writer.write_table(rows)
        writer.close()
    # The files of a later group are not opened before the rows of an earlier one are read.
    Path(files[-1]).write_bytes(b"damaged")
    found = scanned(files, ["_seq"], "_seq", 0, len(files), 0)
    seqs = [next(found).column("_seq").to_pylist()[0] for _ in range(2 * AT_ONCE)]
    assert seqs == list(numbers[: 2 * AT_ONCE])
    with pytest.raises(JournalError, match=f"{numbers[-1]}.parquet cannot be read"):
        list(found)
