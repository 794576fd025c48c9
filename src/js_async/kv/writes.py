"""Write the keys of a bucket, and find out whether a value was stored if a response is lost.

A conditional write requires that the key is still at a given revision. It has a unique message id,
by which the server detects duplicates and the client recognises its own message.

An unconditional write has no id, because the server would keep the ids of all puts in memory for
the duplicate window. A put with an id also took a quarter longer (server 2.15.1). If the connection
is lost before the response to an unconditional write arrives, the client reads the key. Unless the
value is stored, the client repeats the write conditionally.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, cast

from attrs import evolve

from js_async.kv.bucket_streams import BucketStreams
from js_async.publish.publish import PublishedMessage
from js_async.runtime.concurrency import sleep
from js_async.stream import known_info
from js_async.subject_writes.subject_writes import SubjectWrite, SubjectWrites
from twinstream.core.deadline import Deadline, Seconds
from twinstream.core.exactly_once.attempts import WriteAttempts
from twinstream.core.exactly_once.conditional_write import Refusal, Stored, judge
from twinstream.core.kv.entries import EntryMaker
from twinstream.core.kv.names import KeySubjects
from twinstream.core.kv.ttl import check_key_ttl, whole_ttl
from twinstream.core.publish.retry_pauses import retry_policy
from twinstream.core.read.stream_message import StreamMessage
from twinstream.errors import (
    BadArgument,
    ConnectionLost,
    InvalidResponse,
    KeyExists,
    MessageNotFound,
    NoResponders,
    OutcomeUnknown,
    RevisionMismatch,
    StreamNotFound,
    TwinstreamError,
    Unsupported,
    WrongLastSequence,
)
from twinstream.errors.kv import raise_for_bucket
from twinstream.models import PubAck, StreamConfig
from twinstream.records.entry import Entry, operation_of
from twinstream.records.header_names import TTL
from twinstream.records.headers import HeaderValues
from twinstream.records.publish_request import PublishRequest, Rollup, Ttl

__all__ = ["BucketWrites", "rollup_for"]

_RETRY: Final = retry_policy(None, 0.25)


def rollup_for(ttl: Ttl | None) -> Rollup | None:
    """Return the rollup of a write of a value.

    A value with a TTL removes the older revisions of its key. If they were kept, the previous one
    would be the key's last revision again when the new value expires. The write does so whatever
    the history of the bucket is, because another client may change the history at any time.
    """
    return None if ttl is None else "sub"


class BucketWrites:
    """The write operations of a bucket, for keys and values that are already encoded."""

    def __init__(self, place: BucketStreams) -> None:
        self._place: Final = place
        self._made: SubjectWrites | None = None
        self._made_for: KeySubjects | None = None

    @property
    def _writes(self) -> SubjectWrites:
        """The conditional writes; new ones after a mirror became a bucket of its own."""
        subjects = self._place.subjects
        if self._made is None or self._made_for is not subjects:
            self._made, self._made_for = SubjectWrites(self._place.target_api), subjects
        return self._made

    @property
    def stream_name(self) -> str:
        """The name of the stream that stores the keys."""
        return self._place.subjects.origin or self._place.stream.name

    async def write(
        self,
        key: str,
        data: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        rollup: Rollup | None = None,
        ttl: Ttl | None = None,
        timeout: Seconds | None = None,
    ) -> int:
        """Store a revision, whatever the key's current revision is, and return its number."""
        place, seen = self._place, self._place.seen
        deadline = None if timeout is None else place.api.deadline(timeout)
        if place.is_mirror:
            deadline = deadline or place.api.deadline()
            await place.follow(deadline)
            timeout = deadline.remaining()
        subject = place.subjects.to_write(key)
        request = PublishRequest(subject, data, headers, rollup=rollup, ttl=ttl)
        try:
            ack = await PublishedMessage(place.api, request, _RETRY, timeout).acknowledged()
        except ConnectionLost as error:
            deadline = deadline or place.api.deadline()
            try:
                return await self.resolved(key, request, seen, deadline, error)
            except TwinstreamError as trouble:
                raise_for_bucket(place.bucket, trouble)
        except TwinstreamError as error:
            raise_for_bucket(place.bucket, error)
        if ack.stream != self.stream_name:
            raise self.wrong_stream(request.subject, ack)
        place.wrote(key, ack.seq)
        return ack.seq

    def wrong_stream(self, subject: str, ack: PubAck) -> InvalidResponse:
        """Return the error for an acknowledgement by a stream that is not the bucket's."""
        return InvalidResponse(
            f"{subject}: {ack.stream} acknowledged, not {self.stream_name}: another stream has the"
            " subjects of the bucket"
        )

    async def resolved(
        self,
        key: str,
        request: PublishRequest,
        seen: int,
        deadline: Deadline,
        error: ConnectionLost,
    ) -> int:
        """Return the revision of a write whose response was lost with the connection.

        `seen` is the bucket's highest revision known before the write. The function reads the key:

        * A revision above `seen` with the same value is the result of the write.
        * A revision above `seen` with another value was written by another client, before or after
          this write. `OutcomeUnknown` is raised.
        * If the key has no revision above `seen`, the function repeats the write on the condition
          that the key has not changed. If the key has changed, the function reads it again.
        """
        tries = WriteAttempts(deadline)
        tries.lost()
        while True:
            found = await self._last_message(key, request, tries)
            at = 0 if found is None else found.seq
            if found is not None and at > seen:
                if not _is_same(found, request):
                    raise OutcomeUnknown(
                        f"key {key!r}: an answer was lost, and now the key is at revision {at} of"
                        " another client; the value was stored and replaced since, or never stored"
                    ) from error
                self._place.wrote(key, at)
                return at
            again = await self._write_again(key, request, at, tries)
            if again is not None:
                self._place.wrote(key, again)
                return again

    async def _last_message(
        self, key: str, request: PublishRequest, tries: WriteAttempts
    ) -> StreamMessage | None:
        """Return the last message of the key from the stream's leader, or None if there is none."""
        while True:
            try:
                stream = await self._place.target(tries.deadline)
                await self._writes.ready(tries.deadline)
                timeout = tries.deadline.remaining()
                subject = self._place.subjects.at_origin(key)
                return await stream.get_last_message(subject, timeout=timeout)
            except MessageNotFound:
                return None
            except TwinstreamError as error:
                if judge(error) not in {Refusal.LOST, Refusal.PASSING}:
                    raise
                await sleep(tries.pause(error, request.subject))

    async def _write_again(
        self, key: str, request: PublishRequest, at: int, tries: WriteAttempts
    ) -> int | None:
        """Repeat the write if the key is still at revision `at`, and return the new revision.

        Returns None if the key is not at this revision. `at` is 0 if the key has no revision.
        """
        rest = (request.headers, request.rollup, request.ttl)
        write = await self._conditional(key, request.data, at, *rest, tries.deadline)
        if at == 0:
            outcome = await write.insert()
            return outcome.seq if isinstance(outcome, Stored) else None
        try:
            return (await write.update(at)).seq
        except WrongLastSequence as error:
            await sleep(tries.pause(error, request.subject))
            return None

    async def update(
        self,
        key: str,
        data: bytes,
        revision: int,
        *,
        headers: HeaderValues | None = None,
        rollup: Rollup | None = None,
        ttl: Ttl | None = None,
        timeout: Seconds | None = None,
    ) -> int:
        """Replace `revision` of a key, of which 0 is none, and return the new revision.

        Raises `RevisionMismatch` if the key is at another revision.
        """
        deadline = self._place.api.deadline(timeout)
        try:
            write = await self._conditional(key, data, revision, headers, rollup, ttl, deadline)
            stored = await write.update(revision)
        except WrongLastSequence as error:
            raise RevisionMismatch.of(error, key, revision) from error
        except TwinstreamError as error:
            await self._raise(error)
            raise
        self._place.wrote(key, stored.seq)
        return stored.seq

    async def create(
        self,
        key: str,
        data: bytes,
        maker: EntryMaker[Any],
        *,
        ttl: Ttl | None = None,
        timeout: Seconds | None = None,
    ) -> int:
        """Store a value if the key has no value, and return its revision. Raises `KeyExists`."""
        deadline = self._place.api.deadline(timeout)
        tries = WriteAttempts(deadline)
        try:
            rollup = rollup_for(ttl)
            while True:
                write = await self._conditional(key, data, 0, None, rollup, ttl, deadline)
                outcome = await write.insert()
                if isinstance(outcome, Stored):
                    self._place.wrote(key, outcome.seq)
                    return outcome.seq
                if outcome.message is None:
                    raise InvalidResponse(
                        f"key {key!r}: the server reports a duplicate, but the message id is new"
                    )
                entry = maker.of_stored(self._as_here(outcome.message, key))
                if entry.is_value:
                    raise KeyExists.at(entry)
                seq = await self._replace_marker(entry, key, data, rollup, ttl, tries)
                if seq is not None:
                    self._place.wrote(key, seq)
                    return seq
        except KeyExists:
            raise
        except WrongLastSequence as error:
            raise RevisionMismatch.of(error, key, 0, tries.answered) from error
        except TwinstreamError as error:
            await self._raise(error)
            raise

    def _as_here(self, found: StreamMessage, key: str) -> StreamMessage:
        """Return a message of the origin with the subject that it has in this bucket."""
        subject = self._place.subjects.stored + key
        return found if found.subject == subject else evolve(found, subject=subject)

    async def _replace_marker(
        self,
        marker: Entry[Any],
        key: str,
        data: bytes,
        rollup: Rollup | None,
        ttl: Ttl | None,
        tries: WriteAttempts,
    ) -> int | None:
        """Replace the marker of a key by a value, and return the new revision.

        Returns None if the marker is not the key's last revision. The caller then tries again.
        """
        write = await self._conditional(
            key, data, marker.revision, None, rollup, ttl, tries.deadline
        )
        try:
            return (await write.update(marker.revision)).seq
        except WrongLastSequence as error:
            # The marker expired, or another client wrote the key. That write may still be in
            # progress and may fail.
            await sleep(tries.pause(error, key))
            return None

    async def _conditional(
        self,
        key: str,
        data: bytes,
        revision: int,
        headers: HeaderValues | None,
        rollup: Rollup | None,
        ttl: Ttl | None,
        deadline: Deadline,
    ) -> SubjectWrite:
        """Prepare a write that succeeds only if `revision` is the key's last revision.

        Revision 0 means that the key has no message.
        """
        stream = await self._place.target(deadline)
        subjects = self._place.subjects
        subject = subjects.to_write(key)
        await self._writes.ready(deadline)
        request = PublishRequest(
            subject=subject,
            data=data,
            headers=headers,
            msg_id=self._place.api.transport.tokens.name(),
            expected_stream=stream.name,
            expected_last_subject_seq=revision,
            rollup=rollup,
            ttl=ttl,
        )
        return SubjectWrite(
            self._writes, stream, request, WriteAttempts(deadline), subjects.at_origin(key)
        )

    async def _raise(self, error: TwinstreamError) -> None:
        """Raise the bucket's error for an error of a conditional write (see `bucket_error`)."""
        if isinstance(error, NoResponders):
            # The bucket may have been deleted since its info was last requested.
            try:
                await self._place.stream.info()
            except StreamNotFound as missing:
                raise_for_bucket(self._place.bucket, missing)
        raise_for_bucket(self._place.bucket, error)

    # ---- TTL of keys

    async def key_ttl(self, ttl: Seconds | str | None, *, single: bool) -> Ttl | None:
        """Return the TTL of a key in the server's format, or None if `ttl` is None.

        With `single`, the bucket must have a history of 1. Raises `BadArgument` for an invalid TTL
        or a longer history, and `Unsupported` if the bucket has no TTL for keys.
        """
        if ttl is None:
            return None
        whole = whole_ttl(ttl)
        place = self._place
        stream = await place.target(place.api.deadline())
        with suppress(BadArgument, Unsupported):
            self._check_ttl(whole, known_info(stream).config, single)
            return whole
        # The cached configuration may be outdated, so the current one decides.
        self._check_ttl(whole, (await stream.info()).config, single)
        return whole

    def _check_ttl(self, ttl: Ttl, config: StreamConfig, single: bool) -> None:
        if not config.allow_msg_ttl:
            raise Unsupported(
                f"bucket {self._place.bucket} has no TTL for keys: set its limit_marker_ttl (server"
                " 2.11), which cannot be undone"
            )
        check_key_ttl(ttl, config, single=single)


def _is_same(found: StreamMessage, request: PublishRequest) -> bool:
    """Return whether a stored message may be the result of the requested write.

    The message must have the same value and operation. It must have a TTL if and only if the
    requested write has one.
    """
    given = request.headers or {}
    return (
        found.data == request.data
        and operation_of(found.headers) is operation_of(cast("Mapping[str, str]", given))
        and (TTL in found.headers) == (request.ttl is not None)
    )
