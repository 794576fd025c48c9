"""List the chunks of an object, completely even if a replica of the stream lags."""

from __future__ import annotations

from typing import Any, Final

from js_async.consume.message import Message
from js_async.object_store.infos import ObjectPlace
from js_async.runtime.concurrency import sleep
from twinstream.core.consume.batch import BatchEnd
from twinstream.core.deadline import Backoff
from twinstream.core.object_store.chunks import StoredChunk, check_index, sent_number
from twinstream.errors import ObjectIncomplete, RequestTimeout
from twinstream.models import ObjectInfo
from twinstream.models.digits import natural
from twinstream.records.headers import appended

__all__ = ["chunk_index"]

_SIZE: Final = "Nats-Msg-Size"
_ID: Final = "Nats-Msg-Id"
# The pauses while a replica catches up, in seconds.
_LAGGING: Final = Backoff(0.01, 0.25)


async def chunk_index(place: ObjectPlace, info: ObjectInfo) -> list[StoredChunk]:
    """Return the sequence and the size of each chunk of an object, in order.

    A replica that lags may lack chunks, and may have chunks that an upload has removed and sent
    again. Then the chunks are listed again.

    Raises `ObjectIncomplete` if chunks are missing, and `RequestTimeout` if the replica has not
    caught up in time.
    """
    if not info.chunks:
        return check_index(info, [])
    deadline = place.deadline or place.api.deadline()
    for pause in _LAGGING:
        listing = await _listed(place, info)
        if listing.is_in_order:
            try:
                return check_index(info, listing.chunks)
            except ObjectIncomplete:
                if await _count(place, info) == listing.messages:
                    raise
        if deadline.remaining() <= pause:
            break
        await sleep(pause)
    raise RequestTimeout(
        f"object {info.name!r} of bucket {place.bucket}: the replica that lists its chunks has not"
        " caught up with the leader in time, get it again later"
    )


class _Listing:
    """The chunks that a replica has."""

    def __init__(self) -> None:
        self.chunks: list[StoredChunk] = []
        self.messages = 0
        """The number of messages. Other clients end an object with an empty one."""
        self.is_in_order = True
        """Whether the chunks are in the order in which the upload has sent them."""
        self._number = 0

    def add(self, message: Message[Any], nuid: str | None) -> None:
        """Add a message without its payload."""
        self.messages += 1
        size = natural(appended(message.headers, _SIZE))
        if size:
            self.chunks.append(StoredChunk(message.metadata.stream_seq, size))
        number = sent_number(message.headers.get(_ID), nuid)
        if number is not None:
            self.is_in_order = self.is_in_order and number > self._number
            self._number = number


async def _listed(place: ObjectPlace, info: ObjectInfo) -> _Listing:
    found, reason = _Listing(), None
    subject = place.subjects.chunks(info.nuid)
    async with place.stream.ordered(subjects=subject, headers_only=True) as messages:
        while reason is not BatchEnd.NO_MESSAGES:
            batch = await messages.fetch(1000, wait="none")
            reason = batch.reason
            for message in batch:
                found.add(message, info.nuid)
    return found


async def _count(place: ObjectPlace, info: ObjectInfo) -> int:
    """Return how many messages of the content the leader has."""
    subjects = place.stream.subjects(place.subjects.chunks(info.nuid), timeout=place.left)
    return sum([count async for _, count in subjects])
