"""Watch the metadata of the objects of a store."""

from __future__ import annotations

from collections import deque
from typing import Final, Self

from js_async.client.owned import Owned
from js_async.consume.message import Message
from js_async.consume.ordered import buffer_of
from js_async.consume.ordered_buffer import OrderedBuffer
from js_async.object_store.infos import ObjectPlace
from js_async.runtime.concurrency import BlockHint, LoopHint, TimedLock
from twinstream.core.consume.batch import BatchEnd
from twinstream.core.deadline import NEVER, Deadline, Seconds
from twinstream.core.on_failure import AsyncOnFailure
from twinstream.core.read.stream_message import StreamMessage
from twinstream.errors import IterationEnded, RequestTimeout
from twinstream.errors.object_store import store_errors
from twinstream.models import ObjectInfo, Timestamp

__all__ = ["ObjectWatch", "open_watch"]

_BATCH: Final = 500


async def open_watch(place: ObjectPlace, *, updates_only: bool, deletes: bool) -> ObjectWatch:
    """Create a watch and return it. The watch covers every change after this call."""
    subjects = place.subjects.all_infos
    if updates_only:
        behind = (await place.stream.info(confirmed=True)).state.last_seq + 1
        messages = buffer_of(place.stream.ordered(subjects=subjects, start_seq=behind))
        async with AsyncOnFailure(messages.close):
            # If the store is re-created later, the consumer notices that the sequences restart.
            deadline = place.api.deadline()
            await messages.open(deadline)
            await messages.pull_ahead(deadline)
    else:
        every = place.stream.ordered(subjects=subjects, deliver_policy="last_per_subject")
        messages = buffer_of(every)
    return ObjectWatch(place, messages, updates_only, deletes)


class ObjectWatch(Owned, BlockHint, LoopHint):
    """An iterator over the current and later metadata of objects. Created by `ObjectStore.watch`.

    The watch returns the metadata of each existing object, then None once, then the new metadata
    after each change. It continues through reconnects and leader changes until it is closed. If
    metadata cannot be read, the returned `ObjectInfo` only has the name, and the reason as `error`
    in its `unknown` members. If the store is deleted and re-created, the watch returns the metadata
    of each object of the new store. It returns None only once.

    The iteration raises `BucketNotFound` if the store was deleted, and `ConnectionClosed` if the
    connection was closed.
    """

    def __init__(
        self, place: ObjectPlace, messages: OrderedBuffer, updates_only: bool, deletes: bool
    ) -> None:
        super().__init__()
        self._place: Final = place
        self._messages: Final = messages
        self._deletes: Final = deletes
        self._taking: Final = TimedLock()
        self._initial: Final[deque[ObjectInfo]] = deque()
        self._has_all = updates_only
        self.is_current = False
        """Whether the watch has returned None, which follows the initial metadata."""

    def __repr__(self) -> str:
        return f"<ObjectWatch of {self._place.bucket} at {self.revision}>"

    @property
    def revision(self) -> int:
        """The revision of the last received metadata, even if it was not returned yet."""
        return self._messages.position

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ObjectInfo | None:
        """Return the next `ObjectInfo`, or None once after the initial metadata.

        The iteration ends after `close`.
        """
        try:
            return await self._take(NEVER)
        except IterationEnded:
            raise StopAsyncIteration from None

    async def next(self, timeout: Seconds | None = None) -> ObjectInfo | None:
        """Return the next `ObjectInfo`, or None once after the initial metadata.

        Args:
            timeout: Maximum time to wait in seconds; by default there is no limit.

        Raises:
            RequestTimeout: The time has passed.
            IterationEnded: The watch was closed.
        """
        return await self._take(Deadline.after(timeout))

    async def _take(self, deadline: Deadline) -> ObjectInfo | None:
        held = await self._taking.acquire(deadline)
        try:
            if not held:
                raise RequestTimeout(
                    "no description in time: another caller is waiting for this watch"
                )
            with store_errors(self._place.bucket):
                return await self._take_next(deadline)
        finally:
            self._taking.release(held)

    async def _take_next(self, deadline: Deadline) -> ObjectInfo | None:
        while not self.is_current:
            if self._messages.is_ended:
                raise IterationEnded("the watch was closed")
            if self._initial:
                return self._initial.popleft()
            if self._has_all:
                # Metadata that is replaced between two calls is delivered nevertheless.
                await self._messages.pull_ahead(self._place.api.deadline().earlier(deadline.at))
                self.is_current = True
                return None
            await self._receive(deadline)
        while True:
            message = await self._messages.take(deadline)
            if message is None:
                raise IterationEnded("the watch was closed")
            info = self._read(message)
            if info is not None:
                return info
            if deadline.expired():
                raise RequestTimeout("no description in time")

    async def _receive(self, deadline: Deadline) -> None:
        """Receive the next batch of initial metadata.

        If the server does not respond to the request, the method returns without metadata, or
        raises `RequestTimeout` if the deadline has passed.
        """
        try:
            batch = await self._messages.fetch(_BATCH, wait="none")
        except RequestTimeout:
            if deadline.expired():
                raise
            return
        self._initial.extend(info for info in map(self._read, batch) if info is not None)
        self._has_all = batch.reason is BatchEnd.NO_MESSAGES
        if batch.reason is BatchEnd.EXPIRED:
            # The server may respond with errors only. Then the ordered consumer misses no
            # heartbeat and does not notice the failure, so it is replaced.
            await self._messages.renew("it did not answer within the time of a request")
            if deadline.expired():
                raise RequestTimeout("no description in time: the consumer did not answer")

    def _read(self, message: Message) -> ObjectInfo | None:
        metadata = message.metadata
        stored = StreamMessage(
            stream=metadata.stream,
            subject=message.subject,
            seq=metadata.stream_seq,
            time=Timestamp.from_ns(metadata.timestamp_ns),
            data=message.data,
            headers=message.headers,
        )
        info = self._place.listed(stored)
        return info if self._deletes or not info.deleted else None

    async def close(self) -> None:
        """End the watch. Further calls do nothing."""
        if self._is_parents:
            return
        await self._messages.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._is_parents:
            await self.close()
