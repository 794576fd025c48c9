"""Watch the metadata of the objects of a store."""

from __future__ import annotations

from js_async.kv.watch import KeyWatch, StateWatch, WatchOptions
from js_async.object_store.infos import ObjectPlace
from twinstream.core.consume.metadata import Position
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.protocol import Frame
from twinstream.models import ObjectInfo, Timestamp
from twinstream.records.headers import Headers

__all__ = ["ObjectWatch", "open_watch"]


async def open_watch(place: ObjectPlace, *, updates_only: bool, deletes: bool) -> ObjectWatch:
    """Create a watch and return it. The watch covers every change after this call."""

    def read(frame: Frame, position: Position) -> ObjectInfo | None:
        subject, _, size, body = frame
        message = StreamMessage(
            stream_name=place.stream.name,
            subject=subject.decode("utf-8", "surrogateescape"),
            seq=position[0],
            time=Timestamp.from_ns(position[2]),
            data=body[size:-2],
            headers=Headers.parse(body[:size]) if size else Headers(),
        )
        info = place.listed(message)
        return info if deletes or not info.deleted else None

    filters = [place.subjects.all_infos.removeprefix(place.prefix)]
    steps = KeyWatch(place, read, filters, WatchOptions(updates_only=updates_only))
    await steps.follow()
    return ObjectWatch(steps)


class ObjectWatch(StateWatch[ObjectInfo]):
    """An iterator over the current and later metadata of objects. Created by `ObjectStore.watch`.

    The watch returns the metadata of each existing object, then the new metadata after each change:
    `initial` iterates over the existing objects only, and `is_current` becomes true with the last
    of them. It continues through reconnects and leader changes until it is closed. If metadata
    cannot be read, the returned `ObjectInfo` only has the name, and the reason as `error` in its
    `unknown` members. If the store is deleted and re-created, the watch returns the metadata of
    each object of the new store.

    The iteration raises `BucketNotFound` if the store was deleted, and `ConnectionClosed` if the
    connection was closed.
    """
