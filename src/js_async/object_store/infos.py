"""Read and write the metadata of objects (`ObjectInfo`).

Metadata is read from the stream's leader, which has every acknowledged write. New metadata is only
stored if the metadata has not changed since it was read.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, NoReturn, Protocol

from attrs import frozen

from js_async.api.api import Api
from js_async.publish.publish import PublishedMessage
from js_async.read.get_message import get_message
from js_async.read.origins import check_visible, origins_of
from js_async.runtime.concurrency import sleep
from js_async.stream import Stream
from twinstream.core.deadline import Backoff, Deadline
from twinstream.core.log.events import ObjectUnreadable
from twinstream.core.log.logger import Log
from twinstream.core.object_store.config import is_copy, origin_of, stored_subjects
from twinstream.core.object_store.info import info_bytes, is_link, listed_info, read_info
from twinstream.core.object_store.names import ObjectSubjects, stream_of
from twinstream.core.object_store.retry import ObjectRetry
from twinstream.core.read.direct_get import last_request
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.subjects import ApiSubjects
from twinstream.errors import (
    BadArgument,
    InvalidObjectInfo,
    InvalidResponse,
    LinkError,
    MessageNotFound,
    ObjectDeleted,
    ObjectNotFound,
    RequestTimeout,
    StreamNotFound,
    TwinstreamError,
    WrongLastSequence,
)
from twinstream.errors.object_store import StoreErrors
from twinstream.models import (
    ObjectInfo,
    PubAck,
    StreamConfig,
    StreamMessageDeleteResponse,
    StreamPurgeResponse,
    Timestamp,
    evolve,
)
from twinstream.records.publish_request import PublishRequest

__all__ = ["ObjectPlace", "Replaced", "StoredElsewhere", "object_place"]

_LOG: Final = Log("object")
# Pauses before a retry, if another client writes the same metadata (seconds).
_BACKOFF: Final = Backoff(0.005, 0.25)


async def object_place(
    api: Api, bucket: str, stream: Stream, deadline: Deadline | None = None
) -> ObjectPlace:
    """Return the `ObjectPlace` of a bucket. Requests the stream's info if it is not cached."""
    deadline = deadline or api.deadline()
    info = stream.cached_info or await stream.info(timeout=deadline.remaining())
    origins = await origins_of(api, info.config, deadline)
    subjects = stored_subjects(info.config, origins)
    if info.config.mirror is not None or info.config.sources:
        prefix, what = f"$O.{subjects.bucket}.", f"object store {bucket}"
        await check_visible(api, info, origins, prefix, what, deadline)
    # The response to the creation of a stream does not contain the domain. If the info is from such
    # a response, use the domain of the API subjects.
    domain = info.domain or api.subjects.domain
    return ObjectPlace(api, bucket, stream, subjects, info.config, domain)


class Unfinished(Protocol):
    """The content of an object that is being stored."""

    async def finish(self) -> None:
        """Wait until the content is stored."""
        ...


class StoredElsewhere(InvalidResponse):
    """A store of the same name in another domain acknowledged a message."""

    domain: str = ""


@frozen
class Replaced:
    """The metadata of an object before and after a change.

    `old` is None if there was no valid metadata.
    """

    old: ObjectInfo | None
    new: ObjectInfo


