"""A key-value bucket: read, write and watch its keys."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from types import EllipsisType
from typing import TYPE_CHECKING, Final, Generic, Never, TypeVar, cast, overload

from js_async.kv.bucket_streams import BucketStreams
from js_async.kv.writes import BucketWrites, rollup_for
from js_async.runtime.concurrency import Items
from js_async.runtime.opening import Opening, looped, opening, opens
from twinstream.core.arguments.check_arguments import check_kind
from twinstream.core.arguments.check_callbacks import check_callback
from twinstream.core.arguments.nats_py_names import hint_attributes, unknown_keyword
from twinstream.core.arguments.wrong_statement import NoContainer
from twinstream.core.deadline import Seconds, seconds
from twinstream.core.kv.codecs import PLAIN_CODECS, Codecs
from twinstream.core.kv.entries import EntryMaker
from twinstream.core.kv.names import check_revision
from twinstream.core.kv.status import KeyValueStatus, key_value_status
from twinstream.core.publish.limits import WINDOW, WINDOW_BYTES
from twinstream.core.wire.selection import NOTHING, one_or_several
from twinstream.errors import BadArgument, KeyDeleted, KeyNotFound, TwinstreamError
from twinstream.errors.kv import raise_for_bucket
from twinstream.records.entry import DELETED, PURGED, Entries, Entry

if TYPE_CHECKING:
    from js_async.kv.cache import KeyValueCache
    from js_async.kv.keys import PurgeDeletesResult
    from js_async.kv.past import Moment
    from js_async.kv.put_many import PutMany
    from js_async.kv.watch import EntrySteps, KeyValueWatch
    from twinstream.codecs import Codec, KeyCodec, ValueCodec
    from twinstream.core.consume.reports import PullReport
    from twinstream.core.kv.config import Edit
    from twinstream.records.key_change import KeyChange, KeyChanges
    from twinstream.records.publish_request import Ttl

__all__ = ["KeyValue", "handle"]

D = TypeVar("D")
V = TypeVar("V")
W = TypeVar("W")

_HALF_AN_HOUR: Final = 1800.0
# Default timeout of calls that read many revisions: seconds without progress.
_PATIENCE: Final = 120.0


def handle(place: BucketStreams, *, validate_keys: bool = True) -> KeyValue[bytes]:
    """Return a `KeyValue` without codecs, whose values are the stored bytes."""
    return KeyValue(place, PLAIN_CODECS, validate_keys)


@hint_attributes
class KeyValue(NoContainer, Generic[V]):
    """A bucket of keys and values. Get one from `JetStream.get_key_value` or `create_key_value`.

    A key consists of tokens separated by dots; tokens contain A-Z a-z 0-9 - / _ =. Keys that other
    clients stored against these rules can be read and removed. A value is bytes, unless a codec
    converts it. Each write creates a revision. Revision numbers increase over all keys of the
    bucket.

    `keys` is one key or an iterable of keys, which may contain the wildcards `*` (one token) and
    `>` (the rest). None means all keys, and an empty iterable selects none.

    `timeout` is the maximum number of seconds of a whole call; the default is that of the JetStream
    context. Calls that read many revisions have `idle_timeout` instead: the maximum number of
    seconds without progress.

    Reads see every write that was acknowledged before them. With `stale=True`, any replica may
    answer a read, and the replica may lag behind.

    The object takes the number of replicas from the stream's last known info. With one replica,
    reads need not ask the leader. If another program adds replicas, reads still see the writes of
    this object. Call `status`, so that they also see each write of other programs.
    """

    _get, _missing, _list = "get(key)", "KeyNotFound", "keys()"

    def __init__(self, place: BucketStreams, codecs: Codecs[V], validate_keys: bool) -> None:
        self._place: Final = place
        self._codecs: Final = codecs
        self._validates: Final = validate_keys
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
    def stream_name(self) -> str:
        """The name of the stream that stores the bucket.

        The subject of a message is a prefix, such as `$KV.<bucket>.`, and the key. The payload is
        the value. If there are codecs, key and value are stored as encoded by the codecs.
        """
        return self._place.stream.name

    @property
    def cached_status(self) -> KeyValueStatus | None:
        """The status in the last stream info that the server sent to this object, or None."""
        info = self._place.info
        return None if info is None else key_value_status(info)

    async def status(self, *, timeout: Seconds | None = None) -> KeyValueStatus:
        """Request the settings and the state of the bucket. Raises `BucketNotFound`.

        Args:
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        try:
            return key_value_status(await self._place.stream.info(timeout=timeout))
        except TwinstreamError as error:
            raise_for_bucket(self.bucket, error)

    async def change(self, edit: Edit, *, timeout: Seconds | None = None) -> KeyValueStatus:
        """Change the settings of the bucket and return its new status.

        The call reads the settings and passes them to `edit`, which returns a changed copy. Then
        the call stores the settings that differ. Settings of the stream that are not settings of a
        bucket stay as they are.

        Args:
            edit: Gets the present settings, and returns the changed ones.
            timeout: Seconds for the whole call; the default is that of the JetStream context.

        Raises:
            BucketNotFound: The bucket does not exist.
            BadArgument: `edit` returned no valid settings.
            InvalidConfig: The server does not support a change, for example of the storage type.
        """
        from js_async.kv.manage import change_bucket

        api = self._place.api
        deadline = api.deadline(timeout)
        changed = await change_bucket(api, self.bucket, edit, deadline)
        self._place.adopt(changed)
        return key_value_status(await changed.known(deadline))

    # ---- one key

    @overload
    async def get(
        self,
        key: str,
        *,
        revision: int | None = None,
        stale: bool = False,
        timeout: Seconds | None = None,
    ) -> Entry[V]: ...

    @overload
    async def get(
        self,
        key: str,
        *,
        default: D,
        revision: int | None = None,
        stale: bool = False,
        timeout: Seconds | None = None,
    ) -> Entry[V] | D: ...

    async def get(
        self,
        key: str,
        *,
        default: D | EllipsisType = ...,
        revision: int | None = None,
        stale: bool = False,
        timeout: Seconds | None = None,
    ) -> Entry[V] | D:
        """Return the last entry of a key, or its entry at `revision`.

        If there is no such entry, or if it is a marker, the call returns `default`; without
        `default`, it raises `KeyNotFound`. With `stale`, any replica may answer, also with an
        earlier entry.

        Args:
            key: The key: tokens separated by dots.
            default: What is returned if the key has no value.
            revision: The revision of the entry; None means the last one.
            stale: Whether any replica may answer, also with an earlier entry.
            timeout: Seconds for the whole call; the default is that of the JetStream context.

        Raises:
            KeyNotFound: There is no such entry.
            KeyDeleted: The entry is a marker: the key was deleted or purged, or its value expired.
                This subclass of `KeyNotFound` has the marker as its `entry`.
            InvalidKey: The key contains invalid characters.
            BucketNotFound: The bucket does not exist.
            Exception: The error of a codec that cannot decode the entry.
        """
        entry = await self._find(key, revision, stale, timeout)
        if default is not ... and (entry is None or not entry.is_value):
            return default
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
        """Return the last entry of a key, or its entry at `revision`.

        Returns None if there is no such entry. The entry is a value or a marker. If a codec cannot
        decode the entry, its `error` is set.

        Args:
            key: The key: tokens separated by dots.
            revision: The revision of the entry; None means the last one.
            stale: Whether any replica may answer, also with an earlier entry.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        return await self._find(key, revision, stale, timeout)

    async def _find(
        self, key: str, revision: int | None, stale: bool, timeout: Seconds | None
    ) -> Entry[V] | None:
        """Return the last entry of a key, or that of `revision`; return None if there is none.

        A direct get may come from a replica that lags behind. With `stale` false, its result counts
        only if it is not older than the last write of this client.
        """
        place = self._place
        stored, deadline = self._codecs.stored_key(key), place.api.deadline(timeout)
        if revision is None:
            frame = await place.ask_directly(stored, stale=stale, deadline=deadline)
            if frame is not None:
                entry = self._maker.of_direct(frame, stored)
                if entry is not None and (stale or place.has_own_write(stored, entry.revision)):
                    place.note_seen(entry.revision)
                    return entry
            found = await place.last(stored, stale=stale, deadline=deadline, answer=frame)
        else:
            found = await place.at(stored, check_revision(revision), deadline)
        if found is None:
            return None
        place.note_seen(found.seq)
        return self._maker.of_stored(found)

    async def put(
        self,
        key: str,
        value: V,
        *,
        ttl: Ttl | None = None,
        timeout: Seconds | None = None,
        **_unknown: Never,
    ) -> int:
        """Store a value, whatever the current value is, and return the new revision.

        With `ttl` (seconds, rounded up to whole seconds) the value expires. This requires a bucket
        with `limit_marker_ttl` and a history of 1. Without `ttl`, the new value has no TTL of its
        own, even if the previous value had one. A value with a `ttl` removes the older revisions of
        the key, also if another program has raised the history since.

        If the connection is lost before the response arrives, the call reads the key to find out
        whether the value was stored. If it was not, the call stores it again.

        Args:
            key: The key: tokens separated by dots.
            value: The value, which the codec encodes.
            ttl: Seconds until the value expires; None sets no expiry of its own.
            timeout: Seconds for the whole call; the default is that of the JetStream context.

        Raises:
            OutcomeUnknown: The response was lost, and the call could not find out whether the value
                was stored, for example because another client wrote the key.
            BucketNotFound: The bucket does not exist.
            ValueTooLarge: The value exceeds the bucket's `max_value_size`.
            StoreFailed: The bucket is full.
            Unsupported: `ttl` is given, but the bucket has no TTL for keys.
            InvalidKey: The key contains invalid characters.
            TwinstreamError: Another error of `JetStream.publish`.
        """
        if _unknown:
            raise unknown_keyword("KeyValue.put", _unknown)
        stored, data = self._codecs.encode(self.bucket, key, value, self._validates)
        if ttl is not None:
            ttl = await self._writes.key_ttl(ttl, single=True)
        return await self._writes.write(
            stored, data, rollup=rollup_for(ttl), ttl=ttl, timeout=timeout
        )

    async def create(
        self,
        key: str,
        value: V,
        *,
        ttl: Ttl | None = None,
        timeout: Seconds | None = None,
        **_unknown: Never,
    ) -> int:
        """Store a value if the key has no value, and return its revision.

        A key has no value after it was deleted or purged, or after its value expired. `ttl` is in
        seconds, as in `put`, but the bucket may have any history. A value with a `ttl` removes the
        older revisions of the key.

        Args:
            key: The key: tokens separated by dots.
            value: The value, which the codec encodes.
            ttl: Seconds until the value expires; None sets no expiry of its own.
            timeout: Seconds for the whole call; the default is that of the JetStream context.

        Raises:
            KeyExists: The key has a value. The `entry` of the error contains it.
            RevisionMismatch: Writes of other clients prevented the creation until the timeout.
            OutcomeUnknown: A response was lost, and it is unknown whether the value was stored.
            TwinstreamError: Another error of `put`.
        """
        if _unknown:
            raise unknown_keyword("KeyValue.create", _unknown)
        stored, data = self._codecs.encode(self.bucket, key, value, self._validates)
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
        **_unknown: Never,
    ) -> int:
        """Replace the value of a key if it is still at `revision`, and return the new revision.

        Args:
            key: The key: tokens separated by dots.
            value: The value, which the codec encodes.
            revision: The revision that the key must have.
            ttl: Seconds until the value expires; None sets no expiry of its own.
            timeout: Seconds for the whole call; the default is that of the JetStream context.

        Raises:
            RevisionMismatch: The key is at another revision.
            OutcomeUnknown: A response was lost, and it is unknown whether the value was stored.
            TwinstreamError: Another error of `put`.
        """
        if _unknown:
            raise unknown_keyword("KeyValue.update", _unknown)
        stored, data = self._codecs.encode(self.bucket, key, value, self._validates)
        check_revision(revision, instead="; create stores a key that has no value")
        ttl = await self._writes.key_ttl(ttl, single=True)
        return await self._writes.update(
            stored, data, revision, rollup=rollup_for(ttl), ttl=ttl, timeout=timeout
        )

    async def delete(
        self, key: str, *, revision: int | None = None, timeout: Seconds | None = None
    ) -> int:
        """Mark a key as deleted and return the revision of the marker. The history is kept.

        A key without a value gets a marker as well. With `revision`, the key is only deleted if it
        is still at this revision. Otherwise, `RevisionMismatch` is raised.

        Args:
            key: The key: tokens separated by dots.
            revision: Only if the key is at this revision.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        stored = self._codecs.stored_key(key)
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
        """Remove all revisions of a key, store a marker, and return the revision of the marker.

        `revision` is as in `delete`. `ttl` (seconds) is the time until the server removes the
        marker. The server does not report this removal to watchers. A `ttl` requires
        `limit_marker_ttl`, as in `put`, but the bucket may have any history.

        Args:
            key: The key: tokens separated by dots.
            revision: Only if the key is at this revision.
            ttl: Seconds until the marker is removed, too; None keeps it.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        stored = self._codecs.stored_key(key)
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

    def put_many(
        self,
        items: Mapping[str, V] | Iterable[tuple[str, V]] | AsyncIterable[tuple[str, V]],
        *,
        ttl: Ttl | None = None,
        window: int = WINDOW,
        window_bytes: int = WINDOW_BYTES,
        timeout: Seconds | None = None,
        raise_failures: bool = True,
    ) -> PutMany:
        """Store many values without waiting for each acknowledgement; iterate over the outcomes.

        An outcome is the acknowledgement, whose `seq` is the revision, or a `KeyPutFailure` with
        the `key`, the `value` and the `error`. Outcomes have the order of the items. The iteration
        sends the items.

        Each item is stored as by `put`. Items of different keys may be stored in any order. Items
        of the same key are stored in their order. Each of them is sent after the outcome of the
        previous one, so these items are as slow as single calls. After a failed item, the later
        items are still stored. If the connection is lost, the client reads the keys whose outcome
        is unknown, and stores the values that were not stored.

        If there are failures whose `error` the caller did not read, the end of the `with` block and
        `close` raise `PublishFailures`. Without a block, the end of the iteration raises it.

        Args:
            items: A mapping, or pairs of key and value.
            ttl: The TTL of all items in seconds, as in `put`.
            window: Maximum number of items in flight.
            window_bytes: Maximum bytes in flight.
            timeout: Seconds for each item.
            raise_failures: Whether to raise `PublishFailures`. If false, the caller has to check
                the outcomes.
        """
        from js_async.kv.put_many import PutMany, PutPipeline
        from twinstream.core.publish.limits import limits_of

        limits = limits_of(self._place.api.timeout, window, timeout, window_bytes)
        pipeline = PutPipeline(
            self._place, self._writes, self._codecs, limits, ttl, self._validates
        )
        return PutMany(pipeline, items, raise_failures)

    async def delete_many(
        self,
        keys: str | Iterable[str],
        *,
        purge: bool = False,
        ttl: Ttl | None = None,
        idle_timeout: Seconds = _PATIENCE,
    ) -> int:
        """Delete all keys that match one of `keys`, and return how many were deleted.

        `">"` matches all keys. Keys without a value get no marker. With `purge`, the keys are
        removed as by `purge`, also with its `ttl`.

        Args:
            keys: One key or several, which may have wildcards.
            purge: Whether older revisions are removed, too.
            ttl: With `purge`: seconds until the markers are removed.
            idle_timeout: Seconds without progress after which the call fails.

        Raises:
            PublishFailures: Some keys were not deleted; the others were.
        """
        from js_async.kv.put_many import MarkerPipeline, remove_many
        from twinstream.core.publish.limits import limits_of

        if ttl is not None and not purge:
            raise BadArgument("ttl is that of the markers of a purge: add purge=True")
        # Not None, which would mean all keys.
        check_kind(keys, Iterable, "keys", "one key or an iterable of keys ('>' for all keys)")
        found = [each async for each in self.keys(keys, idle_timeout=idle_timeout)]
        limits = limits_of(self._place.api.timeout, WINDOW, idle_timeout, WINDOW_BYTES)
        arguments = (self._place, self._writes, self._codecs, limits, ttl, purge)
        return await remove_many(MarkerPipeline(*arguments), found)

    @looped
    def keys(
        self,
        keys: str | Iterable[str] | None = None,
        *,
        idle_timeout: Seconds = _PATIENCE,
        **_unknown: Never,
    ) -> Items[str]:
        """Iterate over the keys that have a value and match one of `keys`, by default all keys.

        Each key is returned once, even if it is written during the iteration. A key that is written
        before the iteration returned all keys that had a value at its start is included. A key that
        is deleted during the iteration may or may not be included. The same applies if the bucket
        is deleted and re-created meanwhile: the keys of the new bucket are included, and those of
        the old one that were not returned yet may be.

        Raises `BucketNotFound`, `InvalidKey` or `RequestTimeout`.

        Args:
            keys: One filter of keys or several; None means all keys.
            idle_timeout: Seconds without progress after which the call fails.
        """
        if _unknown:
            raise unknown_keyword("KeyValue.keys", _unknown)
        from js_async.kv.keys import keys_of

        within = seconds(idle_timeout, "idle_timeout")
        return keys_of(self._place, self._maker, self._filters(keys), within)

    async def history(self, key: str, *, idle_timeout: Seconds = _PATIENCE) -> list[Entry[V]]:
        """Return the stored revisions of a key, oldest first, including markers.

        All revisions are of one bucket, even if it is deleted and re-created during the call. If a
        codec cannot decode a revision, its entry has the `error` of the codec. Raises `KeyNotFound`
        if no revision of the key is stored.

        Args:
            key: The key: tokens separated by dots.
            idle_timeout: Seconds without progress after which the call fails.
        """
        from js_async.kv.keys import history_of

        stored = self._codecs.stored_key(key)
        within = seconds(idle_timeout, "idle_timeout")
        return await history_of(self._place, self._maker, stored, key, within)

    async def get_many(
        self,
        keys: str | Iterable[str] | None = None,
        *,
        at_revision: int | None = None,
        idle_timeout: Seconds = _PATIENCE,
    ) -> Entries[V]:
        """Return the entries of the keys that have a value, as of one revision.

        Only keys that match one of `keys` are included, by default all keys. The result includes
        every write that was acknowledged before the call. All entries are of one bucket, even if it
        is deleted and re-created during the call. With `at_revision`, the result is the state right
        after this revision, without values that the bucket no longer stores. If a codec cannot
        decode an entry, the entry has the stored key and the `error` of the codec.

        Args:
            keys: One filter of keys or several; None means all keys.
            at_revision: The revision of the bucket to read; None means the present one.
            idle_timeout: Seconds without progress after which the call fails.
        """
        from js_async.kv.keys import entries_of

        within = seconds(idle_timeout, "idle_timeout")
        return await entries_of(self._place, self._maker, self._filters(keys), at_revision, within)

    async def at(
        self,
        moment: Moment,
        keys: str | Iterable[str] | None = None,
        *,
        idle_timeout: Seconds = _PATIENCE,
    ) -> Entries[V]:
        """Return the entries of the keys that had a value at a moment, as a mapping by key.

        The result is whole, or the call raises `PastNotHeld`: it never lacks a value that the
        bucket has removed since. If revisions of the bucket were removed, the call reads the
        headers of all its revisions to find out. The memory depends on the number of keys only.

        The server keeps no record of what a purge of the stream removed, nor of earlier settings.
        The call refuses a state if gaps between the revisions do not look like the work of the
        history and of `purge`. Where all gaps do, it trusts that keys with a value were removed by
        `delete` or `purge` only, and that the bucket had no smaller history and no TTL before.

        In a cluster, a restart of its server empties a bucket in memory without replicas. Times
        before the first stored revision of a bucket in memory are therefore refused. After such a
        restart the bucket uses its revisions again: do not keep a revision from before.

        Args:
            moment: A revision, or a time with a zone (server 2.11). What was stored at this
                revision or time is part of the state. A time to come means the present revision.
            keys: Only return keys that match one of these; by default all keys.
            idle_timeout: Seconds without progress after which the call fails.

        Raises:
            PastNotHeld: Revisions of this state were removed: by the history, a TTL, a purge or a
                rollup. Or the bucket did not exist, is in memory and stores nothing as old, or is a
                mirror that may not have copied all of this state. `earliest_revision` and
                `earliest_time` are those of the earliest state from which on the bucket holds all
                states.
            BadArgument: The bucket has not reached the revision, or the time has no zone.
            BucketNotFound: The bucket does not exist.
            InvalidKey: One of `keys` is invalid.
        """
        from js_async.kv.past import entries_at

        within = seconds(idle_timeout, "idle_timeout")
        return await entries_at(self._place, self._maker, self._filters(keys), moment, within)

    async def diff(
        self,
        a: Moment,
        b: Moment | None = None,
        keys: str | Iterable[str] | None = None,
        *,
        idle_timeout: Seconds = _PATIENCE,
    ) -> KeyChanges[V]:
        """Return what changed between two moments, as a mapping of keys to changes.

        Each change has the entries before and after it. `added`, `changed` and `deleted` are the
        changes of one kind. A key whose stored value is the same at both moments has not changed.

        Args:
            a: The first moment, as in `at`.
            b: The second moment, not before `a`. None is now.
            keys: Only compare keys that match one of these; by default all keys.
            idle_timeout: Seconds without progress after which the call fails.

        Raises:
            PastNotHeld: The state of one of the moments is not held whole, as in `at`.
            BadArgument: As in `at`, or `a` is later than `b`.
            BucketNotFound: The bucket does not exist.
        """
        from js_async.kv.past import changes_between

        within = seconds(idle_timeout, "idle_timeout")
        arguments = (self._place, self._maker, self._filters(keys), (a, b), within)
        return await changes_between(*arguments)

    async def revert(
        self,
        changes: KeyChanges[V],
        *,
        in_parts: bool = False,
        timeout: Seconds | None = None,
    ) -> list[KeyChange[V]]:
        """Undo changes that `diff` returned, unless a key was written since.

        Keys get the values that they had before, with their headers except those of the server,
        such as a TTL; keys that had none are deleted. Up to 1,000 changes are written as one atomic
        batch (server 2.12), if the stream of the bucket has `allow_atomic`. A write on another
        client's newer revision is refused.

        Args:
            changes: The changes from a past moment until now, or some of them.
            in_parts: Write without one batch: in batches of 1,000, or each key by itself where the
                stream has no `allow_atomic`. Then a part can be undone and another one not.
            timeout: Seconds for each request.

        Returns:
            With `in_parts`, the changes that were left because another client has written the key,
            or one of its batch, since. Otherwise an empty list.

        Raises:
            UnsuitableSettings: There is more than one change, and the stream has no `allow_atomic`.
            WrongLastSequence: Another client has written one of the keys since, so nothing was
                undone.
            BadArgument: There are more changes than fit into a batch, or they are those of another
                bucket.
            TwinstreamError: Another error of `update`. A note says how many changes were undone,
                and which key is next.
        """
        from js_async.kv.revert import revert

        within = self._place.api.timeout if timeout is None else seconds(timeout)
        arguments = (self._place, self._writes, changes, in_parts, within)
        return await revert(*arguments)

    def _filters(self, keys: str | Iterable[str] | None) -> list[str]:
        """Return the stored filters of `keys`. An empty result selects all keys."""
        if keys is None:
            return []
        given = one_or_several(keys, "keys", "one key")
        return [self._codecs.encode_filter(each) for each in given] or [NOTHING]

    @opens
    def watch(
        self,
        keys: str | Iterable[str] | None = None,
        *,
        history: bool = False,
        updates_only: bool = False,
        deletes: bool = True,
        meta_only: bool = False,
        resume_from: int | None = None,
        on_report: Callable[[PullReport], None] | None = None,
        **_unknown: Never,
    ) -> Opening[KeyValueWatch[V]]:
        """Iterate over the last entry of each key, then over each new revision.

        Args:
            keys: Only watch keys that match one of these; by default all keys.
            history: Begin with all stored revisions instead of the last entry of each key.
            updates_only: Skip the existing entries.
            deletes: Whether to return markers of deleted keys.
            meta_only: Return entries without values.
            resume_from: Begin with this revision, and return all later revisions.
            on_report: Called when the watch's consumer was lost or re-created.

        Raises:
            BucketNotFound: The bucket does not exist.
            InvalidKey: One of `keys` is invalid.
            BadArgument: More than one of `history`, `updates_only` and `resume_from` is given. Or
                the bucket has not reached `resume_from`, because it was deleted and re-created.
        """
        if _unknown:
            raise unknown_keyword("KeyValue.watch", _unknown)
        check_callback(on_report, "on_report")
        from js_async.kv.watch import WatchOptions, open_watch

        options = WatchOptions(
            history=history,
            updates_only=updates_only,
            deletes=deletes,
            meta_only=meta_only,
            resume_from=resume_from,
        )
        stored = self._filters(keys)
        return opening(open_watch(self._place, self._maker, stored, options, on_report))

    async def purge_deletes(
        self, *, older_than: Seconds = _HALF_AN_HOUR, idle_timeout: Seconds = _PATIENCE
    ) -> PurgeDeletesResult:
        """Remove markers and older revisions of deleted keys; return a `PurgeDeletesResult`.

        Markers younger than `older_than` seconds (default: half an hour) are kept, because a
        disconnected watch receives them after it has reconnected. With `math.inf`, all markers are
        kept, and only older revisions are removed. A value that another client writes during the
        call is kept. A marker whose key has a wildcard is skipped.

        Args:
            older_than: Age in seconds from which a marker is removed.
            idle_timeout: Seconds without progress after which the call fails.
        """
        from js_async.kv.keys import purge_markers

        return await purge_markers(self._place, older_than, seconds(idle_timeout, "idle_timeout"))

    # ---- codecs and caches

    @overload
    def with_codecs(self, *, key: KeyCodec) -> KeyValue[V]: ...

    @overload
    def with_codecs(self, *, key: KeyCodec | None = None, value: ValueCodec[W]) -> KeyValue[W]: ...

    def with_codecs(
        self, *, key: KeyCodec | None = None, value: ValueCodec[W] | None = None
    ) -> KeyValue[V] | KeyValue[W]:
        """Return a `KeyValue` of the same bucket with additional codecs (ADR-54).

        The additional codecs encode before the existing codecs, and decode after them.

        Args:
            key: The key: tokens separated by dots.
            value: The value, which the codec encodes.
        """
        codecs = self._codecs.with_codecs(key, value)
        made = KeyValue(self._place, cast("Codecs[V]", codecs), self._validates)
        return cast("KeyValue[V] | KeyValue[W]", made)

    @opens
    def cached(
        self,
        keys: str | Iterable[str] | None = None,
        *,
        on_change: Callable[[Entry[V]], None] | None = None,
        on_report: Callable[[PullReport], None] | None = None,
    ) -> Opening[KeyValueCache[V]]:
        """Return an in-memory copy of the bucket, or of the keys that match `keys`.

        A watch keeps the copy current. A write through the copy can be read from the copy when the
        write call returns.

        Args:
            keys: Only copy keys that match one of these; by default all keys.
            on_change: Called with each new revision that the watch delivers. It must be a plain
                function that returns quickly.
            on_report: Called when the watch's consumer was lost or re-created.

        Raises:
            UnsuitableSettings: The bucket has a `ttl` but no `limit_marker_ttl`, so the server does
                not report when a value expires.
        """
        from js_async.kv.cache import open_cache
        from js_async.kv.watch import WatchOptions, open_steps

        check_callback(on_change, "on_change")
        check_callback(on_report, "on_report")
        stored = self._filters(keys)

        def follow() -> Opening[EntrySteps[V]]:
            return opening(open_steps(self._place, self._maker, stored, WatchOptions(), on_report))

        transport, codecs = self._place.api.transport, self._codecs
        return opening(open_cache(self, transport, codecs, stored, follow, on_change, on_report))

    def typed(self, model: type[W] | Codec[W]) -> KeyValue[W]:
        """Return a `KeyValue` of the same bucket with values of type `model`.

        `codec_for` chooses the codec: JSON for most types. A codec is used as it is. A bucket
        stores no headers. An entry that does not fit raises or has a `PayloadError`.

        Raises:
            BadArgument: A part of the type cannot be encoded.
        """
        from twinstream.codecs.named_codec import NamedCodec

        return self.with_codecs(value=NamedCodec(model))
