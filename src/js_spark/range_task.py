"""What a task does: read one range over a connection of its own and yield record batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from js_spark.batcher import Batcher
from js_spark.errors import DataLossError
from js_spark.options import SourceOptions
from js_spark.plan import SequenceRange
from js_spark.stream_state import stream_state

if TYPE_CHECKING:
    import pyarrow as pa

    from js_sync import JetStream

__all__ = ["read_batches"]


def read_batches(
    options: SourceOptions, batcher: Batcher, part: SequenceRange
) -> Iterator[pa.RecordBatch]:
    """Yield the messages of a range, in the order of their sequences.

    A page is read to its end before it is handed on: a query that takes its time never leaves
    the server with a half-sent answer.
    """
    if part.end <= part.start:
        return
    connection = options.connection
    with connection.connect() as nc:
        jet = nc.jetstream(domain=connection.domain, prefix=connection.api_prefix)
        reader = jet.range_reader(
            part.stream,
            part.start,
            part.end,
            filter_subjects=options.subjects,
            direct=part.direct,
            timeout=options.fetch_timeout,
            page_messages=options.page_messages,
        )
        try:
            while (page := reader.next_page()) is not None:
                yield batcher.build(page, part.stream)
        finally:
            reader.close()
        if options.fail_on_data_loss and reader.first_seq != part.start:
            _refuse_overtaken(jet, part)


def _refuse_overtaken(jet: JetStream, part: SequenceRange) -> None:
    """Tell messages that were never there (gaps are normal) from those that went while reading."""
    state = stream_state(jet, part.stream)
    if state.first > part.start:
        raise DataLossError(
            f"stream {part.stream}: the limits of the stream removed messages from {part.start} to"
            f" {min(state.first, part.end) - 1} before they were read; set failOnDataLoss=false to"
            " go on with what is left"
        )
