"""Batch reads: the driver plans ranges, and tasks read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from twinstream.spark.source.batcher import Batcher
from twinstream.spark.source.bounds import Bound
from twinstream.spark.source.continuity import Continuity
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import SequenceRange, partition_count, read_way, split
from twinstream.spark.source.range_task import read_batches
from twinstream.spark.source.removed_messages import not_before
from twinstream.spark.source.stream_state import StreamState

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JetStreamReader"]

_EARLIEST = Bound("startingOffsets", word="earliest")
_LATEST = Bound("endingOffsets", word="latest")


class JetStreamReader(DataSourceReader):
    """The reader of a batch query. The bounds are resolved when Spark plans the query."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        Batcher(options, schema)  # raises an error for unknown columns before any task runs
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Request the state of each stream from its leader, and return the ranges to read."""
        found: list[InputPartition] = []
        with Leader(self._options) as leader:
            states = leader.states()
            for state in states:
                found += self._ranges(state, leader)
        # Spark replaces an empty list by one partition that is `None`, so return an empty range.
        return found or [SequenceRange(states[0].name, 1, 1, "direct")]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the messages of one range, in a task."""
        if not isinstance(partition, SequenceRange):
            raise TypeError(f"not a partition of this source: {partition!r}")
        return read_batches(self._options, Batcher(self._options, self._schema), partition)

    def _ranges(self, state: StreamState, leader: Leader) -> list[SequenceRange]:
        options = self._options
        low, high = options.start or _EARLIEST, options.end or _LATEST
        start = Continuity(options, leader.time_at).first(low, state, leader.seq_at)
        end = high.resolve(state, leader.seq_at)
        start, end = max(start, state.first), min(end, state.next)
        if end <= start:
            return []
        way = read_way(options, state)
        parts = partition_count(options, end - start)
        since = not_before(start, state, None)
        return split(state.name, start, end, parts, way, state.created, since)
