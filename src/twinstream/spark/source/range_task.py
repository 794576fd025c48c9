"""The work of a read task: read one range on the task's own connection and yield its messages."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING

from js_sync.jetstream import range_reader
from twinstream.core.read.arrow_page import ArrowPage
from twinstream.errors import JetStreamError, NoResponders, PermissionDenied, TwinstreamError
from twinstream.models import Timestamp
from twinstream.spark.client.retry import through
from twinstream.spark.errors import DataLossError
from twinstream.spark.source.batcher import Batcher
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import SequenceRange
from twinstream.spark.source.removed_messages import why_lost
from twinstream.spark.source.sequence_gaps import SequenceGaps
from twinstream.spark.source.stream_state import StreamState, stream_state

if TYPE_CHECKING:
    import pyarrow as pa

    from js_sync import JetStream
    from js_sync.read.range_reader import RangeReader
    from twinstream.core.read.page import StoredPage

__all__ = ["read_batches", "read_pages", "refuse_other"]


def read_batches(
    options: SourceOptions, batcher: Batcher, part: SequenceRange
) -> Iterator[pa.RecordBatch]:
    """Yield the messages of a range as record batches, in the order of their sequences."""
    for page in read_pages(options, part):
        yield batcher.build(page, part.stream)


def read_pages(options: SourceOptions, part: SequenceRange) -> Iterator[ArrowPage]:
    """Yield the messages of a range, in the order of their sequences.

    The next page is requested before a page is yielded. While the query processes the page, the
    connection receives the next page in the background. So a slow query does not stop the server in
    the middle of a response.

    Raises `DataLossError` if messages of the range were lost or the stream was re-created, unless
    `failOnDataLoss` is false.
    """
    if part.end <= part.start:
        return
    connection = options.connection
    with connection.connect_in_task(options.fetch_timeout) as nc, Leader(options) as leader:
        jet = nc.jetstream(domain=connection.domain, prefix=connection.api_prefix)
        _check_stream(jet, options, part)
        reader, page = _open_reader(jet, options, part)
        gaps = SequenceGaps(part.start, part.end)

        def check_gap(gap: int | None, since: str | None) -> None:
            if gap is not None and options.fail_on_data_loss:
                _check_gap(_request_context(leader, jet), options, part, gap, since)

        # Messages from a gap on were not stored before the last message below the gap.
        since = part.since
        try:
            while page is not None:
                found = ArrowPage.of(page)
                gap = gaps.in_page(found.seqs)
                check_gap(gap, since if gap is None else _time_below(found, gap) or since)
                yield found
                since = _time_below(found, part.end) or since
                page = reader.next_page()
        finally:
            reader.close()
        check_gap(gaps.at_end(), since)


def _open_reader(
    jet: JetStream, options: SourceOptions, part: SequenceRange
) -> tuple[RangeReader, StoredPage | None]:
    """Return a reader of the range, and the first page or `None` if the range has no messages."""
    if part.by_consumer:
        reader = _reader(jet, options, part, direct=False)
        try:
            return reader, reader.next_page()
        except TwinstreamError as error:
            reader.close()
            # If the server refuses the consumer, for example because the stream has its maximum
            # number of consumers, read the range with direct get, which needs no consumer.
            # `NoResponders` means that no server responded, which is no refusal of the consumer.
            is_refused = isinstance(error, JetStreamError | PermissionDenied) and not isinstance(
                error, NoResponders
            )
            if part.way == "consumer" or not is_refused:
                raise
    reader = _reader(jet, options, part, direct=True)
    return reader, reader.next_page()


def _reader(
    jet: JetStream, options: SourceOptions, part: SequenceRange, *, direct: bool
) -> RangeReader:
    """Return a reader of the range, by direct get or by a consumer, that requests pages ahead."""
    return range_reader(
        jet,
        part.stream,
        part.start,
        part.end,
        filter_subjects=options.subjects,
        direct=direct,
        idle_timeout=options.fetch_timeout,
        page_messages=options.page_messages,
        ahead=True,
        bulk=True,
    )


def _state(jet: JetStream, options: SourceOptions, part: SequenceRange) -> StreamState:
    """Request the state of the range's stream, and return it."""
    return through(lambda: stream_state(jet, part.stream, options.bucket), options.fetch_timeout)


def _check_stream(jet: JetStream, options: SourceOptions, part: SequenceRange) -> None:
    if part.created and options.fail_on_data_loss:
        refuse_other(_state(jet, options, part), part)


def refuse_other(state: StreamState, part: SequenceRange) -> None:
    """Raise `DataLossError` if the stream was re-created since the range was planned."""
    if part.created and state.created != part.created:
        raise DataLossError(
            f"stream {part.stream} was created at {state.created}, the read was planned for one"
            f" created at {part.created}: it was deleted and re-created; load the DataFrame again"
            " or replace the view; for a query, write to a new table with its own checkpoint"
        )


def _request_context(leader: Leader, jet: JetStream) -> JetStream:
    """Return a JetStream context for requests while a page is being received.

    It uses a second connection, because a response on the reader's connection would arrive only
    after the whole page. The first call opens the second connection. If the server does not accept
    it, the context of the reader's connection is returned.
    """
    try:
        return leader.jet()
    except TwinstreamError:
        return jet


def _time_below(page: ArrowPage, seq: int) -> str | None:
    """Return when the last message below sequence `seq` in a page was stored (RFC 3339).

    Return `None` if the page has no such message.
    """
    count = bisect_left(range(len(page)), seq, key=lambda at: page.seqs[at].as_py())
    return Timestamp.from_ns(page.times[count - 1].value).rfc3339() if count else None


def _check_gap(
    jet: JetStream, options: SourceOptions, part: SequenceRange, gap: int, since: str | None
) -> None:
    """Raise `DataLossError` if messages were lost from a gap that begins at the sequence `gap`.

    Limits remove messages from the start of a stream. So if the stream still starts at or below
    `gap`, no limit has removed messages from the gap, and nothing is raised. `since` is a time
    before which no message from the gap on was stored, or `None`.
    """
    state = _state(jet, options, part)
    refuse_other(state, part)
    if state.first <= gap:
        return
    if reason := why_lost(state, gap, since):
        raise DataLossError(
            f"stream {part.stream}: messages from {gap} to {min(state.first, part.end) - 1} were"
            f" removed before they were read: {reason}; set failOnDataLoss=false to continue with"
            " the messages that are left"
        )
