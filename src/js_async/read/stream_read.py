"""Read a range of a stream to a proven end. The user need not create a consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, Self

from attrs import frozen

from js_async.api.api import Api
from js_async.api.leader_info import confirmed_info
from js_async.client.closable import Closable
from js_async.read.get_message import first_seq_at
from js_async.read.range_reader import RangeReader
from js_async.read.stream_range import open_range
from js_async.runtime.concurrency import BlockHint, Items, LoopHint
from js_async.runtime.opening import looped
from twinstream.core.deadline import Deadline
from twinstream.core.on_failure import AsyncOnFailure
from twinstream.core.read.page import StoredPage
from twinstream.core.read.range_read import RangeRead
from twinstream.core.read.read_report import ReadEnd, ReadReport
from twinstream.core.read.read_request import ReadRequest, Via, choose
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.payload import P
from twinstream.errors import StreamNotFound, Unsupported
from twinstream.models import StreamInfo, Timestamp
from twinstream.models.error_codes import STREAM_NOT_FOUND

if TYPE_CHECKING:
    import pyarrow as pa

    from twinstream.core.payloads.payloads import Payloads

__all__ = ["StreamRead"]


@frozen
class _Range:
    """The range and the method of a read, fixed at its beginning."""

    start: int
    end: int
    read: RangeRead
    reader: RangeReader
    via: Via
    created: Timestamp | None


class StreamRead(Closable, BlockHint, LoopHint, Generic[P]):
    """An iterator over the messages of a range, in order, each once. Created by `Stream.read`.

    The iterator ends when the range is complete. `report` then shows how the completeness was
    proven. If you may stop before the end, use the iterator as a context manager, or call `close`.

    Raises:
        StreamNotFound: The stream does not exist. Also raised at the end if the stream was deleted
            and re-created during the read.
        BadArgument: The stream does not allow the requested method.
        Unsupported: The server does not support the requested method.
        JetStreamError: The server refused a request.
        RequestTimeout: There was no progress for the whole timeout.
    """

    def __init__(
        self,
        api: Api,
        stream: str,
        request: ReadRequest,
        payloads: Payloads[P] | None = None,
    ) -> None:
        super().__init__()
        self._payloads: Final = payloads
        self._api: Final = api
        self._stream: Final = stream
        self._request: Final = request
        self._range: _Range | None = None
        self._page = StoredPage()
        self._at = 0
        self._messages = 0
        self._position = 0
        self._expected_seq = 0
        self._overtaken: int | None = None
        self._closed = False
        self._ended = False

    def __repr__(self) -> str:
        state = "ended" if self._ended else f"at sequence {self._position}"
        return f"<StreamRead {self._stream}: {state}>"

    @property
    def via(self) -> Via | None:
        """The method: `direct`, `consumer` or `leader`. None before the first page."""
        return self._range.via if self._range else None

    @property
    def report(self) -> ReadReport | None:
        """The report of the read, or None until it has ended."""
        range_, rest = self._range, self._page.seqs[self._at :]
        if range_ is None:
            return None
        position = rest[0] if rest else self._position
        if position < range_.end and not self._closed:
            return None
        return ReadReport(
            stream_name=self._stream,
            start=range_.start,
            end=range_.end,
            messages=self._messages - len(rest),
            position=position,
            reason=range_.read.reason if position >= range_.end else ReadEnd.CLOSED,
            overtaken_at=self._overtaken,
        )

    # ---- by message

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamMessage[P]:
        """Return the next message. The iteration ends with the range, or after `close`."""
        if self._at >= len(self._page):
            page = await self.next_page()
            if page is None:
                raise StopAsyncIteration
            self._page, self._at = page, 0
        if self._closed:
            raise StopAsyncIteration
        at, self._at = self._at, self._at + 1
        message: StreamMessage[Any] = self._page.message(at, self._stream)
        if self._payloads is None:
            return message
        from twinstream.core.read.typed_message import typed_message

        return typed_message(message, self._payloads)

    # ---- by page

    async def next_page(self) -> StoredPage | None:
        """Return the next page of messages as columns.

        Return None if the range is complete or the read is closed.
        """
        page = await self._next_page()
        # If `arrow_batches` began the read, the page has arrays, which `listed` converts.
        return None if page is None else page.listed()

    async def _next_page(self, *, bulk: bool = False) -> StoredPage | None:
        """Return the next page, or None at the end.

        If this call begins the read, `bulk` decides whether all pages have Arrow arrays.
        """
        if self._closed:
            return None
        range_ = self._range or await self._open_range(bulk=bulk)
        page = await range_.reader.next_page()
        looked = self._may_be_overtaken(page, range_.end)
        if looked:
            await self._check_first_seq()
        if page is None:
            await range_.reader.close()
            if not (looked or self._ended):
                await self._check_same_stream()
            self._ended = True
            self._position = range_.end
            return None
        self._messages += len(page)
        self._expected_seq = self._position = page.last_seq + 1
        return page

    @looped
    async def arrow_batches(self) -> Items[pa.RecordBatch]:
        """Iterate over Arrow record batches with `arrow_schema()`, one for each page.

        Raises `Unsupported` if pyarrow is not installed, and for sequences of 2**63 or more.
        """
        from twinstream.core.read.arrow import record_batch, require_arrow

        require_arrow()
        while (page := await self._next_page(bulk=True)) is not None:
            try:
                batch = record_batch(page)
            except Unsupported:
                # Each further call would raise the error, too.
                await self.close()
                raise
            yield batch

    async def to_arrow(self) -> pa.Table:
        """Return all messages that were not read yet as an Arrow table in memory.

        Raises `Unsupported` as `arrow_batches` does.
        """
        from twinstream.core.read.arrow import table

        # After a failure, no other call continues the read, because its messages are lost.
        async with AsyncOnFailure(self.close):
            return table([batch async for batch in self.arrow_batches()])

    # ---- opening and closing

    async def _open_range(self, *, bulk: bool) -> _Range:
        """Determine the bounds of the range, and open the reader for it."""
        api, request = self._api, self._request
        info = await self._info()
        start, end = await self._bounds(info)
        version = api.transport.server_info.version_numbers
        via = choose(request.via, len(request.subjects), info.config, version)
        read = RangeRead(
            start, end, page_messages=request.page_messages, page_bytes=request.page_bytes
        )
        reader = open_range(
            api,
            self._stream,
            read,
            via,
            request.subjects,
            timeout=request.timeout,
            ahead=True,
            bulk=bulk,
        )
        self._expected_seq = self._position = start
        self._range = _Range(start, end, read, reader, via, info.created)
        return self._range

    async def _bounds(self, info: StreamInfo) -> tuple[int, int]:
        request, behind = self._request, info.state.last_seq + 1
        start, end = request.start or 1, request.end or behind
        if request.start_time is not None:
            start = await first_seq_at(self._api, self._stream, request.start_time, behind)
        if request.end_time is not None:
            end = await first_seq_at(self._api, self._stream, request.end_time, behind)
        start = max(start, info.state.first_seq)
        end = min(end, behind)
        return min(start, end), end

    async def _info(self) -> StreamInfo:
        deadline = Deadline.after(self._request.timeout)
        return await confirmed_info(self._api, self._stream, deadline)

    def _may_be_overtaken(self, page: StoredPage | None, end: int) -> bool:
        """Return whether messages may have been removed from the stream before they were read."""
        if page is None:
            return self._expected_seq < end
        return page.has_gaps or page.first_seq > self._expected_seq

    async def _check_same_stream(self) -> None:
        """Raise `StreamNotFound` if the stream was re-created during the read.

        Do nothing if no message was read.
        """
        if not self._messages:
            return
        try:
            info = await self._info()
        except StreamNotFound:
            # The stream was deleted after the read, so the messages are complete.
            return
        self._check_created(info)

    def _check_created(self, info: StreamInfo) -> None:
        # A re-created stream begins at sequence 1 again, so the read could continue in it.
        if self._range is None or info.created == self._range.created:
            return
        raise StreamNotFound(
            f"stream {self._stream} was deleted and re-created at {info.created} during the read:"
            " the messages read are a mixture of both streams; read again",
            code=404,
            err_code=STREAM_NOT_FOUND,
        )

    async def _check_first_seq(self) -> None:
        info = await self._info()
        self._check_created(info)
        first = info.state.first_seq
        if self._overtaken is None and first > self._expected_seq:
            self._overtaken = first

    async def close(self) -> None:
        """End the read and release its resources."""
        if self._is_parents:
            return
        if not self._closed:
            self._closed = True
            if self._range is not None:
                await self._range.reader.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._is_parents:
            await self.close()
