"""An in-memory copy of a bucket, updated by a watch, for values that are read often."""

from __future__ import annotations

import warnings
from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence, ValuesView
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, Self, TypeVar, cast, overload

from js_async.client.closable import Closable
from js_async.client.transport import Transport
from js_async.kv.watch import CaughtUp, EntrySteps, returned_revision
from js_async.runtime.concurrency import BlockHint, Lock, LoopHint, Task, spawn
from js_async.runtime.opening import Opening
from twinstream.core.consume.reports import WorkEnded
from twinstream.core.deadline import NEVER, Deadline, Seconds
from twinstream.core.kv.cached_entries import CachedEntries, ServerClock
from twinstream.core.log.reporter import GuardedReporter
from twinstream.core.on_failure import AsyncOnFailure
from twinstream.core.wire.subject_match import matcher
from twinstream.errors import (
    KeyNotFound,
    RequestTimeout,
    TwinstreamError,
    UnsuitableSettings,
)
from twinstream.models import Timestamp
from twinstream.models.digits import natural
from twinstream.records.entry import Entry, KeyValueOperation
from twinstream.records.guarantee_gap import GuaranteeGap
from twinstream.records.header_names import TTL
from twinstream.records.headers import Headers

if TYPE_CHECKING:
    from js_async.kv.bucket import KeyValue
    from twinstream.core.consume.reports import PullReport
    from twinstream.core.kv.codecs import Codecs
    from twinstream.models import StreamConfig
    from twinstream.records.publish_request import Ttl

__all__ = ["KeyValueCache", "open_cache"]

V = TypeVar("V")
D = TypeVar("D")

# Maximum time that `close` waits for the end of the background task or thread (seconds).
_PATIENCE: Final = 10.0
# Seconds until the background work notices that its cache was dropped.
_LOOK: Final = 5.0


async def open_cache(
    bucket: KeyValue[V],
    transport: Transport,
    codecs: Codecs[V],
    stored: Sequence[str],
    follow: Callable[[], Opening[EntrySteps[V]]],
    on_change: Callable[[Entry[V]], None] | None,
    on_report: Callable[[PullReport], None] | None,
) -> KeyValueCache[V]:
    """Create a cache, and return it when it contains the current values of the matching keys.

    `transport` and `codecs` are those of the bucket. `stored` are filters of stored keys; without
    filters, all keys match. `follow` watches them.
    """
    # Another client may have changed the ttl, so the current settings decide.
    info = (await bucket.status()).info
    _check_expiry(info.config)
    # Servers with a TTL for keys report their time.
    clock = ServerClock((info.ts or Timestamp.of(datetime.now(UTC))).ns)
    watch = await follow()
    matches = matcher(stored)
    cache = KeyValueCache(bucket, transport, codecs, watch, matches, on_change, clock, on_report)
    async with AsyncOnFailure(watch.close):
        await cache._start()
    return cache


def _check_expiry(config: StreamConfig) -> None:
    """Raise `UnsuitableSettings` if the server does not report to watchers that a value expired."""
    if config.max_age and not config.subject_delete_marker_ttl and config.mirror is None:
        because = "the server sends nothing to watchers when a value expires"
        gap = GuaranteeGap(
            "ttl", config.max_age, because, "set limit_marker_ttl (server 2.11), or ttl=0"
        )
        raise UnsuitableSettings(config.name or "", "a cache without expired values", (gap,))


def _has_key(codecs: Codecs[V], entry: Entry[V]) -> bool:
    """Return whether an entry has a key, which it lacks if its stored key cannot be decoded.

    Such a stored key may have the text of another key, and must not replace its entry.
    """
    return entry.error is None or codecs.has_stored(entry.key, entry.raw_key)


