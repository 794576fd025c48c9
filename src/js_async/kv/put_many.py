"""Write the values of many keys without waiting for each acknowledgement.

Theory of operation. Each item is a message of a publish pipeline, as in `publish_many`. Two more
rules ensure that each key ends with the value that single `put` calls would store:

* Only one write of a key is in flight at a time. Otherwise, a retry of a write could be stored
  after a later write of the same key.
* If the connection is lost before the response to a write arrives, the pipeline reads the key, as
  `put` does. Unless the value is stored, it repeats the write on the condition that the key has not
  changed. A newer revision with another value was written by another client, because the pipeline
  had no other write of the key in flight.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

from js_async.kv.bucket_streams import BucketStreams
from js_async.kv.writes import BucketWrites, rollup_for
from js_async.publish.inflight import InFlight, Outcome
from js_async.publish.pipeline import Pipeline
from js_async.publish.publish_many import PublishMany
from js_async.runtime.concurrency import Items
from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.kv.codecs import Codecs
from twinstream.core.kv.put_many import KeyPutFailure, item_of, items_of
from twinstream.core.publish.limits import PublishLimits
from twinstream.core.publish.publish_engine import Action, Fail, Prove
from twinstream.errors import BadArgument, ConnectionLost, PublishFailure, TwinstreamError
from twinstream.errors.kv import bucket_error
from twinstream.models import PubAck
from twinstream.records.entry import DELETED, PURGED
from twinstream.records.publish_request import Publishable, PublishRequest, Ttl

__all__ = ["MarkerPipeline", "PutMany", "PutPipeline", "remove_many"]


class PutMany(PublishMany):
    """An iterator over the outcomes of many items, in order. Created by `KeyValue.put_many`.

    An outcome is the acknowledgement, whose `seq` is the revision, or a `KeyPutFailure` with the
    error. The rules for unread failures and for leaving early are those of `PublishMany`.
    """

    _call = "put_many"

    def __init__(
        self,
        pipeline: PutPipeline,
        items: object,
        raise_failures: bool,
    ) -> None:
        # The base class expects messages. `PutPipeline.prepare` makes them from the items.
        requests = cast("Iterable[Publishable]", items_of(items))
        super().__init__(pipeline, requests, raise_failures)

    def __aiter__(self) -> Items[PubAck | KeyPutFailure]:
        return cast("Items[PubAck | KeyPutFailure]", super().__aiter__())


class PutPipeline(Pipeline):
    """Sends each item as a message, and determines the outcome of each item."""

    def __init__(
        self,
        place: BucketStreams,
        writes: BucketWrites,
        codecs: Codecs[Any],
        limits: PublishLimits,
        ttl: Ttl | None,
        validate_keys: bool,
    ) -> None:
        super().__init__(place.api, limits, name="put_many")
        self._place: Final = place
        self._writes: Final = writes
        self._codecs: Final = codecs
        self._ttl: Ttl | None = ttl
        self._validates: Final = validate_keys
        # By reply subject: the key, the value, and the bucket's highest revision seen before the
        # message was sent. The revision is 0 until the message is sent.
        self._items: Final[dict[bytes, tuple[str, Any, int]]] = {}
        # By subject: the reply subject of the last write of this key. If there are more than
        # `_most` entries, `_begin` removes those whose write is not in flight.
        self._last: dict[bytes, bytes] = {}
        self._most: Final = 2 * limits.window
        # The start of the timeout of the next lookup: when the connection was lost, or when the
        # previous lookup ended before its deadline.
        self._resolved_at = 0.0

    async def open(self) -> None:
        """Check the TTL, wait for the connection, and subscribe to the inbox.

        Also find out where a mirror is written.
        """
        await self._place.follow(self._place.api.deadline())
        if self._ttl is not None:
            self._ttl = await self._writes.key_ttl(self._ttl, single=True)
        await super().open()

    # ---- sending

    def prepare(self, given: Publishable) -> InFlight:
        """Return the entry of an item.

        If a codec fails or the message is invalid, the entry's outcome is a `KeyPutFailure`. Raises
        `BadArgument` if the item is not a pair.
        """
        key, value = item_of(given)
        try:
            stored = self._codecs.to_write(key, self._validates)
            subject = self._place.subjects.to_write(stored)
            data = self._codecs.encode_value(value)
        except TwinstreamError as error:
            return self._refused(key, value, error)
        except Exception as error:
            # Codecs are user code, so they may raise any exception.
            refusal = BadArgument(f"key {key!r}: a codec failed: {error!r}")
            refusal.__cause__ = error
            return self._refused(key, value, refusal)
        entry = super().prepare(self._request(subject, data))
        if entry.outcome is not None:
            return self._refused(key, value, cast("PublishFailure", entry.outcome).peek())
        self._items[entry.reply] = (key, value, 0)
        return entry

    def _request(self, subject: str, data: bytes) -> PublishRequest | tuple[str, bytes]:
        """Return the message of an item."""
        if self._ttl is None:
            return subject, data
        return PublishRequest(subject, data, rollup=rollup_for(self._ttl), ttl=self._ttl)

    def _refused(self, key: str, value: Any, error: TwinstreamError) -> InFlight:
        request = PublishRequest(f"{self._place.subjects.written}{key}")
        entry = InFlight(request, b"", b"", b"", 0.0)
        entry.outcome = KeyPutFailure(request, error, key=key, value=value)
        return entry

    def write(self, entry: InFlight) -> bool:
        """Send a message if that needs no waiting; return whether it was sent.

        The method sends nothing if another message of the same key is in flight. After False, the
        caller has to call `send`.
        """
        if self._before(entry) is not None:
            return False
        self._begin(entry)
        return super().write(entry)

    async def send(self, entry: InFlight) -> None:
        """Send a message, after waiting for the outcome of a message of the same key in flight."""
        while (before := self._before(entry)) is not None:
            await self.until(before)
        # `write` did not call `_begin` if another message of the key was in flight.
        if self._last.get(entry.subject) != entry.reply:
            self._begin(entry)
            entry.started = entry.sent_at = monotonic()
        await super().send(entry)

    def _begin(self, entry: InFlight) -> None:
        """Record a message as the last write of its key, before it is sent.

        Also records the bucket's highest revision seen so far. The caller must ensure that no other
        write of the key is in flight.
        """
        key, value, _ = self._items[entry.reply]
        self._items[entry.reply] = (key, value, self._place.seen)
        if len(self._last) > self._most:
            waiting = self._waiting
            self._last = {key: reply for key, reply in self._last.items() if reply in waiting}
        self._last[entry.subject] = entry.reply

    def _before(self, entry: InFlight) -> InFlight | None:
        """Return another message of the same key that is in flight, or None."""
        before = self._waiting.get(self._last.get(entry.subject, b""))
        return None if before is entry else before

    # ---- outcomes

    def _finish(self, entry: InFlight, outcome: Outcome) -> None:
        item = self._items.get(entry.reply)
        if item is not None:
            outcome = self._judged(entry, outcome, item)
        super()._finish(entry, outcome)
        self._items.pop(entry.reply, None)

    def _judged(self, entry: InFlight, outcome: Outcome, item: tuple[str, Any, int]) -> Outcome:
        """Convert the outcome of a message to the outcome of its item.

        An acknowledgement by a stream that is not the bucket's becomes a failure.
        """
        place, key, value = self._place, item[0], item[1]
        if isinstance(outcome, PublishFailure):
            error = outcome.peek()
            bucket_failure = bucket_error(place.bucket, error)
            if bucket_failure is not error:
                bucket_failure.__cause__ = error
            return KeyPutFailure(entry.request, bucket_failure, key=key, value=value)
        if outcome.stream != self._writes.stream_name:
            error = self._writes.wrong_stream(entry.given[0], outcome)
            return KeyPutFailure(entry.request, error, key=key, value=value)
        place.wrote(entry.given[0].removeprefix(place.subjects.written), outcome.seq)
        return outcome

    async def until(self, entry: InFlight) -> Outcome:
        """Wait for the outcome of an item and return it."""
        outcome = await super().until(entry)
        item = self._items.get(entry.reply)
        if item is not None and isinstance(outcome, PublishFailure):
            # The send was interrupted, so `_finish` did not convert the outcome.
            return self._judged(entry, outcome, item)
        return outcome

    def _act(self, entry: InFlight, action: Action) -> None:
        if isinstance(action, Fail) and isinstance(action.error, ConnectionLost):
            if not self._to_recover:
                self._resolved_at = monotonic()
            action = Prove(action.error)
        super()._act(entry, action)

    async def _prove(self, entry: InFlight, refusal: TwinstreamError) -> None:
        """Find out whether the write was stored before the connection broke; set its outcome."""
        item = self._items.get(entry.reply)
        if item is None or not isinstance(refusal, ConnectionLost):
            await super()._prove(entry, refusal)
            return
        request = entry.request
        key = self._codecs.stored_key(item[0])
        # The lookups of several writes run one after the other. If a lookup ends in time, the next
        # one gets the full timeout. If the server does not respond, all remaining lookups fail when
        # the first timeout has passed.
        deadline = Deadline(self._resolved_at + self.limits.timeout)
        try:
            seq = await self._writes.resolved(key, request, item[2], deadline, refusal)
        except TwinstreamError as error:
            self._finish(entry, PublishFailure(request, error))
        else:
            self._finish(entry, PubAck(stream=self._writes.stream_name, seq=seq))
        if not deadline.expired():
            self._resolved_at = monotonic()


class MarkerPipeline(PutPipeline):
    """Sends a marker for each key, of a delete or of a purge."""

    def __init__(
        self,
        place: BucketStreams,
        writes: BucketWrites,
        codecs: Codecs[Any],
        limits: PublishLimits,
        ttl: Ttl | None,
        purges: bool,
    ) -> None:
        # A marker has no value, so that of an item is not encoded.
        super().__init__(place, writes, Codecs(codecs.key, None), limits, ttl, False)
        self._purges: Final = purges

    async def open(self) -> None:
        """Check the TTL, which a purge may have in any bucket, and where a mirror is written."""
        await self._place.follow(self._place.api.deadline())
        if self._ttl is not None:
            self._ttl = await self._writes.key_ttl(self._ttl, single=False)
        await Pipeline.open(self)

    def _request(self, subject: str, data: bytes) -> PublishRequest:
        if not self._purges:
            return PublishRequest(subject, data, DELETED)
        return PublishRequest(subject, data, PURGED, rollup="sub", ttl=self._ttl)


async def remove_many(pipeline: MarkerPipeline, keys: Sequence[str]) -> int:
    """Send a marker for each key, and return the number of keys. Raises `PublishFailures`."""
    count = 0
    async with PutMany(pipeline, [(key, b"") for key in keys], True) as outcomes:
        async for outcome in outcomes:
            count += not isinstance(outcome, PublishFailure)
    return count
