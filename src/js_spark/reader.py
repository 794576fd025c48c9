"""Batch reads: plan ranges on the driver, read them in tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from js_spark.batcher import Batcher
from js_spark.bounds import Bound
from js_spark.errors import DataLossError, OptionError
from js_spark.options import SourceOptions
from js_spark.plan import SequenceRange, partition_count, split
from js_spark.range_task import read_batches
from js_spark.stream_state import StreamState, stream_state

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JetStreamReader"]

_EARLIEST = Bound("startingOffsets", word="earliest")
_LATEST = Bound("endingOffsets", word="latest")


class JetStreamReader(DataSourceReader):
    """Reads what the streams hold between two bounds, resolved once when the query starts."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        Batcher(options, schema)  # refuses columns that are not there before anything runs
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Return the ranges to read; asks the leader of each stream."""
        options = self._options
        with options.connection.connect() as nc:
            connection = options.connection
            jet = nc.jetstream(domain=connection.domain, prefix=connection.api_prefix)
            states = [stream_state(jet, name) for name in options.streams]
        found: list[InputPartition] = []
        for state in states:
            found += _ranges(options, state)
        # Spark turns an empty list into one partition without a value; an empty range says more.
        return found or [SequenceRange(states[0].name, 1, 1, direct=True)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one range in a task."""
        if not isinstance(partition, SequenceRange):
            raise TypeError(f"not a partition of this source: {partition!r}")
        return read_batches(self._options, Batcher(self._options, self._schema), partition)


def _ranges(options: SourceOptions, state: StreamState) -> list[SequenceRange]:
    low, high = options.start or _EARLIEST, options.end or _LATEST
    start, end = low.resolve(state), high.resolve(state)
    if options.fail_on_data_loss:
        _refuse_loss(low, state, start)
    start, end = max(start, state.first), min(end, state.next)
    if end <= start:
        return []
    direct = reads_direct(options, state)
    return split(state, start, end, partition_count(options, end - start), direct=direct)


def _refuse_loss(low: Bound, state: StreamState, start: int) -> None:
    if low.is_explicit and start < state.first:
        raise DataLossError(
            f"stream {state.name}: startingOffsets asks for sequence {start}, but the first one"
            f" left is {state.first}; start at {state.first} or 'earliest', or set"
            " failOnDataLoss=false to read what there is"
        )


def reads_direct(options: SourceOptions, state: StreamState) -> bool:
    """Return whether direct get reads the stream. Raises `OptionError` where it cannot."""
    if options.read_mode == "auto":
        return state.allow_direct
    if options.read_mode == "direct" and not state.allow_direct:
        raise OptionError(
            "readMode",
            f"'direct' needs allow_direct on stream {state.name}; set it, or use 'auto'",
        )
    return options.read_mode == "direct"