class _Follower(Generic[V]):
    """Adds what the watch delivers to the entries of a cache.

    It does not refer to the cache, so that a dropped cache can be collected.
    """

    def __init__(
        self,
        stream: str,
        bucket: str,
        watch: EntrySteps[V],
        entries: CachedEntries[V],
        changing: Lock,
        on_change: Callable[[Entry[V]], None] | None,
        clock: ServerClock,
        has_key: Callable[[Entry[V]], bool],
        on_report: Callable[[PullReport], None] | None,
    ) -> None:
        self._report: Final = GuardedReporter[WorkEnded](
            on_report, "on_report", "consumer", stream=stream
        )
        self._bucket: Final = bucket
        self._watch: Final = watch
        self._entries: Final = entries
        self._changing: Final = changing
        self._on_change: Final = on_change
        self._clock: Final = clock
        self._has_key: Final = has_key
        self.error: BaseException | None = None
        """The error that ended the work, or None."""
        self.revision = 0
        """The revision up to which all changes are in the entries."""
        self.is_over = False
        """Whether the cache was closed, or the work has ended."""
        self.is_dropped = False
        """Whether the program has dropped the cache without closing it."""

    async def run(self) -> None:
        """Follow the watch until it ends, or until the cache is dropped."""
        try:
            while not self.is_dropped:
                try:
                    step = await self._watch.take(Deadline.after(_LOOK))
                except RequestTimeout:
                    self.note_revision()
                    continue
                if step is None:
                    break
                await self._add(step)
            if self.is_dropped:
                await self._watch.close()
        except Exception as error:
            if not self.is_dropped:
                self.error = error
                self._report(WorkEnded(f"the cache of bucket {self._bucket}", error))
        finally:
            self.is_over = True

    def note_revision(self) -> None:
        """Update `revision`. Called when everything that the watch has returned is added."""
        self.revision = returned_revision(self._watch)

    async def _add(self, step: Entry[V] | CaughtUp) -> None:
        generation = self._watch.state.generation
        if isinstance(step, CaughtUp):
            async with self._changing:
                self._entries.caught_up(generation)
            self.note_revision()
            return
        async with self._changing:
            self._clock.note_time(step.timestamp_ns)
            if self._has_key(step):
                self._entries.delivered(step, generation)
        self.note_revision()
        if self._on_change is not None:
            self._on_change(step)


