"""An object store: objects of arbitrary size in one stream (ADR-20)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, Never

from js_async.api.api import Api
from js_async.object_store.chunk_index import chunk_index
from js_async.object_store.content import OldContent
from js_async.object_store.infos import ObjectPlace, object_place
from js_async.object_store.put import WINDOW, ObjectUpload
from js_async.object_store.reader import ObjectReader
from js_async.object_store.source import ObjectSource
from js_async.runtime.concurrency import Items, shielded, whole
from js_async.runtime.opening import Opening, looped, opening, opens
from js_async.stream import Stream
from twinstream.core.arguments.check_arguments import check_kind, check_whole
from twinstream.core.arguments.check_callbacks import check_callback
from twinstream.core.arguments.nats_py_names import hint_attributes, unknown_keyword
from twinstream.core.arguments.wrong_statement import NoContainer
from twinstream.core.deadline import Deadline, Seconds, seconds
from twinstream.core.object_store.changes import (
    Needed,
    SweepResult,
    changed_info,
    check_free,
    check_target,
    deleted_info,
    is_same_object,
    link_info,
    orphans,
)
from twinstream.core.object_store.chunks import ContentRange, ObjectProgress
from twinstream.core.object_store.config import ObjectStoreStatus, store_status
from twinstream.core.object_store.info import ObjectMeta, is_link, listed_info, object_meta
from twinstream.core.object_store.names import check_bucket, check_object_name, stream_of
from twinstream.core.read.direct_get import last_request
from twinstream.errors import (
    InvalidObjectInfo,
    LinkError,
    MessageNotFound,
    ObjectChanged,
    ObjectNotFound,
    TwinstreamError,
)
from twinstream.errors.object_store import StoreErrors
from twinstream.models import ObjectInfo, ObjectStoreConfig, StreamInfo
from twinstream.records.headers import HeaderValues

if TYPE_CHECKING:
    from js_async.object_store.watch import ObjectWatch

__all__ = ["ObjectStore", "place_of"]

# Default timeout of calls that read many messages: seconds without progress.
_PATIENCE: Final = 120.0
# Default timeout of `put` in seconds. If a chunk is not acknowledged within a third of this time,
# it is sent again.
_FOR_A_CHUNK: Final = 60.0
_DAY: Final = 86_400.0


@hint_attributes
class ObjectStore(NoContainer):
    """A store of named objects. Get one from `JetStream.get_object_store` or `create_object_store`.

    An object is a sequence of bytes of any length with metadata (`ObjectInfo`). While an object is
    being replaced, a reader gets either the old or the new content, never a mixture. If the content
    is removed during a read, the reader raises `ObjectChanged`.

    `timeout` is the maximum number of seconds of a whole call. The default is that of the JetStream
    context; calls that transfer content have no limit by default. Calls whose length depends on the
    amount of data have `idle_timeout`: the maximum number of seconds without progress.

    Each call raises `BucketNotFound` if the store does not exist.
    """

    _get, _missing, _list = "info(name)", "ObjectNotFound", "list()"

    def __init__(self, api: Api, bucket: str, info: StreamInfo | None) -> None:
        self._api: Final = api
        self.bucket: Final = check_bucket(bucket)
        """The name of the store."""
        self._stream: Final = Stream(api, stream_of(bucket), info)
        self._known: ObjectPlace | None = None
        self._old_content: OldContent | None = None

    def __repr__(self) -> str:
        return f"<ObjectStore {self.bucket}>"

    @property
    def stream_name(self) -> str:
        """The name of the stream that stores the objects."""
        return self._stream.name

    @property
    def cached_status(self) -> ObjectStoreStatus | None:
        """The status in the last stream info that the server sent to this object, or None."""
        info = self._stream.cached_info
        return None if info is None else store_status(info)

    async def _place(self, deadline: Deadline | None = None) -> ObjectPlace:
        """Return the place of the store; with a deadline, one whose requests end at it."""
        if self._known is None:
            self._known = await object_place(self._api, self.bucket, self._stream, deadline)
        return self._known if deadline is None else self._known.until(deadline)

    def _old(self, place: ObjectPlace) -> OldContent:
        if self._old_content is None:
            self._old_content = OldContent(place.until(None))
        return self._old_content

    # ---- storing

    async def put(
        self,
        name: str | ObjectMeta,
        source: ObjectSource,
        *,
        digest: str | None = None,
        window: int = WINDOW,
        idle_timeout: Seconds = _FOR_A_CHUNK,
        timeout: Seconds | None = None,
        on_progress: Callable[[ObjectProgress], None] | None = None,
        **_unknown: Never,
    ) -> ObjectInfo:
        """Store an object under its name, replacing an existing one, and return its metadata.

        If two clients store the same name at the same time, the later write replaces the earlier
        one. If the call fails, the previous object remains, unless the outcome is unknown.

        Args:
            name: The name of the object, or an `ObjectMeta` with further settings.
            source: Bytes, a binary file or an iterable of bytes. It is read only once.
            digest: The expected digest of the content: `SHA-256=` and the hash in base64.
            window: Maximum bytes in flight, by default 8 MiB. The call uses about this amount of
                memory.
            idle_timeout: Maximum seconds until a chunk is acknowledged, including the time for the
                chunks that were sent before it.
            timeout: Maximum seconds of the whole call; by default there is no limit. No chunk is
                sent and no description is stored after it.
            on_progress: Called with the progress after each acknowledgement.

        Raises:
            ObjectPutFailed: The object was not stored.
            DigestMismatch: The content does not have the given `digest`.
            BadArgument: An argument is invalid, or the store is a mirror.
            OutcomeUnknown: The metadata may or may not have been stored.
            Exception: The error that the source raised.
        """
        if _unknown:
            raise unknown_keyword("ObjectStore.put", _unknown)
        meta = object_meta(name)
        deadline = None if timeout is None else self._api.deadline(timeout)
        with StoreErrors(self.bucket):
            place = await self._place(deadline)
            upload = ObjectUpload(
                place,
                meta,
                self._old(place),
                window=window,
                digest=digest,
                timeout=seconds(idle_timeout, "idle_timeout"),
                on_progress=on_progress,
            )
            return await upload.run(source)

    async def put_file(
        self,
        path: str | Path,
        *,
        name: str | ObjectMeta | None = None,
        digest: str | None = None,
        window: int = WINDOW,
        idle_timeout: Seconds = _FOR_A_CHUNK,
        timeout: Seconds | None = None,
        on_progress: Callable[[ObjectProgress], None] | None = None,
        **_unknown: Never,
    ) -> ObjectInfo:
        """Store a local file as an object, and return its metadata.

        Raises `OSError` if the file cannot be read, and otherwise as `put` does.

        Args:
            path: File to read.
            name: Name of the object. The default is the name of the file without its folders.
            digest: See `put`.
            window: See `put`.
            idle_timeout: See `put`.
            timeout: See `put`.
            on_progress: See `put`.
        """
        if _unknown:
            raise unknown_keyword("ObjectStore.put_file", _unknown)
        from twinstream.disk.local_path import local_path
        from twinstream.disk.safe_files import open_regular

        source = local_path(path)
        files = ExitStack()
        try:
            # The stack also gets the file if the call is cancelled while the file is opened.
            file = await whole(lambda: files.enter_context(open_regular(source)))
            return await self.put(
                source.name if name is None else name,
                file,
                digest=digest,
                window=window,
                idle_timeout=idle_timeout,
                timeout=timeout,
                on_progress=on_progress,
            )
        finally:
            await whole(files.close)

    # ---- reading

    @opens
    def get(
        self,
        name: str,
        *,
        start: int = 0,
        end: int | None = None,
        follow: bool = True,
        deleted: bool = False,
        idle_timeout: Seconds = _PATIENCE,
        on_progress: Callable[[ObjectProgress], None] | None = None,
    ) -> Opening[ObjectReader]:
        """Return a reader of an object's content. Close it, preferably by using a `with` block.

        A reader of the whole object verifies the digest. A reader of a part cannot do so. Instead,
        the call first lists the chunks with a consumer, and verifies that all of them exist.

        Args:
            name: The name of the object.
            start: The first byte to read.
            end: The end of the range, exclusive; by default the end of the object.
            follow: If true and the object is a link, read the target of the link. If false, a link
                raises `LinkError`.
            deleted: Whether to return a reader of a deleted object, which has no content. The
                reader's `info` is the metadata of the deleted object.
            idle_timeout: Maximum seconds without progress.
            on_progress: Called with the progress each time the reader returns data.

        Raises:
            ObjectNotFound: There is no object of this name.
            ObjectDeleted: The object was deleted.
            LinkError: The object is a link that cannot be followed.
        """
        check_callback(on_progress, "on_progress")
        check_whole(start, "start", least=0)
        if end is not None:
            check_whole(end, "end", least=0)
        options = (follow, deleted)
        idle = seconds(idle_timeout, "idle_timeout")
        return opening(self._open(name, start, end, options, idle, on_progress))

    async def _open(
        self,
        name: str,
        start: int,
        end: int | None,
        options: tuple[bool, bool],
        idle_timeout: float,
        on_progress: Callable[[ObjectProgress], None] | None,
        deadline: Deadline | None = None,
    ) -> ObjectReader:
        with StoreErrors(self.bucket):
            place, info = await self._find(name, *options, deadline)
        if start == 0 and end is None:
            return ObjectReader(place, info, idle_timeout, on_progress)
        index, size = await chunk_index(place, info), info.size or 0
        part = ContentRange(info, index, start, size if end is None else min(end, size))
        return ObjectReader(place, info, idle_timeout, on_progress, part, part.first_seq)

    async def _find(
        self, name: str, follow: bool, deleted: bool, deadline: Deadline | None
    ) -> tuple[ObjectPlace, ObjectInfo]:
        """Return the metadata of an object and the store that contains it.

        With `follow`, a link leads to its target, perhaps in another store. Without it, a link
        raises `LinkError`. With `deleted`, metadata of a deleted object is returned, too.
        """
        place = await self._place(deadline)
        if deleted:
            found = await place.info(name, deleted=True)
            if found.deleted:
                # Some clients leave a size or a digest, although there is no content.
                return place, deleted_info(found)
        if follow:
            return await place.followed(name)
        info = await place.info(name)
        if is_link(info):
            raise LinkError(
                f"object {name!r} of bucket {self.bucket} is a link, and has no content"
            )
        return place, info

    async def get_bytes(
        self,
        name: str,
        *,
        max_bytes: int | None = None,
        idle_timeout: Seconds = _PATIENCE,
        timeout: Seconds | None = None,
    ) -> bytes:
        """Return the whole content of an object as bytes.

        Raises `BadArgument` if the object has more than `max_bytes` bytes, and otherwise as `get`
        and `ObjectReader` do.

        Args:
            name: Name of the object.
            max_bytes: Largest size in bytes; None means no limit.
            idle_timeout: Seconds without progress after which the call fails.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        deadline = None if timeout is None else self._api.deadline(timeout)
        idle = seconds(idle_timeout, "idle_timeout")
        reader = await self._open(name, 0, None, (True, False), idle, None, deadline)
        async with reader:
            return await reader.read_all(max_bytes)

    async def get_file(
        self,
        name: str,
        path: str | Path,
        *,
        resume: bool = False,
        idle_timeout: Seconds = _PATIENCE,
        timeout: Seconds | None = None,
        on_progress: Callable[[ObjectProgress], None] | None = None,
    ) -> ObjectInfo:
        """Write the content of an object to a file, and return the object's metadata.

        An existing file is replaced when the new content is verified and synced to disk. The new
        file is readable for its owner only. If `path` is a symbolic link, the file to which it
        points is replaced.

        Args:
            name: The name of the object.
            path: The path of the file.
            resume: If the call fails, keep the incomplete file under a hidden name in the same
                directory. The next call with `resume` continues this file. After a successful
                call, such files of killed calls with the same `path` are removed.
            idle_timeout: Maximum seconds without progress.
            timeout: Maximum seconds of the whole call; by default there is no limit.
            on_progress: Called with the progress when data was received.

        Raises:
            OSError: The file could not be written, or `path` is a folder, a device or a FIFO, or
                another call with `resume` writes the same object to it.
            ObjectNotFound: There is no object of this name.
            ObjectDeleted: The object was deleted.
            LinkError: The object is a link that cannot be followed.
            DigestMismatch: The content does not match the stored digest.
            TwinstreamError: Another error of `ObjectReader`.
        """
        from js_async.object_store.files import get_file
        from twinstream.disk.local_path import local_path

        check_callback(on_progress, "on_progress")
        with StoreErrors(self.bucket):
            deadline = None if timeout is None else self._api.deadline(timeout)
            place, info = await self._find(name, True, False, deadline)
        return await get_file(
            place,
            info,
            local_path(path),
            resume=resume,
            timeout=seconds(idle_timeout, "idle_timeout"),
            on_progress=on_progress,
        )

    # ---- metadata

    async def info(
        self, name: str, *, deleted: bool = False, timeout: Seconds | None = None
    ) -> ObjectInfo:
        """Return the metadata of an object. For a link, this is the metadata of the link itself.

        With `deleted`, the metadata of a deleted object is returned as well. Raises
        `ObjectNotFound`, `ObjectDeleted` or `InvalidObjectInfo`.

        Args:
            name: Name of the object.
            deleted: Whether the metadata of a deleted object is returned.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        check_object_name(name)
        with StoreErrors(self.bucket):
            place = await self._place(self._api.deadline(timeout))
            return await place.info(name, deleted=deleted)

    @looped
    async def list(
        self, *, deleted: bool = False, idle_timeout: Seconds = _PATIENCE, **_unknown: Never
    ) -> Items[ObjectInfo]:
        """Iterate over the metadata of all objects, as of one moment, oldest first.

        With `deleted`, this includes deleted objects. All metadata is of one store, even if it is
        deleted and re-created meanwhile, and in memory at once. If the metadata of an object cannot
        be read, its `ObjectInfo` only has the name, and the reason as `error` in its `unknown`
        members.

        Args:
            deleted: Whether deleted objects are listed, too.
            idle_timeout: Seconds without progress after which the call fails.
        """
        if _unknown:
            raise unknown_keyword("ObjectStore.list", _unknown)
        with StoreErrors(self.bucket):
            place = await self._place()
            stored = await place.stream.snapshot(
                place.subjects.all_infos, idle_timeout=idle_timeout
            )
        for message in stored.values():
            info = place.listed(message)
            if deleted or not info.deleted:
                yield info

    @opens
    def watch(
        self, *, updates_only: bool = False, deletes: bool = True, **_unknown: Never
    ) -> Opening[ObjectWatch]:
        """Iterate over the current metadata of all objects, then over each change.

        With `updates_only`, the current metadata is skipped. Without `deletes`, deleted objects are
        skipped.
        """
        if _unknown:
            raise unknown_keyword("ObjectStore.watch", _unknown)
        return opening(self._watch(updates_only, deletes))

    async def _watch(self, updates_only: bool, deletes: bool) -> ObjectWatch:
        from js_async.object_store.watch import open_watch

        with StoreErrors(self.bucket):
            return await open_watch(await self._place(), updates_only=updates_only, deletes=deletes)

    # ---- changing

    async def update_meta(
        self,
        name: str,
        *,
        new_name: str | None = None,
        description: str | None = None,
        headers: HeaderValues | None = None,
        metadata: Mapping[str, str] | None = None,
        timeout: Seconds | None = None,
    ) -> ObjectInfo:
        """Change the metadata of an object, and return its new `ObjectInfo`.

        None leaves a part unchanged; an empty `description`, `headers` or `metadata` (`""` or `{}`)
        removes it. The content is not sent again. If an object is renamed,
        existing links to it no longer work, and watchers only get the new name: the server does not
        report that the old one is gone. If the program is killed while it renames an object,
        the object may have both names: rename it again, or delete one of them.

        Args:
            name: Name of the object.
            new_name: The new name; None keeps it.
            description: The new text.
            headers: The new headers.
            metadata: The new keys and values.
            timeout: Seconds for the whole call; the default is that of the JetStream context.

        Raises:
            ObjectNotFound: There is no object of this name.
            ObjectDeleted: The object was deleted.
            ObjectExists: The new name is in use.
            ObjectChanged: Another client changed the object while it was renamed.
            TwinstreamError: Another error of `JetStream.publish`.
        """
        check_object_name(name)
        deadline = self._api.deadline(timeout)
        if new_name is not None and check_object_name(new_name) != name:

            def renamed(info: ObjectInfo) -> ObjectInfo:
                return changed_info(info, new_name, description, headers, metadata)

            with StoreErrors(self.bucket):
                return await self._rename(await self._place(deadline), name, renamed)
        with StoreErrors(self.bucket):
            place = await self._place(deadline)

            def edit(info: ObjectInfo | None) -> ObjectInfo:
                found = place.existing(name, info)
                return changed_info(found, name, description, headers, metadata)

            return (await place.replace(name, edit)).new

    async def _rename(
        self,
        place: ObjectPlace,
        name: str,
        changed: Callable[[ObjectInfo], ObjectInfo],
    ) -> ObjectInfo:
        """Store the metadata under the new name, and remove it from the old one.

        A cancelled call is finished in the background. If the program is killed, both names may
        have the object. The next call then renames it again, or replaces or deletes one of them.
        """
        outcome: list[ObjectInfo | TwinstreamError] = []

        async def run() -> None:
            try:
                outcome.append(await self._rename_object(place, name, changed))
            except TwinstreamError as error:
                outcome.append(error)

        await shielded(run)
        (found,) = outcome
        if isinstance(found, TwinstreamError):
            raise found
        return found

    async def _rename_object(
        self, place: ObjectPlace, name: str, changed: Callable[[ObjectInfo], ObjectInfo]
    ) -> ObjectInfo:
        """Store the metadata under the new name, then remove the old name.

        If another client changed the object between the two steps, the new name is removed again,
        and `ObjectChanged` is raised.
        """
        old = await place.info(name)
        target = changed(old)

        def edit(info: ObjectInfo | None) -> ObjectInfo:
            if not is_same_object(info, old):
                check_free(info, self.bucket, links=False)
            return target

        new = (await place.replace(target.name, edit)).new
        now = await place.last(name)
        if now is not None and now.seq == old.revision:
            removed = await place.remove(now.subject, now.seq)
            if removed or await place.last(name) is None:
                return new
        # Another client has changed or deleted the object meanwhile. The old content may have been
        # removed, so the new name must not refer to it.
        await place.remove(place.subjects.info(target.name), new.revision or 0)
        await self._old(place).try_to_remove(new, place.deadline)
        raise ObjectChanged(
            f"object {name!r} of bucket {self.bucket} was changed while it got the name"
            f" {target.name!r}: it was not renamed"
        )

    async def delete(self, name: str, *, timeout: Seconds | None = None) -> ObjectInfo:
        """Delete an object with its content, and return the metadata of the deleted object.

        If the object is already deleted, the call only removes content that an earlier call failed
        to remove. If the metadata of the object cannot be read, the metadata is deleted, and
        `sweep` removes the content. Such an object has the name that `list` returns. To remove the
        content, the metadata of all objects may be read: without `timeout`, only each request of
        this has a limit. Raises `ObjectNotFound`.

        Args:
            name: Name of the object.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        check_object_name(name)
        deadline = self._api.deadline(timeout)
        with StoreErrors(self.bucket):
            place = await self._place(deadline)
            return await self._delete(place, name, None if timeout is None else deadline)

    async def _delete(self, place: ObjectPlace, name: str, deadline: Deadline | None) -> ObjectInfo:
        """Mark an object as deleted and remove its content. Return the new metadata.

        Metadata that cannot be read is replaced. An object that is deleted already only loses
        content that remained.
        """
        try:
            info = await place.info(name, deleted=True)
        except InvalidObjectInfo:
            nuid = self._api.transport.tokens.name()
            damaged = ObjectInfo(name=name, bucket=self.bucket, nuid=nuid)
            return (await place.replace(name, lambda now: deleted_info(now or damaged))).new
        except ObjectNotFound:
            found = await self._delete_literal(place, name)
            if found is None:
                raise
            return found
        if not info.deleted:
            replaced = await place.replace(
                name, lambda now: deleted_info(place.existing(name, now, deleted=True))
            )
            info, since = replaced.new, None if replaced.old is None else replaced.old.revision
        else:
            since = info.revision
            await place.remove_other(name, info)
        await self._old(place).remove(info, since, deadline)
        return info

    async def _delete_literal(self, place: ObjectPlace, token: str) -> ObjectInfo | None:
        """Remove metadata whose subject is not that of a name; return None if there is none."""
        subject = place.subjects.literal_info(token)
        if subject is None:
            return None
        place.check_writable()
        try:
            message = await place.message(last_request(subject))
        except MessageNotFound:
            return None
        await place.remove(subject, message.seq)
        return listed_info(message, self.bucket)

    async def add_link(
        self, name: str | ObjectMeta, target: ObjectInfo, *, timeout: Seconds | None = None
    ) -> ObjectInfo:
        """Create a link to an object of this or another store, and return the link's metadata.

        An existing link of this name is replaced. A read of the link returns the current content of
        its target. Raises `ObjectExists` if an object that is not a link has this name. Raises
        `LinkError` if the target is a link, was deleted or does not exist.

        Args:
            name: Name of the object.
            target: The object to link to, as `info` returns it.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        check_kind(target, ObjectInfo, "target", "the ObjectInfo of an object")
        deadline = self._api.deadline(timeout)
        with StoreErrors(self.bucket):
            found = await (await self._place(deadline)).target(target)
            return await self._link(name, found.bucket or self.bucket, found, deadline)

    async def add_bucket_link(
        self, name: str | ObjectMeta, bucket: str, *, timeout: Seconds | None = None
    ) -> ObjectInfo:
        """Create a link to a whole store, and return the metadata of the link.

        Programs read the name of the linked store from `info(name).options.link.bucket`. Raises
        `ObjectExists` if an object that is not a link has this name, and `LinkError` if the link
        points to its own store.

        Args:
            name: Name of the object.
            bucket: Name of the bucket.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        if check_bucket(bucket) == self.bucket:
            raise LinkError(f"a link in bucket {bucket} cannot lead to the bucket itself")
        with StoreErrors(self.bucket):
            return await self._link(name, bucket, None, self._api.deadline(timeout))

    async def _link(
        self, name: str | ObjectMeta, bucket: str, target: ObjectInfo | None, deadline: Deadline
    ) -> ObjectInfo:
        place, meta = await self._place(deadline), object_meta(name)
        if target is not None:
            check_target(meta.name, self.bucket, target)

        def make(info: ObjectInfo | None) -> ObjectInfo:
            check_free(info, self.bucket, links=True)
            nuid = self._api.transport.tokens.name()
            return link_info(meta, self.bucket, nuid, bucket, target.name if target else None)

        return (await place.replace(meta.name, make)).new

    # ---- the whole store

    async def status(self, *, timeout: Seconds | None = None) -> ObjectStoreStatus:
        """Request the settings and the size of the store. Raises `BucketNotFound`.

        Args:
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        with StoreErrors(self.bucket):
            return store_status(await self._stream.info(timeout=timeout))

    async def change(
        self,
        edit: Callable[[ObjectStoreConfig], ObjectStoreConfig],
        *,
        timeout: Seconds | None = None,
    ) -> ObjectStoreStatus:
        """Change the settings of the store and return its new status.

        The call reads the settings, and stores the changed copy that `edit` returns. Settings of
        the stream that are not settings of a store stay as they are.

        Args:
            edit: Gets the present settings, and returns the changed ones.
            timeout: Seconds for the whole call; the default is that of the JetStream context.

        Raises:
            NotABucket: The stream of this name is not an object store.
            BadArgument: `edit` returned no valid settings.
            InvalidConfig: The server does not support a change, for example of the storage type.
        """
        from js_async.object_store.settings import change_store

        info = await change_store(self._api, self.bucket, edit, self._api.deadline(timeout))
        self._stream.cached_info, self._known = info, None
        return store_status(info)

    async def seal(self, *, timeout: Seconds | None = None) -> ObjectStoreStatus:
        """Make the store permanently read-only, and return its status.

        In a sealed store, the `ttl` no longer removes objects. The content of failed uploads also
        stays, so call `sweep` first.

        Args:
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        with StoreErrors(self.bucket):
            return store_status(await self._stream.seal(timeout=timeout))

    async def sweep(
        self,
        *,
        older_than: Seconds = _DAY,
        dry_run: bool = False,
        idle_timeout: Seconds = _PATIENCE,
    ) -> SweepResult:
        """Remove content that belongs to no object; return the numbers of its uploads and chunks.

        For example, such content remains if a program is killed during an upload. Content whose
        NUID occurs in metadata that cannot be read is kept.

        Args:
            older_than: Keep content whose last chunk was stored less than this number of seconds
                ago, because the upload may still be running.
            dry_run: Only count the content, remove nothing.
            idle_timeout: Maximum seconds without progress.

        Raises:
            BadArgument: The store is a mirror.
        """
        age = seconds(older_than, "older_than")
        with StoreErrors(self.bucket):
            return await self._sweep(age, dry_run, seconds(idle_timeout, "idle_timeout"))

    async def _sweep(self, age: float, dry_run: bool, idle_timeout: float) -> SweepResult:
        """Count, and without `dry_run` remove, the chunks that no metadata refers to.

        Uploads with a chunk younger than `age` seconds are kept: they may be in progress.
        """
        place, stream = await self._place(), self._stream
        place.check_writable()
        found = stream.subjects(place.subjects.all_chunks, timeout=idle_timeout)
        chunks = {each: count async for each, count in found}
        # The metadata is read after the chunks, so it includes every finished upload.
        stored = await stream.snapshot(place.subjects.all_infos, idle_timeout=idle_timeout)
        needed = Needed.by(stored.values(), self.bucket)
        uploads = messages = 0
        for subject, count in orphans(place.subjects, chunks, needed).items():
            within = place.until(Deadline.after(idle_timeout))
            if not await within.is_older(subject, age):
                continue
            uploads += 1
            messages += (
                count if dry_run else await stream.purge(subject=subject, timeout=within.left)
            )
        return SweepResult(uploads=uploads, chunks=messages, unreadable=len(needed.unreadable))


async def place_of(store: ObjectStore) -> ObjectPlace:
    """Return the stream of a store and the subjects of its objects, for its other modules."""
    return await store._place()
