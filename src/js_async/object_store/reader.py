"""Read the content of an object in order, with a limited amount of memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from js_async.client.closable import Closable
from js_async.object_store.infos import ObjectPlace
from js_async.read.range_reader import RangeReader
from js_async.read.stream_range import open_range
from js_async.runtime.concurrency import BlockHint, LoopHint, whole
from twinstream.core.object_store.chunks import Content, ContentRange, ObjectProgress
from twinstream.core.object_store.info import is_link
from twinstream.core.read.page import StoredPage
from twinstream.core.read.range_read import RangeRead
from twinstream.core.read.read_request import Via, choose
from twinstream.errors import (
    BadArgument,
    DigestMismatch,
    ObjectChanged,
    ObjectIncomplete,
    TwinstreamError,
)
from twinstream.errors.object_store import StoreErrors
from twinstream.models import ObjectInfo

if TYPE_CHECKING:
    from twinstream.core.observe.operation import Operation

__all__ = ["ObjectReader", "next_portion", "restart"]

# Maximum messages and bytes of a page. One further page is requested ahead.
_PAGE_MESSAGES: Final = 20_000
_PAGE_BYTES: Final = 8 << 20


class ObjectReader(Closable, BlockHint, LoopHint):
    """The content of an object. Created by `ObjectStore.get`.

    Iterate over the reader to get pieces of arbitrary size, or call `read` as for a file.

    A reader of the whole object compares the content with the stored digest before it returns the
    last piece. If the object is replaced before the first piece was returned, this reader starts
    again with the new content.

    Raises:
        DigestMismatch: The content does not match the stored digest.
        ObjectIncomplete: Chunks are missing from the stream.
        ObjectChanged: The object was replaced, deleted or renamed during the read.
        RequestTimeout: There was no progress for the whole timeout.
        JetStreamError: The server refused a request.
    """

    def __init__(
        self,
        place: ObjectPlace,
        info: ObjectInfo,
        timeout: float,
        on_progress: Callable[[ObjectProgress], None] | None,
        content: Content | ContentRange | None = None,
        first_seq: int = 1,
    ) -> None:
        super().__init__()
        self.info = info
        """The metadata of the object."""
        self._place: Final = place
        self._timeout: Final = timeout
        self._on_progress: Final = on_progress
        # Whether the whole content is read from its beginning. Only such a read can go on with
        # another content.
        self._is_plain: Final = content is None
        self._content = content or Content(info)
        self._first_seq = first_seq
        # How chunks are read; None means the best way that the stream allows.
        self._via: Via | None = None
        self._reader: RangeReader | None = None
        # Received pieces that the next calls return.
        self._ready: Final[deque[bytes]] = deque()
        # Number of bytes returned so far, plus those that an earlier call wrote to a file.
        self._returned = content.size if isinstance(content, Content) else 0
        self._closed = False
        self._operation: Operation | None = None
        # The error that ended the read. Each further call raises it.
        self._error: TwinstreamError | None = None

    def __repr__(self) -> str:
        return f"<ObjectReader {self.info.name!r}: {self._returned} bytes read>"

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """Return the next piece. The iteration ends after the content, or after `close`."""
        await self._fill()
        if not self._ready:
            raise StopAsyncIteration
        return self._counted(self._ready.popleft())

    async def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes, by default all remaining bytes.

        The result is empty at the end of the content.
        """
        if size < 0:
            return await self.read_all()
        await self._fill()
        if not self._ready or not size:
            return b""
        piece = self._ready.popleft()
        if len(piece) > size:
            self._ready.appendleft(piece[size:])
            piece = piece[:size]
        return self._counted(piece)

    async def read_all(self, max_bytes: int | None = None) -> bytes:
        """Return all remaining bytes.

        Raises `BadArgument` if the object has more than `max_bytes` bytes.
        """
        if max_bytes is not None and (self.info.size or 0) > max_bytes:
            raise BadArgument(
                f"object {self.info.name!r} has {self.info.size} bytes, more than"
                f" max_bytes={max_bytes}"
            )
        found: list[bytes] = []
        is_at_start = not self._returned
        while True:
            try:
                while portion := await next_portion(self):
                    found += portion
            except DigestMismatch:
                if not (is_at_start and await restart(self)):
                    raise
                found.clear()
            else:
                return b"".join(found)

    def _counted(self, piece: bytes) -> bytes:
        self._returned += len(piece)
        if self._on_progress is not None:
            name, size = self.info.name, self._content.total
            self._on_progress(ObjectProgress(name=name, transferred=self._returned, size=size))
        return piece

    async def _fill(self) -> None:
        """Receive data until a piece can be returned, or until the content has ended."""
        if self._error is not None:
            raise self._error
        try:
            with StoreErrors(self._place.bucket):
                try:
                    await self._receive()
                except DigestMismatch:
                    if self._returned or not await restart(self):
                        raise
                    await self._receive()
        except (DigestMismatch, ObjectChanged, ObjectIncomplete) as error:
            self._error = error
            if self._operation is not None:
                self._operation.end(error)
            raise

    async def _receive(self) -> None:
        """Receive pages until some content is ready, all content was read, or the reader closes."""
        while not (self._ready or self._content.is_whole or self._closed):
            if self._reader is None:
                self._reader = self._open()
                self._begin_operation()
            self._place.check_time()
            page = await self._reader.next_page()
            if page is None:
                await self._look_again()
                continue
            # A page is received only once, so it is processed completely even after a cancellation.
            # `whole` computes the hash without blocking other tasks or threads.
            await whole(partial(self._take, page))
        if self._content.is_whole and not self._ready:
            await self.close()

    def _take(self, page: StoredPage) -> None:
        content = self._content
        if isinstance(content, Content):
            self._ready.extend(content.take(page.payloads))
        else:
            self._ready.extend(content.take(page.seqs, page.payloads))

    def _begin_operation(self) -> None:
        observers = self._place.api.transport.observers
        if observers is not None and self._operation is None:
            stream = self._place.stream.name
            self._operation = observers.begin("transfer", "get", self.info.name, stream=stream)

    def _open(self) -> RangeReader:
        """Return a reader for the chunks of the object, from the first missing chunk on."""
        place = self._place
        version = place.api.transport.server_info.version_numbers
        # The range ends before the metadata, which has a higher sequence than every chunk.
        read = RangeRead(
            self._first_seq,
            max(self.info.revision or 1, self._first_seq),
            page_messages=_PAGE_MESSAGES,
            page_bytes=_PAGE_BYTES,
        )
        return open_range(
            place.api,
            place.stream.name,
            read,
            self._via or choose(None, 1, place.config, version),
            [place.subjects.chunks(self.info.nuid)],
            timeout=min(self._timeout, place.left or self._timeout),
            ahead=True,
        )

    async def _end_pages(self) -> None:
        """Let the next page come from a new reader of the stream."""
        if self._reader is not None:
            await self._reader.close()
            self._reader = None

    async def _look_again(self) -> None:
        """Find out why chunks are missing.

        If the object was replaced, and a new start is possible, the next page is read from the new
        content. Otherwise, this raises an error.
        """
        info, content = self.info, self._content
        await self._end_pages()
        now = await self._place.find(info.name)
        if now is not None and now.nuid == info.nuid and not now.deleted:
            raise ObjectIncomplete(
                f"object {info.name!r} of bucket {self._place.bucket} has {content.chunks} of"
                f" {info.chunks} chunks: the others were removed from the stream, by its limits"
                " perhaps"
            )
        if now is None or now.deleted or is_link(now) or self._returned or not self._is_plain:
            raise ObjectChanged(
                f"object {info.name!r} of bucket {self._place.bucket} was replaced, deleted or"
                " renamed while it was read: get it again"
            )
        self.info = now
        self._content = Content(now)

    async def close(self) -> None:
        """End the read. Further calls do nothing."""
        if self._is_parents:
            return
        if not self._closed:
            self._closed = True
            if self._operation is not None:
                self._operation.size = self._returned + sum(map(len, self._ready))
                self._operation.end()
            if self._reader is not None:
                await self._reader.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._is_parents:
            await self.close()


async def next_portion(reader: ObjectReader) -> list[bytes]:
    """Return all pieces that a reader has received; an empty result means the end."""
    await reader._fill()
    found = list(reader._ready)
    reader._ready.clear()
    for piece in found:
        reader._counted(piece)
    return found


async def restart(reader: ObjectReader) -> bool:
    """Let a reader read the whole content again from the leader, after a `DigestMismatch`.

    A replica that lags may still have chunks that an upload has removed and sent again. Return
    False if the chunks came from the leader, or if only a part is read.
    """
    if reader._via == "leader" or isinstance(reader._content, ContentRange):
        return False
    await reader._end_pages()
    reader._via, reader._first_seq, reader._content = "leader", 1, Content(reader.info)
    reader._ready.clear()
    reader._returned, reader._error = 0, None
    return True
