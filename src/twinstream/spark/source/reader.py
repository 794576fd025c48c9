"""Batch reads: the driver plans ranges, and tasks read them.

Spark plans a Python source once for a DataFrame, and keeps the ranges. In a streaming query, these
ranges become stale: the static side of a join would never have the messages that are stored after
the first micro-batch, and would lose those that are replaced. So in a micro-batch the task of the
first range plans the read again and reads everything, and the other tasks read nothing. One task
must do it, because several tasks would plan at different moments, and could read a message twice or
not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from twinstream.spark.running import in_micro_batch
from twinstream.spark.source.batcher import Batcher
from twinstream.spark.source.bounds import Bound
from twinstream.spark.source.continuity import Continuity
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.limits.message_counts import MessageCounts
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import SequenceRange, partition_count, read_way, split
from twinstream.spark.source.range_partition import partitions_of, range_partition
from twinstream.spark.source.range_task import read_batches
from twinstream.spark.source.removed_messages import not_before
from twinstream.spark.source.stream_state import StreamState

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JetStreamReader"]

_EARLIEST = Bound("startingOffsets", word="earliest")
_LATEST = Bound("endingOffsets", word="latest")


class JetStreamReader(DataSourceReader):
    """The reader of a batch query. The bounds are resolved when Spark plans the query.

    In a streaming query, they are resolved again in each micro-batch, unless the option `refresh`
    is false or the end of the read is a sequence.
    """

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        Batcher(options, schema)  # raises an error for unknown columns before any task runs
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Request the state of each stream from its leader, and return the ranges to read."""
        return partitions_of(self._planned())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the messages of one range, in a task."""
        found = range_partition(partition)
        if not self._is_planned_again():
            return self._batches(found.value)
        return self._all_batches() if found.leads else iter(())

    def _is_planned_again(self) -> bool:
        end = self._options.end
        is_fixed = end is not None and end.is_fixed
        return self._options.refresh and not is_fixed and in_micro_batch()

    def _all_batches(self) -> Iterator[pa.RecordBatch]:
        for part in self._planned():
            yield from self._batches(part)

    def _planned(self) -> list[SequenceRange]:
        with Leader(self._options) as leader:
            return self._plan(leader)

    def _plan(self, leader: Leader) -> list[SequenceRange]:
        return [each for state in leader.states() for each in self._ranges(state, leader)]

    def _batches(self, part: SequenceRange) -> Iterator[pa.RecordBatch]:
        return read_batches(self._options, Batcher(self._options, self._schema), part)

    def _start(self, state: StreamState, leader: Leader) -> int:
        bound, counts = self._options.start or _EARLIEST, MessageCounts(self._options, leader)
        continuity = Continuity(self._options, leader.time_at)
        return continuity.first(bound, state, leader.seq_at, counts.start_of_last)

    def _ranges(self, state: StreamState, leader: Leader) -> list[SequenceRange]:
        options = self._options
        end = (options.end or _LATEST).resolve(state, leader.seq_at)
        start, end = max(self._start(state, leader), state.first), min(end, state.next)
        if end <= start:
            return []
        way = read_way(options, state)
        parts = partition_count(options, end - start)
        since = not_before(start, state, None)
        return split(state.name, start, end, parts, way, state.created, since)
