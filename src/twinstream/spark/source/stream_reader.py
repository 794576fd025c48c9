"""Streaming reads. Offsets are stream sequences, and only Spark's checkpoint stores them.

The reads use no acknowledgements and no durable consumer. So a batch can be read again at any time.
The result is the same as long as the stream still has the messages of the batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from twinstream.spark.source.batcher import Batcher
from twinstream.spark.source.bounds import Bound
from twinstream.spark.source.continuity import Continuity
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.limits.backlog import Backlog
from twinstream.spark.source.limits.batch_limits import read_limit
from twinstream.spark.source.limits.message_counts import MessageCounts
from twinstream.spark.source.offsets import Offset, Position
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import SequenceRange, partition_count, read_way, split
from twinstream.spark.source.range_task import read_batches
from twinstream.spark.source.removed_messages import not_before
from twinstream.spark.source.stream_state import StreamState

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JetStreamStreamReader"]

_LATEST = Bound("startingOffsets", word="latest")


class JetStreamStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of a streaming query. The driver plans batches, and tasks read their ranges."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        Batcher(options, schema)  # raises an error for unknown columns before any task runs
        self._options = options
        self._schema = schema
        self._leader = Leader(options)
        self._counts = MessageCounts(options, self._leader)
        self._continuity = Continuity(options, self._leader.time_at)
        self._target: dict[str, int] | None = None
        self._admitted_at = time.monotonic()

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
        states = {state.name: state for state in self._leader.states()}
        begin = self._continuity.begin(Offset.from_json(start), states)
        backlog = Backlog(
            {
                name: (begin[name].next, max(begin[name].next, self._end_of(state)))
                for name, state in states.items()
            },
            states,
            self._options,
            self._counts,
        )
        ends = backlog.ends
        if not isinstance(limit, ReadAllAvailable):
            waited = time.monotonic() - self._admitted_at
            # A query with the trigger `availableNow` must not wait for messages that it would not
            # read.
            if self._target is None and backlog.is_too_little(waited):
                return start
            ends = backlog.limited()
        if all(begin[name].next == end for name, end in ends.items()):
            return start
        self._admitted_at = time.monotonic()
        return Offset(
            {
                name: self._advance(begin[name], end, states[name], backlog.messages(name, end))
                for name, end in ends.items()
            }
        ).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return one of the limits that the options set; see `read_limit`."""
        return read_limit(self._options)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the offset at the end of the streams. Spark computes the query's lag from it."""
        states = self._leader.states()
        return Offset(
            {each.name: Position(each.next, each.created, self._filter) for each in states}
        ).to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Record the current end of each stream. The query then reads no later messages."""
        self._target = {state.name: state.next for state in self._leader.states()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the ranges of the batch between two offsets.

        Equal offsets give ranges with equal bounds, so that a repeated batch has the same rows.
        """
        before = Offset.from_json(start).streams
        states = {state.name: state for state in self._leader.states()}
        found: list[InputPartition] = []
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
        # Spark replaces an empty list by one partition that is `None`, so return an empty range.
        return found or [SequenceRange("", 1, 1, "direct")]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the messages of one range, in a task."""
        if not isinstance(partition, SequenceRange):
            raise TypeError(f"not a partition of this source: {partition!r}")
        return read_batches(self._options, Batcher(self._options, self._schema), partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing, because a read removes no messages from a stream."""

    def stop(self) -> None:
        """Close the driver's connection."""
        self._leader.close()

    @property
    def _filter(self) -> str:
        return ",".join(self._options.subjects)

    def _end_of(self, state: StreamState) -> int:
        if self._target is None:
            return state.next
        # The next run reads a stream that was created since.
        return min(state.next, self._target.get(state.name, state.first))

    def _advance(self, position: Position, end: int, state: StreamState, messages: int) -> Position:
        if end == position.next:
            return position
        return Position(
            end,
            position.created,
            self._filter,
            partition_count(self._options, messages),
            position.since,
            state.mark,
        )
