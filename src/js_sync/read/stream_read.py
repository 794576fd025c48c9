# Generated from src/js_async/read/stream_read.py by codegen/twin.py. Edit that file instead.
"""Reading a range of a stream without a consumer of one's own, to a proven end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from attrs import frozen

from twinstream.core.deadline import Deadline
from twinstream.errors import StreamNotFound
from twinstream.core.read.range_read import RangeRead
from twinstream.core.read.read_report import ReadEnd, ReadReport
from twinstream.core.read.read_request import ReadRequest, Via, choose
from twinstream.core.read.page import StoredPage
from twinstream.core.read.stream_message import StreamMessage
from twinstream.models import StreamInfo, Timestamp
from twinstream.models.error_codes import STREAM_NOT_FOUND
from js_sync.api.api import Api
from js_sync.api.leader_info import confirmed_info
from js_sync.read.get_message import first_seq_at
from js_sync.runtime.concurrency import BlockHint, LoopHint
from js_sync.runtime.concurrency import Stream as Generated
from js_sync.client.owned import Owned
from js_sync.read.stream_range import open_range
from js_sync.read.range_reader import RangeReader

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StreamRead"]


@frozen
class _Range:
    """The bounds of a read, and the way it goes, as decided when it began."""

    start: int
    end: int
    read: RangeRead
    reader: RangeReader
    via: Via
    created: Timestamp | None


class StreamRead(Owned, BlockHint, LoopHint):
    """Iterates over the messages of a range in order, each once; made by `Stream.read`.

    It ends when the range is complete; `report` tells how that is known. Raises `StreamNotFound`
    (at the end, too, if the stream was deleted and made anew meanwhile), another `JetStreamError`,
    or `RequestTimeout` when there was no progress for the whole timeout. If you may leave it before
    its end, close it, best by using it as a context manager.
    """

    def __init__(self, api: Api, stream: str, request: ReadRequest) -> None:
        super().__init__()
        self._api: Final = api
        self._stream: Final = stream
        self._request: Final = request
        self._range: _Range | None = None
        self._page = StoredPage()
        self._at = 0
        self._messages = 0
        self._position = 0
        self._asked = 0
        self._overtaken: int | None = None
        self._closed = False
        self._ended = False

    def __repr__(self) -> str:
        state = "ended" if self._ended else f"at sequence {self._position}"
        return f"<StreamRead {self._stream}: {state}>"

    @property
    def via(self) -> Via | None:
        """How it reads: `direct`, `consumer` or `leader`; None before the first page."""
        return self._range.via if self._range else None

    @property
    def report(self) -> ReadReport | None:
        """The account of the read, None until it ended."""
        range_, left = self._range, self._page.seqs[self._at :]
        if range_ is None:
            return None
        position = left[0] if left else self._position
        if position < range_.end and not self._closed:
            return None
        return ReadReport(
            stream=self._stream,
            start=range_.start,
            end=range_.end,
            messages=self._messages - len(left),
            position=position,
            reason=range_.read.reason if position >= range_.end else ReadEnd.CLOSED,
            overtaken_at=self._overtaken,
        )

    # ---- by message

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> StreamMessage:
        """Return the next message; the iteration ends with the range, or after `close`."""
        if self._at >= len(self._page):
            page = self.next_page()
            if page is None:
                raise StopIteration
            self._page, self._at = page, 0
        if self._closed:
            raise StopIteration
        at, self._at = self._at, self._at + 1
        return self._page.message(at, self._stream)

    # ---- by page

    def next_page(self) -> StoredPage | None:
        """Return the next messages as columns of raw parts, or None when the range is complete."""
        if self._closed:
            return None
        range_ = self._range or self._begin()
        page = range_.reader.next_page()
        looked = self._may_be_overtaken(page, range_.end)
        if looked:
            self._look_at_the_beginning()
        if page is None:
            range_.reader.close()
            if not (looked or self._ended):
                self._prove_the_same()
            self._ended = True
            self._position = range_.end
            return None
        self._messages += len(page)
        self._asked = self._position = page.seqs[-1] + 1
        return page

    def arrow_batches(self) -> Generated[pa.RecordBatch]:
        """Iterate over Arrow record batches, one a page, of `arrow_schema()`.

        Needs pyarrow; raises `Unsupported` without it, and at a sequence from 2**63 up.
        """
        from twinstream.core.read.arrow import record_batch, require_arrow

        require_arrow()
        while (page := self.next_page()) is not None:
            yield record_batch(page)

    def to_arrow(self) -> pa.Table:
        """Return the rest of the range as an Arrow table, all of it in memory. Needs pyarrow."""
        from twinstream.core.read.arrow import table

        return table([batch for batch in self.arrow_batches()])

    # ---- beginning and end

    def _begin(self) -> _Range:
        api, request = self._api, self._request
        info = self._info()
        start, end = self._bounds(info)
        version = api.transport.server_info.version_numbers
        via = choose(request.via, len(request.subjects), info.config, version)
        read = RangeRead(
            start, end, page_messages=request.page_messages, page_bytes=request.page_bytes
        )
        reader = open_range(
            api, self._stream, read, via, request.subjects, timeout=request.timeout, ahead=True
        )
        self._asked = self._position = start
        self._range = _Range(start, end, read, reader, via, info.created)
        return self._range

    def _bounds(self, info: StreamInfo) -> tuple[int, int]:
        request, behind = self._request, info.state.last_seq + 1
        start, end = request.start or 1, request.end or behind
        if request.start_time is not None:
            start = first_seq_at(self._api, self._stream, request.start_time, behind)
        if request.end_time is not None:
            end = first_seq_at(self._api, self._stream, request.end_time, behind)
        start = max(start, info.state.first_seq)
        end = min(end, behind)
        return min(start, end), end

    def _info(self) -> StreamInfo:
        deadline = Deadline.after(self._request.timeout)
        return confirmed_info(self._api, self._stream, deadline)

    def _may_be_overtaken(self, page: StoredPage | None, end: int) -> bool:
        """Tell whether messages are missing that the stream's limits could have removed."""
        if page is None:
            return self._asked < end
        return page.has_gaps or page.seqs[0] > self._asked

    def _prove_the_same(self) -> None:
        """Raise `StreamNotFound` if what was read is of two streams of this name."""
        if not self._messages:
            return
        try:
            info = self._info()
        except StreamNotFound:
            # It was deleted after the read: what was read is complete all the same.
            return
        self._check_created(info)

    def _check_created(self, info: StreamInfo) -> None:
        # A stream that was made anew counts from 1 again, so a read may go on in it unnoticed.
        if self._range is None or info.created == self._range.created:
            return
        raise StreamNotFound(
            f"stream {self._stream} was deleted and made anew at {info.created} while it was read:"
            " what was read is a mixture of both; read again",
            code=404,
            err_code=STREAM_NOT_FOUND,
        )

    def _look_at_the_beginning(self) -> None:
        info = self._info()
        self._check_created(info)
        first = info.state.first_seq
        if self._overtaken is None and first > self._asked:
            self._overtaken = first

    def close(self) -> None:
        """End the read and give back what the server keeps for it."""
        if not self._closed:
            self._closed = True
            if self._range is not None:
                self._range.reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_parents:
            self.close()
