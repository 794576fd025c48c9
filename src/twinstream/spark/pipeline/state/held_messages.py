"""Read which messages of a range a stream has now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from js_sync.jetstream import range_reader
from twinstream.core.read.arrow_page import ArrowPage
from twinstream.spark.pipeline.state.landed_rows import MESSAGES
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import read_way
from twinstream.spark.source.stream_state import stream_state

if TYPE_CHECKING:
    from js_sync import JetStream

__all__ = ["held_messages", "windows"]

WINDOW: Final = 50_000
"""The maximum number of sequences that are compared at once, which need some 10 MB of memory."""


def windows(low: int, high: int, size: int = WINDOW) -> Iterator[tuple[int, int]]:
    """Split `[low, high)` into windows of at most `size` sequences."""
    for start in range(low, high, size):
        yield start, min(start + size, high)


def held_messages(jet: JetStream, options: SourceOptions, low: int, high: int) -> pa.Table:
    """Return the stream's messages in `[low, high)` that the filters match.

    The table has the schema `MESSAGES`: the sequence and the time of each message. As in the
    source, a range reader reads the messages, so no message is missing and no message is read
    twice.
    """
    (name,) = options.streams
    state = stream_state(jet, name)
    found: list[pa.RecordBatch] = []
    reader = range_reader(
        jet,
        name,
        max(low, state.first),
        max(high, state.first),
        filter_subjects=options.subjects,
        direct=read_way(options, state) != "consumer",
        idle_timeout=options.fetch_timeout,
    )
    try:
        while (page := reader.next_page()) is not None:
            messages = ArrowPage.of(page)
            seqs = messages.seqs.cast(MESSAGES.field("seq").type)
            times = messages.times.cast(MESSAGES.field("time").type, safe=False)
            found.append(pa.RecordBatch.from_arrays([seqs, times], schema=MESSAGES))
    finally:
        reader.close()
    return pa.Table.from_batches(found, schema=MESSAGES)
