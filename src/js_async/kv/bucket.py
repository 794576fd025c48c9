"""A key-value bucket: read, write and watch its keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast, overload

from js_async.kv.place import Place
from js_async.kv.writes import BucketWrites
from js_async.runtime.concurrency import Stream as Generated
from js_async.runtime.opening import Opening, opening
from twinstream.core.base.nats_py_names import hint_attributes
from twinstream.core.deadline import Seconds, seconds
from twinstream.core.kv.codecs import PLAIN_CODECS, Codecs
from twinstream.core.kv.entries import EntryMaker
from twinstream.core.kv.entry import DELETED, PURGED, Entries, Entry
from twinstream.core.kv.errors import KeyDeleted, KeyNotFound, raise_for_bucket
from twinstream.core.kv.names import check_revision
from twinstream.core.kv.status import KeyValueStatus
from twinstream.errors import TwinstreamError

if TYPE_CHECKING:
    from js_async.kv.cache import KeyValueCache
    from js_async.kv.keys import PurgedMarkers
    from js_async.kv.watch import Watch
    from js_async.stream import Stream
    from twinstream.core.consume.reports import PullReport
    from twinstream.core.kv.codecs import KeyCodec, ValueCodec
    from twinstream.core.kv.config import Edit
    from twinstream.core.publish.ttl import Ttl

__all__ = ["KeyValue", "handle"]

V = TypeVar("V")
W = TypeVar("W")

_HALF_AN_HOUR: Final = 1800.0
# Seconds without progress after which a read of many keys gives up.
_PATIENCE: Final = 120.0


def handle(place: Place) -> KeyValue[bytes]:
    """Return the handle of a bucket, with values as they are stored."""
    return KeyValue(place, PLAIN_CODECS)


@hint_attributes
class KeyValue(Generic[V]):
    """A bucket of keys and values. Get one from `JetStream.get_key_value` or `create_key_value`.

    A key is text of A-Z a-z 0-9 - / _ = and dots that part it into tokens; a value is bytes. Each
    write is a revision, a number that rises over all keys of the bucket. The `timeout` of a call
    is in seconds; its default is that of the context.

    Reads see every write that was acknowledged before, unless `stale` ones are asked for: those
    are answered by any replica, which may be behind.
    """

    def __init__(self, place: Place, codecs: Codecs[V]) -> None:
        self._place: Final = place
        self._codecs: Final = codecs
        self._maker: Final[EntryMaker[V]] = EntryMaker(
            place.bucket, place.stream.name, place.subjects.stored, codecs
        )
        self._writes: Final = BucketWrites(place)

    def __repr__(self) -> str:
        return f"<KeyValue {self.bucket}>"

    @property
    def bucket(self) -> str:
        """The name of the bucket."""
        return self._place.bucket

    @property
    def stream(self) -> Stream:
        """The stream underneath, with stored subjects and without codecs."""
        return self._place.stream

    @property
    def cached_status(self) -> KeyValueStatus:
        """What the server said last. Raises `BadArgument` when it was never asked."""
        return KeyValueStatus.of(self._place.stream.cached_info)

    async def status(self, *, timeout: Seconds | None = None) -> KeyValueStatus:
        """Ask for settings and state. Raises `BucketNotFound`."""
        try:
            return KeyValueStatus.of(await self._place.stream.info(timeout=timeout))
        except TwinstreamError as error:
            raise_for_bucket(self.bucket, error)

    async def change(self, edit: Edit, *, timeout: Seconds | None = None) -> KeyValueStatus:
        """Read the settings, let `edit` return a changed copy, and store what differs.

        Settings that belong to the stream alone stay as they are. Raises `BucketNotFound`,
        `InvalidConfig` for what the server cannot change, such as the storage.
        """
        from js_async.kv.manage import change_bucket

        api = self._place.api
        changed = await change_bucket(api, self.bucket, edit, api.deadline(timeout))
        self._place.stream._info = changed.stream.cached_info
        return self.cached_status

    # ---- one key

    async def get(
        self,
        key: str,
        *,
        revision: int | None = None,
        stale: bool = False,
        timeout: Seconds | None = None,
    ) -> Entry[V]:
        """Return the entry of a key, or that of one `revision` of it.

        Raises `KeyNotFound`; that is a `KeyDeleted`, with the marker as its `entry`, where the key
        was deleted or purged, or its value expired. Raises `InvalidKey`, `BucketNotFound`.
        """
        entry = await self._find(key, revision, stale, timeout)
        if entry is None:
            at = "" if revision is None else f" at revision {revision}"
            raise KeyNotFound(self.bucket, key, at)
        if not entry.is_value:
            raise KeyDeleted(entry)
        if entry.error is not None:
            raise entry.error
        return entry

    async def entry(
        self,
        key: str,
        *,
        revision: int | None = None,
        stale: bool = False,
        timeout: Seconds | None = None,
    ) -> Entry[V] | None:
        """Return the last entry of a key, or that of a `revision`: a value or a marker, or None.

        A value that a codec cannot decode is an entry with an `error`.
        """
        return await self._find(key, revision, stale, timeout)

    async def _find(
        self, key: str, revision: int | None, stale: bool, timeout: Seconds | None
    ) -> Entry[V] | None:
        place = self._place
        stored, deadline = self._codecs.encode_key(key), place.api.deadline(timeout)
        if revision is None:
            frame = await place.ask_directly(stored, stale=stale, deadline=deadline)
            if frame is not None:
                entry = self._maker.of_direct(frame, stored)
                if entry is not None:
                    place.saw(entry.revision)
                    return entry
            found = await place.last(stored, stale=stale, deadline=deadline, answer=frame)
        else:
            found = await place.at(stored, check_revision(revision), deadline)
        if found is None:
            return None
        place.saw(found.seq)
        return self._maker.of_stored(found, tolerant=True)

    async def put(
        self,
        key: str,
        value: V,
        *,
        ttl: Ttl | None = None,
        timeout: Seconds | None = None,
    ) -> int:
        """Store a value, whatever the key holds, and return its revision.

        With `ttl`, in seconds rounded up to whole ones, the value expires; that needs a bucket
        with `limit_marker_ttl` and a history of 1. Without it the key does not expire, also where
        it would have before.

        When the connection breaks before the answer came, the key is looked at: what was stored is
        not stored again, and what was not is. Raises `OutcomeUnknown` where another client wrote
        the key meanwhile. Raises `BucketNotFound`, `ValueTooLarge`, `StoreRefused` when the bucket
        is full, `Unsupported`, `InvalidKey`, and what `JetStream.publish` raises.
        """
        stored, data = self._codecs.encode_key(key), self._codecs.encode_value(value)
        if ttl is not None:
            ttl = await self._writes.key_ttl(ttl, single=True)
        return await self._writes.write(stored, data, ttl=ttl, timeout=timeout)

    async def create(
        self,
        key: str,
        value: V,
        *,
        ttl: Ttl | None = None,
        timeout: Seconds | None = None,
    ) -> int:
        """Store the value of a key that has none, and return its revision.

        A key that was deleted or purged, or whose value expired, has none. `ttl` is as in `put`,
        with any history: then older revisions of the key are removed. Raises `KeyExists` with the
        `entry` that is there, `OutcomeUnknown`, and what `put` raises.
        """
        stored, data = self._codecs.encode_key(key), self._codecs.encode_value(value)
        ttl = await self._writes.key_ttl(ttl, single=False)
        return await self._writes.create(stored, data, self._maker, ttl=ttl, timeout=timeout)

    async def update(
        self,
        key: str,
        value: V,
        revision: int,
        *,
        ttl: Ttl | None = None,
        timeout: Seconds | None = None,
    ) -> int:
        """Replace the value of a key if it is still at `revision`, and return the new revision.

        Raises `RevisionMismatch` when another client was faster, `OutcomeUnknown` when a lost
        answer leaves that unknown, and what `put` raises.
        """
        stored, data = self._codecs.encode_key(key), self._codecs.encode_value(value)
        check_revision(revision, instead="; create stores a key that has no value")
        ttl = await self._writes.key_ttl(ttl, single=True)
        return await self._writes.update(stored, data, revision, ttl=ttl, timeout=timeout)

    async def delete(
        self, key: str, *, revision: int | None = None, timeout: Seconds | None = None
    ) -> int:
        """Mark a key as deleted and return the marker's revision; its history stays.

        With `revision` only if the key is still at it: raises `RevisionMismatch`. A key that has
        no value gets a marker, too.
        """
        stored = self._codecs.encode_key(key)
        if revision is None:
            return await self._writes.write(stored, b"", headers=DELETED, timeout=timeout)
        check_revision(revision)
        return await self._writes.update(stored, b"", revision, headers=DELETED, timeout=timeout)

    async def purge(
        self,
        key: str,
        *,
        revision: int | None = None,
        ttl: Ttl | None = None,
        timeout: Seconds | None = None,
    ) -> int:
        """Remove all revisions of a key, leave a marker, and return the marker's revision.

        `revision` is as in `delete`. With `ttl`, as in `put` but with any history, the server
        removes the marker after that time and sends nothing to watchers.
        """
        stored = self._codecs.encode_key(key)
        ttl = await self._writes.key_ttl(ttl, single=False)
        if revision is None:
            return await self._writes.write(
                stored, b"", headers=PURGED, rollup="sub", ttl=ttl, timeout=timeout
            )
        check_revision(revision)
        return await self._writes.update(
            stored, b"", revision, headers=PURGED, rollup="sub", ttl=ttl, timeout=timeout
        )

    # ---- many keys

    def keys(self, *filters: str, timeout: Seconds = _PATIENCE) -> Generated[str]:
        """Iterate over the keys that have a value, each once; `filters` may hold wildcards.

        A key that is written meanwhile is neither missing nor there twice. `timeout` is how long
        there may be no progress. Raises `BucketNotFound`, `InvalidKey`, `RequestTimeout`.
        """
        from js_async.kv.keys import keys_of

        stored = [self._codecs.encode_filter(each) for each in filters]
        return keys_of(self._place, self._maker, stored, seconds(timeout))

    async def history(self, key: str, *, timeout: Seconds = _PATIENCE) -> list[Entry[V]]:
        """Return the revisions of a key that are kept, oldest first, with its markers.

        Raises `KeyNotFound` when there are none.
        """
        from js_async.kv.keys import history_of

        stored = self._codecs.encode_key(key)
        return await history_of(self._place, self._maker, stored, key, seconds(timeout))

    async def get_many(
        self, *filters: str, at_revision: int | None = None, timeout: Seconds = _PATIENCE
    ) -> Entries[V]:
        """Return the values of keys or filters (none: all), as they were at one revision.

        It includes every write that was acknowledged before the call. With `at_revision` it is the
        state right after that revision, as far as the bucket still has it.
        """
        from js_async.kv.keys import entries_of

        stored = [self._codecs.encode_filter(each) for each in filters]
        return await entries_of(self._place, self._maker, stored, at_revision, seconds(timeout))

    def watch(
        self,
        *filters: str,
        history: bool = False,
        updates_only: bool = False,
        deletes: bool = True,
        meta_only: bool = False,
        resume_from: int | None = None,
        on_report: Callable[[PullReport], None] | None = None,
    ) -> Opening[Watch[V]]:
        """Iterate over the last entry of each key, then None, then each new revision.

        Only keys that match one of `filters`, if there are any. With `history` it begins with all
        revisions that are kept, with `resume_from` at that revision, with `updates_only` after
        what is there now. Without `deletes` markers are left out; with `meta_only` entries have no
        values. Lost and re-created consumers are passed to `on_report`.

        Raises `BucketNotFound`, `InvalidKey`, and `BadArgument` for a `resume_from` that the bucket
        has not reached: it was deleted and created again.
        """
        from js_async.kv.watch import WatchOptions, open_watch

        options = WatchOptions(
            history=history,
            updates_only=updates_only,
            deletes=deletes,
            meta_only=meta_only,
            resume_from=resume_from,
        )
        stored = [self._codecs.encode_filter(each) for each in filters]
        return opening(open_watch(self._place, self._maker, stored, options, on_report))

    async def purge_deletes(
        self, *, older_than: Seconds = _HALF_AN_HOUR, timeout: Seconds = _PATIENCE
    ) -> PurgedMarkers:
        """Remove what deleted keys left behind; markers younger than `older_than` seconds stay.

        A watch that was away for longer than that misses those deletes. A value that another
        client writes meanwhile stays.
        """
        from js_async.kv.keys import purge_markers

        return await purge_markers(self._place, older_than, seconds(timeout))

    # ---- other views of the same bucket

    @overload
    def with_codecs(self, *, key: KeyCodec) -> KeyValue[V]: ...

    @overload
    def with_codecs(self, *, key: KeyCodec | None = None, value: ValueCodec[W]) -> KeyValue[W]: ...

    def with_codecs(
        self, *, key: KeyCodec | None = None, value: ValueCodec[W] | None = None
    ) -> KeyValue[V] | KeyValue[W]:
        """Return the bucket with codecs, which come before those that this one has (ADR-54)."""
        codecs = self._codecs.with_codecs(key, value)
        return cast("KeyValue[V] | KeyValue[W]", KeyValue(self._place, cast("Codecs[V]", codecs)))

    def cached(
        self,
        *filters: str,
        on_change: Callable[[Entry[V]], None] | None = None,
        on_report: Callable[[PullReport], None] | None = None,
    ) -> Opening[KeyValueCache[V]]:
        """Return a copy of the bucket in memory, or of the keys that match `filters`.

        A watch keeps it fresh, and what is written through it can be read from it at once.
        `on_change` is a plain function in both twins, called with each new revision that the watch
        delivers; it must be quick. Raises `NotPromised` for a bucket with a `ttl` and without
        `limit_marker_ttl`: nothing says there that a value expired.
        """
        from js_async.kv.cache import open_cache

        return opening(open_cache(self, filters, on_change, on_report))

    def typed(self, model: type[W]) -> KeyValue[W]:
        """Return the bucket with values of a class, stored as JSON; see `JsonValues`."""
        from twinstream.core.kv.codecs import JsonValues

        return self.with_codecs(value=JsonValues(model))
