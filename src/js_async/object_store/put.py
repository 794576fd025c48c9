"""Store an object: first its chunks, with several in flight, then its metadata (`ObjectInfo`).

Theory of operation
-------------------
The chunks of an upload are published under a new unique name (NUID). Readers and other writers do
not see them until metadata with this NUID replaces the previous metadata.

The metadata is published after every chunk is acknowledged, and only if the acknowledged sequences
rise in the order of sending. If the server refuses a chunk and it is sent again, it may be stored
after later chunks. In this case the later chunks are removed and sent again, with fewer bytes in
flight. So the source is read only once, and only the bytes in flight are in memory.

If the upload fails before the metadata is sent, or if the server refuses the metadata, the chunks
are removed. If it is unknown whether the metadata was stored, the chunks are kept, because the
object may exist.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, Self

from js_async.object_store.content import OldContent
from js_async.object_store.infos import ObjectPlace, Replaced, StoredElsewhere
from js_async.object_store.source import ObjectSource, pieces, size_of
from js_async.publish.publish import PublishedMessage
from js_async.publish.publisher import Publisher, PublishHandle
from js_async.runtime.concurrency import aside, shielded
from twinstream.core.arguments.check_arguments import check_whole
from twinstream.core.arguments.check_callbacks import check_callback
from twinstream.core.object_store.chunks import Chunker, ObjectProgress, chunk_size
from twinstream.core.object_store.info import ObjectMeta, digest_bytes, digest_text, new_info
from twinstream.core.object_store.retry import ObjectRetry
from twinstream.core.on_failure import AsyncOnError
from twinstream.core.publish.limits import PublishLimits
from twinstream.errors import (
    BadArgument,
    ConnectionClosed,
    ConnectionLost,
    DigestMismatch,
    InvalidResponse,
    ObjectPutFailed,
    OutcomeUnknown,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.errors.object_store import StoreErrors
from twinstream.models import ObjectInfo
from twinstream.records.publish_request import PublishRequest

__all__ = ["WINDOW", "ObjectUpload"]

WINDOW: Final = 8 << 20
"""Maximum bytes of chunks in flight."""

# Pieces below this size in bytes are hashed by the calling thread.
_SMALL: Final = 16 * 1024
# Errors that are raised unchanged. Any other `TwinstreamError` becomes the cause of a
# `ObjectPutFailed`.
_RAISED_UNCHANGED: Final = (BadArgument, DigestMismatch)
# Errors after which it is unknown whether the metadata was stored.
_UNKNOWN: Final = (
    InvalidResponse,
    ConnectionClosed,
    ConnectionLost,
    OutcomeUnknown,
    RequestTimeout,
)


class ObjectUpload:
    """A single upload of an object."""

    def __init__(
        self,
        place: ObjectPlace,
        meta: ObjectMeta,
        old_content: OldContent,
        *,
        window: int,
        digest: str | None,
        timeout: float,
        on_progress: Callable[[ObjectProgress], None] | None,
    ) -> None:
        place.check_writable()
        check_callback(on_progress, "on_progress")
        self._place: Final = place
        self._meta: Final = meta
        self._old_content: Final = old_content
        self._wanted: Final = None if digest is None else digest_bytes(digest)
        self._on_progress: Final = on_progress
        self._nuid: Final = place.api.transport.tokens.name()
        limit = place.api.transport.server_info.max_payload
        self._chunker: Final = Chunker(
            chunk_size(meta.chunk_size, limit, place.config.max_msg_size)
        )
        self._chunks: Final = _Chunks(
            place, self._nuid, check_whole(window, "window"), timeout, self._report_progress
        )
        self._size: int | None = None
        # Whether the metadata was sent, so that the object may be stored.
        self._is_sent = False

    async def run(self, source: ObjectSource) -> ObjectInfo:
        """Store the content of a source and return the metadata of the object."""
        observers, stream = self._place.api.transport.observers, self._place.stream.name
        if observers is None:
            return await self._run(source)
        with observers.begin("transfer", "put", self._meta.name, stream=stream) as operation:
            info = await self._run(source)
            operation.size = info.size
            return info

    async def _run(self, source: ObjectSource) -> ObjectInfo:
        """Send the content, store the metadata, and remove the content that it replaces."""
        self._size = size_of(source)

        def describe(_: ObjectInfo | None) -> ObjectInfo:
            self._is_sent = True
            return info

        async with AsyncOnError(self._clean_up):
            with StoreErrors(self._place.bucket):
                async with self._chunks:
                    await self._send(source)
                info = self._new_info()
                replaced = await self._place.replace(
                    self._meta.name, describe, content=self._chunks
                )
        await self._remove_old(replaced)
        return replaced.new

    async def _clean_up(self, error: BaseException) -> None:
        """Remove the chunks, unless the object may be stored. Raise an error of the SDK."""
        name = self._meta.name
        if self._is_sent and not _is_refusal(error):
            if isinstance(error, TwinstreamError):
                raise _unknown(name, error) from error
            return
        failed = ObjectPutFailed(f"object {name!r} is not stored: {error}")
        failed.cleaned = await self._remove_chunks(error)
        if isinstance(error, TwinstreamError) and not isinstance(error, _RAISED_UNCHANGED):
            raise failed from error

    async def _send(self, source: ObjectSource) -> None:
        """Cut the content into chunks, send them and wait for their acknowledgements."""
        chunker, chunks = self._chunker, self._chunks
        async for piece in pieces(source):
            if len(piece) < _SMALL:
                chunker.hash(piece)
            else:
                await aside(partial(chunker.hash, piece))
            for chunk in chunker.cut(piece):
                await chunks.send(chunk)
        last = chunker.last()
        if last:
            await chunks.send(last)
        await chunks.flush()

    def _new_info(self) -> ObjectInfo:
        """Return the metadata of the content that was sent.

        Raises `DigestMismatch` if the caller gave another digest.
        """
        chunker = self._chunker
        sha = chunker.sha.digest()
        if self._wanted is not None and sha != self._wanted:
            raise DigestMismatch(
                f"object {self._meta.name!r}: the content has the digest {digest_text(sha)}, which"
                " is not the one that was given"
            )
        return new_info(
            self._meta,
            self._place.bucket,
            self._nuid,
            chunk_size=chunker.chunk_size,
            size=chunker.size,
            chunks=self._chunks.count,
            sha=sha,
        )

    def _report_progress(self, transferred: int) -> None:
        if self._on_progress is not None:
            name = self._meta.name
            self._on_progress(ObjectProgress(name=name, transferred=transferred, size=self._size))

    async def _remove_chunks(self, error: BaseException) -> bool:
        """Remove the chunks, even after a cancellation; return whether that succeeded."""
        failures: list[TwinstreamError] = []

        async def clean() -> None:
            try:
                if self._chunks.count:
                    await self._chunks.settle()
                    # Also after the deadline of the call.
                    place = self._place.until(None)
                    await place.remove_content(self._nuid)
                    if isinstance(error, StoredElsewhere):
                        await place.remove_content_elsewhere(self._nuid, error.domain)
            except TwinstreamError as failure:
                failures.append(failure)

        await shielded(clean)
        if isinstance(error, StoredElsewhere):
            # The stores take turns to acknowledge, and either may store a chunk after its removal.
            failures.append(error)
        for failure in failures:
            where = self._place.bucket
            if isinstance(error, StoredElsewhere):
                where += f" of this domain and of domain {error.domain}"
            error.add_note(
                f"chunks of object {self._meta.name!r} may remain in bucket {where}, call sweep()"
                f" later: {failure}"
            )
        return not failures

    async def _remove_old(self, replaced: Replaced) -> None:
        """Remove the content that was replaced."""
        old = replaced.old
        # A deleted object has no chunks any more, unless its deletion was interrupted.
        if old is None or not old.nuid or not (old.chunks or old.deleted):
            return
        await self._old_content.try_to_remove(old, self._place.deadline)


def _is_refusal(error: BaseException) -> bool:
    """Return whether an error proves that the metadata was not stored."""
    return isinstance(error, TwinstreamError) and not isinstance(error, _UNKNOWN)


def _unknown(name: str, error: TwinstreamError) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"object {name!r}: it is unknown whether it was stored, request its info: {error}"
    )


class _Chunks:
    """The chunks of one object, sent in order with at most `window` bytes in flight.

    The first chunk is held back until another one follows. The only chunk of a small object is
    published without a `Publisher`, which would start a background task or thread, and together
    with the request for the object's metadata.
    """

    def __init__(
        self,
        place: ObjectPlace,
        nuid: str,
        window: int,
        timeout: float,
        report: Callable[[int], None],
    ) -> None:
        self._place: Final = place
        self._timeout: Final = min(timeout, place.left or timeout)
        self._nuid: Final = nuid
        self._subject: Final = place.subjects.chunks(nuid)
        self._window = window
        self._report: Final = report
        api = place.api
        limits = PublishLimits(window_bytes=2 * window, timeout=self._timeout, retry=ObjectRetry())
        self._publisher: Final = Publisher(api, limits, raise_failures=False)
        self._held: bytes | None = None
        # The only chunk, until its outcome is known.
        self._alone: PublishedMessage | None = None
        self._in_flight: Final[deque[PublishHandle]] = deque()
        self._bytes = 0
        self._stored = 0
        self._last_seq = 0
        self._sent = 0
        self.count = 0
        """The number of chunks that `send` has received."""

    async def send(self, chunk: bytes) -> None:
        """Send a chunk. Waits while the window is full."""
        self.count += 1
        if self.count == 1:
            self._held = chunk
            return
        held, self._held = self._held, None
        if held is not None:
            await self._send(held)
        await self._send(chunk)

    async def flush(self) -> None:
        """Send the only chunk, or wait until all chunks are stored."""
        if self._held is not None:
            request = self._request(self._held)
            api = self._place.api
            policy = ObjectRetry()
            self._alone = PublishedMessage(api, request, policy, self._timeout, early=True)
        while self._in_flight:
            await self._first_in_flight()

    async def finish(self) -> None:
        """Wait until the only chunk is stored, after `flush`."""
        if self._alone is None:
            return
        ack = await self._alone.acknowledged()
        size = len(self._alone.request.data)
        self._alone = None
        self._place.check_ack(ack)
        self._report(size)

    async def settle(self) -> None:
        """Wait until no chunk can be stored any more, after an interruption.

        The server ignores a second message with the same id, and its response proves that the first
        one was processed. Without a response, `ObjectStore.sweep` removes the chunk later.
        """
        if self._alone is not None:
            self._alone.forget()
            request = self._alone.request
            with suppress(TwinstreamError):
                repeat = PublishedMessage(self._place.api, request, ObjectRetry(), self._timeout)
                await repeat.acknowledged()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: Any) -> None:
        # Does nothing if no chunk was sent with the publisher.
        await self._publisher.__aexit__(*raised)

    def _request(self, chunk: bytes) -> PublishRequest:
        # A removed chunk is sent again with a new message id, because the server would drop a
        # second message with the same id.
        self._sent += 1
        return PublishRequest(
            self._subject,
            chunk,
            msg_id=f"{self._nuid}.{self._sent}",
            expected_stream=self._place.stream.name,
        )

    async def _send(self, chunk: bytes) -> None:
        self._place.check_time()
        while self._in_flight and self._bytes + len(chunk) > self._window:
            await self._first_in_flight()
        self._in_flight.append(await self._publisher.send(self._request(chunk)))
        self._bytes += len(chunk)
        while self._in_flight and self._in_flight[0].is_done:
            await self._first_in_flight()

    async def _first_in_flight(self) -> None:
        """Wait for the acknowledgement of the first chunk in flight.

        If this chunk is stored before the previous one, all chunks in flight are sent again.
        """
        ack = await self._in_flight[0].result()
        self._place.check_ack(ack)
        if ack.seq <= self._last_seq:
            await self._roll_back()
            return
        self._last_seq = ack.seq
        size = len(self._in_flight.popleft().request.data)
        self._bytes -= size
        self._stored += size
        self._report(self._stored)

    async def _roll_back(self) -> None:
        """Remove the chunks in flight from the stream, and send them again.

        This is necessary if the server refused the last settled chunk at first. That chunk was sent
        again, so the stream stored it after the chunks in flight.
        """
        acks = [await handle.result() for handle in self._in_flight]
        for ack in acks:
            self._place.check_ack(ack)
        for ack in acks:
            await self._place.remove_message(ack.seq)
        payloads = [handle.request.data for handle in self._in_flight]
        self._in_flight.clear()
        self._bytes = 0
        self._window = max(self._window // 2, 1)
        for chunk in payloads:
            await self._send(chunk)