@frozen
class ObjectPlace:
    """The stream of a bucket, the subjects of its objects, and the requests for metadata.

    All requests end at `deadline`. Without one, each has the timeout of `api`.
    """

    api: Api
    bucket: str
    stream: Stream
    subjects: ObjectSubjects
    config: StreamConfig
    domain: str | None
    deadline: Deadline | None = None

    def until(self, deadline: Deadline | None) -> ObjectPlace:
        """Return the same place, whose requests end at another deadline."""
        # This takes a fifth of the time of `attrs.evolve`.
        return ObjectPlace(
            self.api,
            self.bucket,
            self.stream,
            self.subjects,
            self.config,
            self.domain,
            deadline,
        )

    def check_time(self) -> None:
        """Raise `RequestTimeout` after the deadline."""
        if self.deadline is not None and self.deadline.expired():
            raise RequestTimeout(f"bucket {self.bucket}: the call did not end in time")

    @property
    def left(self) -> float | None:
        """The seconds until the deadline, or None. Raises `RequestTimeout` after the deadline."""
        self.check_time()
        return None if self.deadline is None else self.deadline.remaining()

    @property
    def prefix(self) -> str:
        """The prefix of the subjects of all messages."""
        return f"$O.{self.subjects.bucket}."

    def raise_for(self, error: TwinstreamError) -> NoReturn:
        """Raise the error of the store for an error of its stream."""
        with StoreErrors(self.bucket):
            raise error

    def check_ack(self, ack: PubAck) -> None:
        """Raise `StoredElsewhere` if the acknowledgement is from a store in another domain.

        Stores of the same name have the same subjects in all domains, so the other store may have
        stored the message.
        """
        if self.domain and ack.domain and ack.domain != self.domain:
            error = StoredElsewhere(
                f"the store {self.bucket} of domain {ack.domain} received the request for domain"
                f" {self.domain}: both stores have the same subjects, so rename one of them"
            )
            error.domain = ack.domain
            raise error

    def check_writable(self) -> None:
        """Raise `BadArgument` if the bucket is a mirror or a read-only copy."""
        config = self.config
        if config.mirror is not None:
            origin = origin_of(config) or config.mirror.name
            raise BadArgument(
                f"bucket {self.bucket} is a mirror of {origin}, which can only be read: write to"
                f" bucket {origin}"
            )
        if is_copy(config):
            names = ", ".join(each.name or "" for each in config.sources or ())
            raise BadArgument(
                f"bucket {self.bucket} is a copy that can only be read, because its stream has no"
                f" subjects: write to the stores that it copies: {names}"
            )

    # ---- reading

    async def last(self, name: str) -> StreamMessage | None:
        """Return the message with the metadata of an object, or None if there is no message."""
        subjects = self.subjects
        for subject in (subjects.info(name), subjects.other_info(name)):
            if subject is None:
                continue
            try:
                return await self.message(last_request(subject))
            except MessageNotFound:
                continue
        return None

    async def message(self, request: dict[str, Any]) -> StreamMessage:
        """Return a message from the stream's leader. Raises `MessageNotFound`."""
        return await get_message(
            self.api, self.stream.name, request, direct=False, headers=False, timeout=self.left
        )

    async def find(self, name: str) -> ObjectInfo | None:
        """Return the metadata of an object, even a deleted one, or None if there is no metadata.

        Raises `InvalidObjectInfo` if the metadata is invalid.
        """
        message = await self.last(name)
        return None if message is None else read_info(message, self.bucket)

    async def info(self, name: str, *, deleted: bool = False) -> ObjectInfo:
        """Return the metadata of an object.

        Raises `ObjectNotFound`, `ObjectDeleted` or `InvalidObjectInfo`.
        """
        return self.existing(name, await self.find(name), deleted=deleted)

    def existing(self, name: str, info: ObjectInfo | None, *, deleted: bool = False) -> ObjectInfo:
        """Return `info` if the object exists.

        Raises `ObjectNotFound` if `info` is None. Raises `ObjectDeleted` if the object was deleted,
        unless `deleted` is set.
        """
        if info is None:
            raise ObjectNotFound(f"bucket {self.bucket} has no object {name!r}")
        if info.deleted and not deleted:
            error = ObjectDeleted(f"object {name!r} of bucket {self.bucket} was deleted")
            error.info = info
            raise error
        return info

    async def followed(self, name: str) -> tuple[ObjectPlace, ObjectInfo]:
        """Return the `ObjectPlace` and the metadata of an object.

        For a link, the `ObjectPlace` and the metadata of its target are returned. Raises
        `LinkError` if the link cannot be followed.
        """
        info = await self.info(name)
        link = info.options.link if info.options is not None and is_link(info) else None
        if link is None:
            return self, info
        what = f"object {name!r} of bucket {self.bucket} is a link to"
        if link.name is None:
            error = LinkError(
                f"{what} the whole bucket {link.bucket}: get an object of this bucket"
            )
            error.bucket = link.bucket
            raise error
        what = f"{what} {link.name!r} of bucket {link.bucket}"
        try:
            place = await self._other(link.bucket)
            target = await place.info(link.name)
        except (BadArgument, ObjectNotFound, StreamNotFound) as error:
            # In a link to a bucket, nats.net writes the link's own name as the name of the target.
            whole = ", or it is a link to the whole bucket" if link.name == name else ""
            raise _link_error(
                f"{what}, which does not exist{whole}", link.bucket, link.name
            ) from error
        if is_link(target):
            raise _link_error(f"{what}, which is a link itself", link.bucket, link.name)
        return place, target

    async def target(self, wanted: ObjectInfo) -> ObjectInfo:
        """Return the current metadata of an object to which a link shall point.

        The metadata of a deleted object is returned, too. Raises `LinkError` if there is no
        metadata.
        """
        try:
            place = await self._other(wanted.bucket or self.bucket)
            return await place.info(wanted.name, deleted=True)
        except (BadArgument, ObjectNotFound, StreamNotFound) as error:
            raise _link_error(
                f"a link cannot lead to object {wanted.name!r} of bucket {wanted.bucket}: {error}",
                wanted.bucket or self.bucket,
                wanted.name,
            ) from error

    async def is_older(self, subject: str, age: float) -> bool:
        """Return whether the last message of a subject was stored more than `age` seconds ago.

        The current time is the server's, or the local time if the server does not report its own.
        Returns False if there is no message.
        """
        info = await self.stream.info(timeout=self.left)
        now = info.ts or datetime.now(UTC)
        try:
            last = await self.message(last_request(subject))
        except MessageNotFound:
            return False
        return (now - last.time).total_seconds() > age

    async def _other(self, bucket: str) -> ObjectPlace:
        if bucket == self.bucket:
            return self
        stream = Stream(self.api, stream_of(bucket), None)
        place = await object_place(self.api, bucket, stream, self.deadline)
        return place.until(self.deadline)

    def listed(self, message: StreamMessage) -> ObjectInfo:
        """Return the metadata in a message, or what shows that it cannot be read, and log this."""
        info = listed_info(message, self.bucket)
        error = info.unknown.get("error")
        # Readable metadata may have a member of this name, but always has a NUID.
        if error and info.nuid is None:
            _LOG(ObjectUnreadable(info.name, self.bucket, message.seq, str(error)))
        return info

    # ---- writing

    async def replace(
        self,
        name: str,
        make: Callable[[ObjectInfo | None], ObjectInfo],
        content: Unfinished | None = None,
    ) -> Replaced:
        """Call `make` with the current metadata of an object, and store the result.

        The argument of `make` is None if the object has no valid metadata.
        If another client writes first, `make` is called again with the newer metadata, until the
        deadline. Metadata with the subject that nats.java uses is removed. `content` is
        finished before the metadata is stored for the first time.

        Raises `WrongLastSequence` if other clients wrote first until the deadline. Raises
        `BadArgument` if the bucket is a mirror.
        """
        self.check_writable()
        deadline = self.deadline or self.api.deadline()
        pauses = iter(_BACKOFF)
        while True:
            message = await self.last(name)
            if content is not None:
                await content.finish()
                content = None
            old = None
            if message is not None:
                try:
                    old = read_info(message, self.bucket)
                except InvalidObjectInfo:
                    # Invalid metadata is replaced.
                    pass
            new = make(old)
            subject = self.subjects.info(name)
            # If the metadata has the subject that nats.java uses, `subject` itself has no message.
            has_other_subject = message is not None and message.subject != subject
            expected = 0 if message is None or has_other_subject else message.seq
            try:
                stored = await self._store(subject, new, expected)
            except WrongLastSequence:
                pause = next(pauses)
                if deadline.remaining() <= pause:
                    raise
                await sleep(pause)
                continue
            await self.remove_other(name, stored)
            return Replaced(old, stored)

    async def remove_other(self, name: str, info: ObjectInfo) -> None:
        """Remove earlier metadata of an object that has the subject that nats.java uses.

        A call that was interrupted may have left it.
        """
        other = self.subjects.other_info(name)
        if other is not None:
            await self.remove(other, info.revision or 0)

    async def _store(self, subject: str, info: ObjectInfo, expected: int) -> ObjectInfo:
        """Publish the metadata if `expected` is the last sequence of its subject.

        Returns the metadata with its revision and time. Raises `WrongLastSequence` if another
        client wrote first.
        """
        now = datetime.now(UTC)
        data = info_bytes(info, now)
        request = PublishRequest(
            subject,
            data,
            msg_id=f"{info.nuid}.{self.api.transport.tokens.name()}",
            expected_stream=self.stream.name,
            expected_last_subject_seq=expected,
            rollup="sub",
        )
        try:
            ack = await PublishedMessage(self.api, request, ObjectRetry(), self.left).acknowledged()
            self.check_ack(ack)
            seq = ack.seq
        except WrongLastSequence:
            # The message itself may be what has changed the last sequence: an earlier attempt
            # stored it, but its response was lost, or a later leader does not know its id.
            found = await self._is_last(subject, data)
            if found is None:
                raise
            seq = found
        return evolve(info, revision=seq, mtime=Timestamp.of(now))

    async def _is_last(self, subject: str, data: bytes) -> int | None:
        """Return the sequence of the last message of a subject if it has this content, else None.

        The content includes the time of the write, so no other write has the same.
        """
        try:
            message = await self.message(last_request(subject))
        except MessageNotFound:
            return None
        return message.seq if message.data == data else None

    # The following requests are idempotent: if the response is lost, they are sent again.

    async def remove(self, subject: str, seq: int) -> int:
        """Remove the message at `seq` and all earlier messages of its subject; return how many."""
        return await self._purge({"filter": subject, "seq": seq + 1})

    async def remove_content_elsewhere(self, nuid: str, domain: str) -> None:
        """Remove the content with a NUID from the store of the same name in another domain."""
        api = Api(self.api.transport, ApiSubjects.of(domain=domain, prefix=None), self.api.timeout)
        target = api.subjects.stream("PURGE", self.stream.name)
        body = {"filter": self.subjects.chunks(nuid)}
        await api.call(target, body, StreamPurgeResponse, repeatable=True)

    async def remove_content(self, nuid: str | None, before_seq: int | None = None) -> int:
        """Remove the content with a NUID, or its chunks below a sequence; return how many.

        For content that was stored by another call, use `OldContent.remove`.
        """
        body: dict[str, Any] = {"filter": self.subjects.chunks(nuid)}
        return await self._purge(body if before_seq is None else {**body, "seq": before_seq})

    async def _purge(self, body: dict[str, Any]) -> int:
        target = self.api.subjects.stream("PURGE", self.stream.name)
        answer = await self.api.call(
            target, body, StreamPurgeResponse, self.deadline, repeatable=True
        )
        return answer.purged or 0

    async def remove_message(self, seq: int) -> None:
        """Remove a message, if it exists."""
        target = self.api.subjects.message("DELETE", self.stream.name)
        body = {"seq": seq, "no_erase": True}
        try:
            await self.api.call(
                target, body, StreamMessageDeleteResponse, self.deadline, repeatable=True
            )
        except MessageNotFound:
            # The message is already removed, for example by an attempt whose response was lost.
            pass


def _link_error(text: str, bucket: str, name: str) -> LinkError:
    error = LinkError(text)
    error.bucket, error.name = bucket, name
    return error
