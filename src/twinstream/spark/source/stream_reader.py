"""Streaming reads. Offsets are stream sequences, and only Spark's checkpoint stores them.

The reads use no acknowledgements and no durable consumer. So a batch can be read again at any time.
The result is the same as long as the stream still has the messages of the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from twinstream.spark.source.batch_planner import BatchPlanner
from twinstream.spark.source.batcher import Batcher
from twinstream.spark.source.bounds import Bound
from twinstream.spark.source.continuity import Continuity
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.limits.message_counts import MessageCounts
from twinstream.spark.source.offsets import Offset, Position
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import SequenceRange, read_way, split
from twinstream.spark.source.range_partition import partitions_of, range_partition
from twinstream.spark.source.range_task import read_batches
from twinstream.spark.source.removed_messages import not_before

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JetStreamStreamReader"]

_LATEST = Bound("startingOffsets", word="latest")


class JetStreamStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of a streaming query. The driver plans batches, and tasks read their ranges."""

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        Batcher(options, schema)  # raises an error for unknown columns before any task runs
        self._options = options
        self._schema = schema
        self._leader = Leader(options)
        self._counts = MessageCounts(options, self._leader)
        self._continuity = Continuity(options, self._leader.time_at)
        self._planner = BatchPlanner(options, self._leader, self._counts)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the offset at which a query without a checkpoint starts."""
        bound = self._options.start or _LATEST
        found: dict[str, Position] = {}
        for state in self._leader.states():
            start = self._continuity.first(
                bound, state, self._leader.seq_at, self._counts.start_of_last
            )
            found[state.name] = Position(
                start, state.created, self._filter, since=start, mark=state.mark
            )
        return Offset(found).to_json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return the offset at the end of the next batch, or `start` if no batch is due."""
        before = Offset.from_json(start)
        limited = not isinstance(limit, ReadAllAvailable)
        found = self._planner.next(before, limited=limited)
        return start if found is before else found.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return one of the limits that the options set, or `ReadAllAvailable` without limits.

        Spark accepts only one limit, and passes it to `latestOffset`. The source then applies all
        limits of the options, unless Spark requests all available data.
        """
        options = self._options
        if options.max_messages_per_trigger is not None:
            return ReadMaxRows(options.max_messages_per_trigger)
        if options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(options.max_bytes_per_trigger)
        if options.min_messages_per_trigger is not None:
            return ReadMinRows(options.min_messages_per_trigger)
        return ReadAllAvailable()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the offset at the end of the streams. Spark computes the query's lag from it."""
        states = self._leader.states()
        return Offset(
            {each.name: Position(each.next, each.created, self._filter) for each in states}
        ).to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Record the current end of each stream. The query then reads no later messages."""
        self._planner.aim_at_end()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the ranges of the batch between two offsets.

        Equal offsets give ranges with equal bounds, so that a repeated batch has the same rows.
        """
        before = Offset.from_json(start).streams
        states = {state.name: state for state in self._leader.states()}
        found: list[SequenceRange] = []
        for name, position in Offset.from_json(end).streams.items():
            if position == before.get(name):
                continue  # `since` is the start of the batch before
            low = position.since if position.since is not None else before[name].next
            if position.next > low:
                self._continuity.check_filter(position, name)
                mark = before[name].mark if name in before else None
                state = self._continuity.check_batch(low, position, states.get(name), name, mark)
                if state is not None:
                    way = read_way(self._options, state)
                    parts, since = position.parts, not_before(low, state, mark)
                    found += split(name, low, position.next, parts, way, state.created, since)
        return partitions_of(found)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the messages of one range, in a task."""
        batcher = Batcher(self._options, self._schema)
        return read_batches(self._options, batcher, range_partition(partition).value)

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing, because a read removes no messages from a stream."""

    def stop(self) -> None:
        """Close the driver's connection."""
        self._leader.close()

    @property
    def _filter(self) -> str:
        return ",".join(self._options.subjects)
