"""A store of objects of any size, kept in one stream (ADR-20)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from js_async.api.api import Api
from js_async.object_store.infos import ObjectPlace, object_place
from js_async.object_store.put import WINDOW, ObjectUpload
from js_async.object_store.reader import ObjectReader, chunk_index
from js_async.object_store.source import ObjectSource
from js_async.runtime.concurrency import Stream as Generated
from js_async.runtime.concurrency import whole
from js_async.runtime.opening import Opening, opening
from js_async.stream import Stream
from twinstream.core.base.check_arguments import check_kind, check_whole
from twinstream.core.base.check_callbacks import check_told
from twinstream.core.deadline import Seconds, seconds
from twinstream.core.object_store.changes import (
    KEEP,
    Keep,
    Swept,
    changed_info,
    check_free,
    check_target,
    deleted_info,
    link_info,
    orphans,
)
from twinstream.core.object_store.chunks import ContentRange, ObjectProgress
from twinstream.core.object_store.config import ObjectStoreStatus
from twinstream.core.object_store.errors import LinkError, ObjectChanged
from twinstream.core.object_store.info import ObjectMeta, is_link, listed_info, read_info
from twinstream.core.object_store.names import check_bucket, check_object_name, stream_of
from twinstream.core.wire.headers import HeaderValues
from twinstream.models import ObjectInfo, StreamInfo

if TYPE_CHECKING:
    from js_async.object_store.watch import ObjectWatch

__all__ = ["ObjectStore"]

_PATIENCE: Final = 120.0
# A third of it is what passes before a chunk is sent again whose acknowledgement is lost.
_FOR_A_CHUNK: Final = 60.0
_DAY: Final = 86_400.0


class ObjectStore:
    """Objects of any size under names; made by `JetStream.get_object_store` and its kin.

    An object is a sequence of bytes with a description (`ObjectInfo`). Others read an object as it
    was or as it is, never a mixture, while it is replaced.
    """

    def __init__(self, api: Api, bucket: str, info: StreamInfo | None) -> None:
        self._api: Final = api
        self.bucket: Final = check_bucket(bucket)
        """The name of the store."""
        self.stream: Final = Stream(api, stream_of(bucket), info)
        """The stream that the store is kept in."""
        self._known: ObjectPlace | None = None

    def __repr__(self) -> str:
        return f"<ObjectStore {self.bucket}>"

    async def _place(self) -> ObjectPlace:
        if self._known is None:
            self._known = await object_place(self._api, self.bucket, self.stream)
        return self._known

    # ---- storing

    async def put(
        self,
        name: str | ObjectMeta,
        source: ObjectSource,
        *,
        digest: str | None = None,
        window: int = WINDOW,
        timeout: Seconds = _FOR_A_CHUNK,
        on_progress: Callable[[ObjectProgress], None] | None = None,
    ) -> ObjectInfo:
        """Store an object, in the place of what has its name, and return its description.

        The source is bytes, a binary file or an iterable of bytes; it is read once, and memory
        holds about `window` bytes of it, which are in flight. `digest` is what the content must
        have, `SHA-256=` and the hash in base64. `timeout` is how many seconds a chunk may wait for
        its acknowledgement, behind all that is in flight. Of two clients that put one name at once,
        the later one counts. When the call fails, the name has the object that it had before.

        Raises `PutFailed`, `DigestMismatch` for another `digest`, `BadArgument`, `OutcomeUnknown`
        when the description may be stored or not, and what the source raises.
        """
        meta = ObjectMeta.of(name)
        upload = ObjectUpload(
            await self._place(),
            meta,
            window=window,
            digest=digest,
            timeout=seconds(timeout),
            on_progress=on_progress,
        )
        return await upload.run(source)

    async def put_file(
        self,
        path: str | Path,
        name: str | ObjectMeta | None = None,
        *,
        digest: str | None = None,
        window: int = WINDOW,
        timeout: Seconds = _FOR_A_CHUNK,
        on_progress: Callable[[ObjectProgress], None] | None = None,
    ) -> ObjectInfo:
        """Store a file of this machine; its name, without folders, unless one is given.

        Raises `OSError`, and what `put` does.
        """
        from js_async.backup.disk import open_regular
        from twinstream.core.base.local_path import local_path

        source = local_path(path)
        file = await whole(lambda: open_regular(source))
        try:
            return await self.put(
                source.name if name is None else name,
                file,
                digest=digest,
                window=window,
                timeout=timeout,
                on_progress=on_progress,
            )
        finally:
            await whole(file.close)

    # ---- reading

    def get(
        self,
        name: str,
        *,
        start: int = 0,
        end: int | None = None,
        follow: bool = True,
        timeout: Seconds = _PATIENCE,
        on_progress: Callable[[ObjectProgress], None] | None = None,
    ) -> Opening[ObjectReader]:
        """Return a reader of an object's content; close it, best by a `with` block.

        It reads the bytes from `start` up to, not including, `end`; by default all, which are
        verified by the digest. A part is not: only that its chunks are all there, by a consumer
        that lists them. A link is followed unless `follow` is off. `timeout` is how many seconds
        there may be no progress. Raises `ObjectNotFound`, `ObjectDeleted`, `LinkError`.
        """
        check_told(on_progress, "on_progress")
        check_whole(start, "start", least=0)
        if end is not None:
            check_whole(end, "end", least=0)
        return opening(self._open(name, start, end, follow, seconds(timeout), on_progress))

    async def _open(
        self,
        name: str,
        start: int,
        end: int | None,
        follow: bool,
        timeout: float,
        on_progress: Callable[[ObjectProgress], None] | None,
    ) -> ObjectReader:
        place, info = await self._find(name, follow)
        if start == 0 and end is None:
            return ObjectReader(place, info, timeout, on_progress)
        index, size = await chunk_index(place, info), info.size or 0
        part = ContentRange(info, index, start, size if end is None else min(end, size))
        return ObjectReader(place, info, timeout, on_progress, part, part.first_seq)

    async def _find(self, name: str, follow: bool) -> tuple[ObjectPlace, ObjectInfo]:
        place = await self._place()
        if follow:
            return await place.followed(name)
        info = await place.info(name)
        if is_link(info):
            raise LinkError(
                f"object {name!r} of bucket {self.bucket} is a link, and has no content"
            )
        return place, info

    async def get_bytes(
        self, name: str, *, max_bytes: int | None = None, timeout: Seconds = _PATIENCE
    ) -> bytes:
        """Return the content of an object, all of it in memory.

        Raises `BadArgument` for one of more than `max_bytes`, and what `get` and its reader do.
        """
        async with self.get(name, timeout=timeout) as reader:
            return await reader.read_all(max_bytes)

    async def get_file(
        self,
        name: str,
        path: str | Path,
        *,
        resume: bool = False,
        timeout: Seconds = _PATIENCE,
        on_progress: Callable[[ObjectProgress], None] | None = None,
    ) -> ObjectInfo:
        """Write the content of an object to a file, in the place of what is there.

        The file gets its name when its content is verified and on the disk; only its owner may
        read it. With `resume` a part that was received before a failure stays beside it, under a
        hidden name, and the next call goes on behind it. Raises `OSError`, and what `get` and its
        reader do.
        """
        from js_async.object_store.files import get_file
        from twinstream.core.base.local_path import local_path

        check_told(on_progress, "on_progress")
        place, info = await self._find(name, follow=True)
        return await get_file(
            place,
            info,
            local_path(path),
            resume=resume,
            timeout=seconds(timeout),
            on_progress=on_progress,
        )

    # ---- descriptions

    async def info(self, name: str, *, deleted: bool = False) -> ObjectInfo:
        """Return the description of an object, or of a link itself.

        With `deleted` also of an object that was deleted. Raises `ObjectNotFound`,
        `ObjectDeleted`, `BadObjectInfo`.
        """
        return await (await self._place()).info(check_object_name(name), deleted=deleted)

    async def list(
        self, *, deleted: bool = False, timeout: Seconds = _PATIENCE
    ) -> Generated[ObjectInfo]:
        """Iterate over the descriptions of all objects, as of one moment, oldest first.

        All of them are in memory at once. `timeout` is how many seconds there may be no progress.
        A description that cannot be read has only a name, and
        the reason as `error` in its `unknown` members.
        """
        place = await self._place()
        stored = await place.stream.snapshot(place.subjects.all_infos, timeout=timeout)
        for message in stored.values():
            info = listed_info(message, self.bucket)
            if deleted or not info.deleted:
                yield info

    def watch(self, *, updates_only: bool = False, deletes: bool = True) -> Opening[ObjectWatch]:
        """Iterate over the descriptions of objects: of all that are there, and of all changes.

        None says that those that were there at the beginning are over; with `updates_only` it is
        the first. Without `deletes` deleted objects are left out.
        """
        return opening(self._watch(updates_only, deletes))

    async def _watch(self, updates_only: bool, deletes: bool) -> ObjectWatch:
        from js_async.object_store.watch import open_watch

        return await open_watch(await self._place(), updates_only=updates_only, deletes=deletes)

    # ---- changing

    async def update_meta(
        self,
        name: str,
        *,
        new_name: str | None = None,
        description: str | Keep | None = KEEP,
        headers: HeaderValues | Keep | None = KEEP,
        metadata: Mapping[str, str] | Keep | None = KEEP,
    ) -> ObjectInfo:
        """Change the description of an object, or its name, and return the new description.

        What is not given stays; None removes it. The content is not sent again. Links to an object
        that gets another name lead nowhere from then on. Raises `ObjectNotFound`, `ObjectDeleted`,
        `ObjectExists` for a name that is in use, `ObjectChanged` when the object was replaced
        while it got its name, and what `JetStream.publish` does.
        """
        place = await self._place()
        check_object_name(name)
        if new_name is not None and check_object_name(new_name) != name:
            return await self._rename(place, name, new_name, description, headers, metadata)

        def edit(info: ObjectInfo | None) -> ObjectInfo:
            return changed_info(place.existing(name, info), name, description, headers, metadata)

        return (await place.replace(name, edit)).new

    async def _rename(
        self,
        place: ObjectPlace,
        name: str,
        new_name: str,
        description: str | Keep | None,
        headers: HeaderValues | Keep | None,
        metadata: Mapping[str, str] | Keep | None,
    ) -> ObjectInfo:
        old = await place.info(name)

        def edit(info: ObjectInfo | None) -> ObjectInfo:
            check_free(info, self.bucket, links=False)
            return changed_info(old, new_name, description, headers, metadata)

        new = (await place.replace(new_name, edit)).new
        now = await place.last(name)
        if now is None or now.seq != old.revision:
            # Its content is gone, or belongs to another name: the new name must not lead to it.
            await place.remove(place.subjects.info(new_name), new.revision or 0)
            raise ObjectChanged(
                f"object {name!r} of bucket {self.bucket} was changed while it got the name"
                f" {new_name!r}: it keeps its own"
            )
        await place.remove(now.subject, now.seq)
        return new

    async def delete(self, name: str) -> ObjectInfo:
        """Delete an object and its content, and return what is left of its description.

        Deleting it again removes what may be left of its content. Raises `ObjectNotFound`.
        """
        place = await self._place()
        check_object_name(name)
        info = await place.info(name, deleted=True)
        if not info.deleted:
            replaced = await place.replace(
                name, lambda now: deleted_info(place.existing(name, now, deleted=True))
            )
            info = replaced.new
        if info.nuid:
            await place.remove_content(info.nuid)
        return info

    async def add_link(self, name: str | ObjectMeta, target: ObjectInfo) -> ObjectInfo:
        """Make a link to an object of this store or another, and return its description.

        A link of that name is replaced. Getting a link gets what its target has then. Raises
        `ObjectExists`, and `LinkError` for a target that is a link itself or deleted.
        """
        check_kind(target, ObjectInfo, "target", "the ObjectInfo of an object")
        place = await self._place()
        found = await place.target(target)
        return await self._link(name, found.bucket or self.bucket, found)

    async def add_bucket_link(self, name: str | ObjectMeta, bucket: str) -> ObjectInfo:
        """Make a link to a whole store, and return its description.

        It tells programs of the store: `info(name).options.link` has its bucket. Raises
        `ObjectExists`, and `LinkError` for a link to the store that it is in.
        """
        if check_bucket(bucket) == self.bucket:
            raise LinkError(f"a link in bucket {bucket} cannot lead to the bucket itself")
        return await self._link(name, bucket, None)

    async def _link(
        self, name: str | ObjectMeta, bucket: str, target: ObjectInfo | None
    ) -> ObjectInfo:
        place, meta = await self._place(), ObjectMeta.of(name)
        if target is not None:
            check_target(meta.name, self.bucket, target)

        def make(info: ObjectInfo | None) -> ObjectInfo:
            check_free(info, self.bucket, links=True)
            nuid = self._api.transport.tokens.name()
            return link_info(meta, self.bucket, nuid, bucket, target.name if target else None)

        return (await place.replace(meta.name, make)).new

    # ---- the whole store

    async def status(self, *, timeout: Seconds | None = None) -> ObjectStoreStatus:
        """Ask for settings and size of the store. Raises `StreamNotFound`."""
        return ObjectStoreStatus.of(await self.stream.info(timeout=timeout))

    async def seal(self, *, timeout: Seconds | None = None) -> ObjectStoreStatus:
        """Have nothing added or removed any more, not even by its `ttl`. There is no way back.

        What failed uploads left stays, too: `sweep` first.
        """
        return ObjectStoreStatus.of(await self.stream.seal(timeout=timeout))

    async def sweep(
        self, *, older_than: Seconds = _DAY, dry_run: bool = False, timeout: Seconds = _PATIENCE
    ) -> Swept:
        """Remove content that belongs to no object, such as that of uploads that were killed.

        Content is kept if its last chunk was stored less than `older_than` seconds ago, because the
        upload may still be running. With `dry_run` nothing is removed. `timeout` is the longest
        time without progress, in seconds. Raises `BadObjectInfo` if the description of an object
        cannot be read, because it is then unknown which content belongs to that object.
        """
        age = seconds(older_than, "older_than")
        place = await self._place()
        place.check_writable()
        chunks = {
            each: count async for each, count in self.stream.subjects(place.subjects.all_chunks)
        }
        # After the chunks: whatever was stored by now is known.
        stored = await self.stream.snapshot(place.subjects.all_infos, timeout=timeout)
        infos = [read_info(message, self.bucket) for message in stored.values()]
        uploads = messages = 0
        for subject, count in orphans(place.subjects, chunks, infos).items():
            if not await place.is_older(subject, age):
                continue
            uploads += 1
            messages += count if dry_run else await self.stream.purge(subject=subject)
        return Swept(uploads=uploads, chunks=messages)
