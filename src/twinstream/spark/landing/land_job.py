"""Land a range of a stream: Spark's tasks read it and write the Parquet files themselves.

No message passes through Java. A worker has the messages as Arrow columns, and writing those with
Arrow costs less than passing them to Spark: 1,000,000 messages of 200 bytes, typed, took 4.1 s and
7.8 CPU seconds, through a data frame 6.1 s and 12.1 CPU seconds
(`python -m tests.bench.spark --only landing`).

Spark schedules and retries the tasks. A repeated task writes new files; only files that an attempt
reports at its end are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import frozen

from twinstream.spark.landing.landed_seqs import Ascending
from twinstream.spark.landing.split_tables import TableNames, TableSplit
from twinstream.spark.landing.table_files import TableFile, TableFiles
from twinstream.spark.session.connect import is_connect
from twinstream.spark.source.continuity import Continuity
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.offsets import Position
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import SequenceRange, partition_count, read_way, split
from twinstream.spark.source.range_task import read_pages
from twinstream.spark.source.removal import not_before
from twinstream.spark.source.stream_mark import Mark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

__all__ = ["LandJob", "by_table", "cores_of", "ranges_of"]

_REPORT: Final = "ARRAY<STRUCT<table: STRING, path: STRING, rows: LONG>>"


@frozen
class LandJob:
    """Lands sequences of one stream as files in ``folder``, divided among tables.

    ``folder`` must exist, and be the same for all tasks and the driver. If ``batch`` is given, each
    row gets a column with this number.
    """

    options: SourceOptions
    names: TableNames
    folder: Path
    batch: int | None = None

    def run(self, spark: SparkSession, ranges: Sequence[SequenceRange]) -> list[TableFile]:
        """Land the ranges, one task each, and return the files."""
        if not ranges:
            return []

        from pyspark.sql.functions import udf

        def task(at: int) -> list[tuple[str, str, int]]:
            return [(each.table, str(each.path), each.rows) for each in self.land(ranges[at])]

        count = len(ranges)
        numbers = spark.range(0, count, 1, count)
        # Marked as nondeterministic, because Spark may call deterministic functions twice for a
        # row. An Arrow function would need pandas, and there is only one row per task.
        run = udf(task, _REPORT, useArrow=False).asNondeterministic()
        found = numbers.select(run("id").alias("files")).collect()
        return [TableFile(f.table, Path(f.path), f.rows) for row in found for f in row.files]

    @property
    def tables(self) -> list[str]:
        """All tables that the job could write to."""
        return self.names.possible(self.options.value_format)

    def columns(self, table: str) -> StructType:
        """Return the columns of a table as Spark types."""
        return self._split.columns(table)

    @property
    def _split(self) -> TableSplit:
        return TableSplit(self.options, self.names, self.batch)

    def land(self, part: SequenceRange) -> list[TableFile]:
        """Do the work of one task: read a range and write its files."""
        tables, files = self._split, TableFiles(self.folder)
        order = Ascending(part.start, part.end)
        for page in read_pages(self.options, part):
            order.check(page.seqs)
            for table, rows in tables.split(page, part.stream):
                files.add(table, rows)
        return files.finish()


def cores_of(spark: SparkSession) -> int | None:
    """Return the number of concurrent tasks of the session, or None for Spark Connect."""
    return None if is_connect(spark) else spark.sparkContext.defaultParallelism


def by_table(files: Sequence[TableFile]) -> dict[str, list[Path]]:
    """Return the files of each table, in the order of the tables' names."""
    found: dict[str, list[Path]] = {}
    for file in sorted(files, key=lambda each: each.table):
        found.setdefault(file.table, []).append(file.path)
    return found


def ranges_of(
    leader: Leader,
    options: SourceOptions,
    start: int,
    end: Position,
    before: Mark | None = None,
    cores: int | None = None,
) -> list[SequenceRange]:
    """Split the planned range of a read's only stream; the list is empty if the range is empty.

    ``before`` is the stream's last message when the previous batch was planned. ``cores`` is the
    number of concurrent tasks.

    Raises `DataLossError`, unless ``failOnDataLoss`` is false, if the stream has lost messages of
    the range, or is not the one that ``end`` describes, because it was re-created or restored to an
    earlier state.
    """
    (state,) = leader.states()
    continuity = Continuity(options, leader.time_at)
    if continuity.check_batch(start, end, state, state.name, before) is None:
        return []
    low, high = max(start, state.first), min(end.next, state.next)
    if high <= low:
        return []
    parts = partition_count(options, high - low, cores)
    since = not_before(low, state, before)
    return split(state.name, low, high, parts, read_way(options, state), state.created, since)