class KeyValueCache(Closable, BlockHint, LoopHint, Mapping[str, V]):
    """The values of a bucket in memory. Created by `KeyValue.cached`; call `close` at the end.

    The cache is a mapping of keys to values, which reads from memory, without a request. A write by
    another client is visible when the watch delivers it. A write through this cache is visible when
    the call returns. Entries whose stored keys the codec cannot decode are not in the cache, but
    `on_change` receives them. While the connection is down, the values may be outdated: see
    `is_current`.

    If the watch or `on_change` raises an error, every later read raises this error. The watch
    raises `BucketNotFound` if the bucket was deleted, and `ConnectionClosed` if the connection was
    closed.
    """

    # Set when the cache has its first entries.
    _task: Task | None = None

    def __init__(
        self,
        bucket: KeyValue[V],
        transport: Transport,
        codecs: Codecs[V],
        watch: EntrySteps[V],
        matches: Callable[[bytes], object] | None,
        on_change: Callable[[Entry[V]], None] | None,
        clock: ServerClock,
        on_report: Callable[[PullReport], None] | None = None,
    ) -> None:
        super().__init__()
        self._bucket: Final = bucket
        self._transport: Final = transport
        self._codecs: Final = codecs
        self._watch: Final = watch
        self._matches: Final = matches
        self._clock: Final = clock
        self._entries: Final[CachedEntries[V]] = CachedEntries()
        # Held during changes of `_entries`: a write through the cache may be finished by one thread
        # while another thread adds entries from the watch.
        self._changing: Final = Lock()
        self._follower: Final = _Follower(
            bucket.stream_name,
            bucket.bucket,
            watch,
            self._entries,
            self._changing,
            on_change,
            clock,
            partial(_has_key, codecs),
            on_report,
        )

    async def _start(self) -> None:
        watch = self._watch
        while (step := await watch.take(NEVER)) is not None and not isinstance(step, CaughtUp):
            if _has_key(self._codecs, step):
                self._entries.delivered(step, watch.state.generation)
        self._entries.caught_up(watch.state.generation)
        self._follower.note_revision()
        self._task = spawn(self._follower.run, "twinstream-key-value-cache")

    def __del__(self) -> None:
        if self._task is None or self._follower.is_over or self._is_parents:
            return
        self._follower.is_dropped = True
        if not self._transport.is_closed:
            warnings.warn(
                f"{self._bucket.bucket}: a cache was not closed, so it ends within {_LOOK:g} s. Use"
                " it in a `with` block, or close it",
                ResourceWarning,
                stacklevel=2,
            )

    # ---- reading

    @property
    def bucket(self) -> KeyValue[V]:
        """The bucket. The cache shows writes through `bucket` when the watch delivers them."""
        return self._bucket

    @property
    def is_current(self) -> bool:
        """Whether the cache receives changes.

        This is false while the client is disconnected, after the watch or `on_change` has failed,
        and after `close`.
        """
        connected = self._transport.is_connected
        return connected and self._follower.error is None and not self._watch.is_ended

    @property
    def revision(self) -> int:
        """The revision up to which the cache has all changes.

        It may be some seconds behind changes of keys that the filters of the cache leave out.
        """
        return self._follower.revision

    def entry(self, key: str) -> Entry[V] | None:
        """Return the entry of a key, or None if the key has no value.

        If a codec cannot decode the entry, the error of the codec is raised.

        Args:
            key: The key: tokens separated by dots.
        """
        self._raise()
        entry = self._entries.find(key)
        if entry is None or self._is_over(entry):
            return None
        if entry.error is not None:
            raise entry.error
        return entry

    @overload
    def get(self, key: str, /) -> V | None: ...

    @overload
    def get(self, key: str, /, default: V | D) -> V | D: ...

    def get(self, key: str, /, default: V | D | None = None) -> V | D | None:
        """Return the value of a key, or `default` if the key has no value.

        Args:
            key: The key: tokens separated by dots.
            default: What is returned if the key has no value.
        """
        entry = self.entry(key)
        return default if entry is None else entry.value

    def __getitem__(self, key: str) -> V:
        entry = self.entry(key)
        if entry is None:
            raise KeyNotFound(self._bucket.bucket, key)
        # A codec may decode a value to None.
        return cast("V", entry.value)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.entry(key) is not None

    def __iter__(self) -> Iterator[str]:
        self._raise()
        return (entry.key for entry in self._entries.living() if not self._is_over(entry))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def items(self) -> ItemsView[str, V]:
        """Return the keys and values as of the time of the call."""
        return self._now().items()

    def values(self) -> ValuesView[V]:
        """Return the values as of the time of the call."""
        return self._now().values()

    def _now(self) -> dict[str, V]:
        # A key that is removed during an iteration would raise an error.
        found = ((key, self.entry(key)) for key in self)
        return {key: cast("V", entry.value) for key, entry in found if entry is not None}

    def __repr__(self) -> str:
        state = "ended" if self._watch.is_ended else f"at {self.revision}"
        return f"<KeyValueCache of {self._bucket.bucket}: {state}>"

    def _is_over(self, entry: Entry[V]) -> bool:
        """Return whether the entry has a TTL that has passed, according to the server's time.

        If the bucket has no markers for expired values, the watch does not report that a value
        expired.
        """
        if not entry.headers:
            return False
        ttl = natural(entry.headers.get(TTL))
        return ttl is not None and self._clock.now() > entry.timestamp_ns + ttl * 1_000_000_000

    def _raise(self) -> None:
        error = self._follower.error
        if isinstance(error, TwinstreamError):
            raise error.__copy__()
        if error is not None:
            raise error

    # ---- writing

    async def put(
        self, key: str, value: V, *, ttl: Ttl | None = None, timeout: Seconds | None = None
    ) -> int:
        """Store a value as `KeyValue.put` does, update the cache, and return the new revision.

        Args:
            key: The key: tokens separated by dots.
            value: The value, which the codec encodes.
            ttl: Seconds until the value expires; None sets no expiry of its own.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        before = self._entries.reached
        revision = await self._bucket.put(key, value, ttl=ttl, timeout=timeout)
        return await self._wrote(key, value, revision, KeyValueOperation.PUT, before)

    async def create(
        self, key: str, value: V, *, ttl: Ttl | None = None, timeout: Seconds | None = None
    ) -> int:
        """Store a value as `KeyValue.create` does, update the cache, and return its revision.

        Args:
            key: The key: tokens separated by dots.
            value: The value, which the codec encodes.
            ttl: Seconds until the value expires; None sets no expiry of its own.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        before = self._entries.reached
        revision = await self._bucket.create(key, value, ttl=ttl, timeout=timeout)
        return await self._wrote(key, value, revision, KeyValueOperation.PUT, before)

    async def update(
        self,
        key: str,
        value: V,
        revision: int,
        *,
        ttl: Ttl | None = None,
        timeout: Seconds | None = None,
    ) -> int:
        """Replace a value as `KeyValue.update` does, update the cache; return the new revision.

        Args:
            key: The key: tokens separated by dots.
            value: The value, which the codec encodes.
            revision: Only if the key is at this revision.
            ttl: Seconds until the value expires; None sets no expiry of its own.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        before = self._entries.reached
        new = await self._bucket.update(key, value, revision, ttl=ttl, timeout=timeout)
        return await self._wrote(key, value, new, KeyValueOperation.PUT, before)

    async def delete(
        self, key: str, *, revision: int | None = None, timeout: Seconds | None = None
    ) -> int:
        """Delete a key as `KeyValue.delete` does, update the cache; return the new revision.

        Args:
            key: The key: tokens separated by dots.
            revision: Only if the key is at this revision.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        before = self._entries.reached
        new = await self._bucket.delete(key, revision=revision, timeout=timeout)
        return await self._wrote(key, None, new, KeyValueOperation.DELETE, before)

    async def purge(
        self, key: str, *, revision: int | None = None, timeout: Seconds | None = None
    ) -> int:
        """Purge a key as `KeyValue.purge` does, update the cache; return the new revision.

        Args:
            key: The key: tokens separated by dots.
            revision: Only if the key is at this revision.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        before = self._entries.reached
        new = await self._bucket.purge(key, revision=revision, timeout=timeout)
        return await self._wrote(key, None, new, KeyValueOperation.PURGE, before)

    async def _wrote(
        self,
        key: str,
        value: V | None,
        revision: int,
        operation: KeyValueOperation,
        before: tuple[int, int],
    ) -> int:
        """Enter a write of this client into the cache, so that a later read returns it.

        Returns `revision`. A key outside the filters of the cache is ignored.
        """
        stored = self._codecs.stored_key(key)
        if self._matches is not None and not self._matches(stored.encode()):
            return revision
        data = b"" if value is None else self._codecs.encode_value(value)
        entry = Entry(
            bucket=self._bucket.bucket,
            key=key,
            value=value,
            revision=revision,
            operation=operation,
            # The watch later delivers an entry with the exact time.
            timestamp_ns=self._clock.now(),
            size=len(data),
            headers=Headers(),
            raw_key=stored,
            raw_value=data,
        )
        async with self._changing:
            self._entries.wrote(entry, before)
        return revision

    # ---- closing

    async def close(self) -> None:
        """End the watch and the background work. The values can still be read."""
        if self._is_parents:
            return
        self._follower.is_over = True
        await self._watch.close()
        task = self._task
        if task is not None and not task.is_current():
            await task.join(Deadline.after(_PATIENCE))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._is_parents:
            await self.close()
