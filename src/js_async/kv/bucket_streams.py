"""`BucketStreams`: the stream or streams of a bucket, and reads of single messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NoReturn

from js_async.api.api import Api
from js_async.read.get_message import get_message
from js_async.read.origins import origins_of
from js_async.stream import Stream
from twinstream.core.deadline import Deadline
from twinstream.core.kv.names import KeySubjects, stream_of
from twinstream.core.read.direct_get import from_direct
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.status import is_unserved
from twinstream.core.wire.subjects import ApiSubjects
from twinstream.errors import (
    BadArgument,
    MessageNotFound,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.errors.kv import raise_for_bucket
from twinstream.models import StreamConfig, StreamInfo, StreamSource

__all__ = ["BucketStreams"]

# Maximum number of bytes of a key for the fast path, which does not check the length of the
# subject. `get_message` checks it.
_LONG_KEY: Final = 1000

# Maximum number of keys whose own writes are remembered. After that, the settings are requested
# again before the next read.
_MOST_WRITES: Final = 1000


class BucketStreams:
    """The stream of a bucket and, if the bucket is a mirror, also the stream that it mirrors.

    Reads use the bucket's stream. Writes to a mirror use the mirrored stream (the origin). If
    `info` is None, the bucket is treated as if it were not a mirror. `origins` are the streams that
    a mirror copies, see `origins_of`.
    """

    def __init__(
        self,
        api: Api,
        bucket: str,
        info: StreamInfo | None,
        origins: Sequence[StreamConfig] = (),
    ) -> None:
        self.api: Final = api
        self.bucket: Final = bucket
        self.stream: Final = Stream(api, stream_of(bucket), info)
        config = info.config if info is not None else StreamConfig(name=self.stream.name)
        self.subjects = KeySubjects.of(config, api.subjects.prefix, origins)
        direct = f"{api.subjects.direct_get(self.stream.name)}.{self.subjects.stored}"
        self._direct_last: Final = direct.encode()
        self._origin: Stream | None = None
        self._mirrors = _mirrors(config, origins)
        # The revision of the last write of each stored key through this object.
        self._written: dict[str, int] = {}
        # Whether the number of replicas may have changed, so that the info is requested again.
        self._is_doubtful = False
        self.seen = 0 if info is None else info.state.last_seq
        """The highest revision of the bucket that this object has seen in a response."""

    def note_seen(self, revision: int) -> None:
        """Update `seen` with a revision that the server acknowledged or delivered."""
        if revision > self.seen:
            self.seen = revision

    def wrote(self, key: str, revision: int) -> None:
        """Record that the server has acknowledged a write of a stored key."""
        self.note_seen(revision)
        if self.subjects.origin is None:
            self._written[key] = revision
            if len(self._written) > _MOST_WRITES:
                self._written, self._is_doubtful = {}, self.info_of_one is not None

    def has_own_write(self, key: str, revision: int) -> bool:
        """Return whether a revision of a stored key is not older than the last write through this.

        An older one was read from a replica that lags behind. Another program has added this
        replica since the info was requested. The next read then requests the info again.
        """
        if revision >= self._written.get(key, 0):
            return True
        self._is_doubtful = True
        return False

    def adopt(self, changed: BucketStreams) -> None:
        """Use the info and the subjects of another `BucketStreams` of this bucket."""
        self.stream.cached_info = changed.stream.cached_info
        self.subjects = changed.subjects
        self._mirrors = changed._mirrors
        self._origin = None

    async def follow(self, deadline: Deadline) -> None:
        """Find out where a mirror is written now, before a write.

        Another program may have turned the mirror, or a mirror between it and the origin, into a
        bucket of its own. Raises `BadArgument` if the keys of the bucket have other subjects since.
        """
        if not self.is_mirror:
            return
        try:
            config = (await self.stream.info(timeout=deadline.remaining())).config
        except TwinstreamError as error:
            raise_for_bucket(self.bucket, error)
        is_same = config.mirror == self._mirrors[0]
        if is_same and len(self._mirrors) == 1:
            return
        origins = await origins_of(self.api, config, deadline)
        mirrors = _mirrors(config, origins)
        # If a mirror in between cannot be reached, `origins` ends before it.
        is_cut = is_same and not (origins and origins[-1].mirror is None)
        if mirrors == self._mirrors or is_cut:
            return
        subjects = KeySubjects.of(config, self.api.subjects.prefix, origins)
        if subjects.stored != self.subjects.stored:
            raise BadArgument(
                f"bucket {self.bucket} is no longer a mirror of {self.subjects.origin}, and its"
                f" keys have the subjects {subjects.stored}> instead of {self.subjects.stored}>:"
                " open the bucket again"
            )
        self.subjects, self._mirrors, self._origin = subjects, mirrors, None

    @property
    def prefix(self) -> str:
        """The prefix of the subjects of all messages."""
        return self.subjects.stored

    def raise_for(self, error: TwinstreamError) -> NoReturn:
        """Raise the error of the bucket for an error of its stream."""
        raise_for_bucket(self.bucket, error)

    @property
    def is_mirror(self) -> bool:
        """Whether the bucket is a mirror."""
        return self.subjects.origin is not None

    @property
    def info(self) -> StreamInfo | None:
        """The stream's last known info, or None if there is none."""
        return self.stream.cached_info

    @property
    def config(self) -> StreamConfig | None:
        """The configuration in the stream's last known info, or None if there is none."""
        return None if self.info is None else self.info.config

    @property
    def info_of_one(self) -> StreamInfo | None:
        """The last known info of the stream if it has one replica and allows direct gets.

        Otherwise, or if no info is known, this is None.
        """
        info = self.info
        return info if info is not None and self._reads_directly(stale=False) else None

    async def known(self, deadline: Deadline) -> StreamInfo:
        """Return the info of the stream. Requests it if none is cached.

        Raises `BucketNotFound`, or `RequestTimeout` if the server does not respond.
        """
        try:
            return self.info or await self.stream.info(timeout=deadline.remaining())
        except TwinstreamError as error:
            raise_for_bucket(self.bucket, error)

    async def target(self, deadline: Deadline) -> Stream:
        """Return the stream for writes: the bucket's stream, or the origin if it is a mirror.

        Requests the info of the returned stream if it is not cached, and that of a mirror always.
        """
        await self.follow(deadline)
        if not self.is_mirror:
            await self.known(deadline)
            return self.stream
        if self._origin is None:
            self._origin = Stream(self.target_api, self.subjects.origin or "", None)
        if self._origin.cached_info is None:
            await self._origin.info(timeout=deadline.remaining())
        return self._origin

    @property
    def target_api(self) -> Api:
        """The API context for the stream that `target` returns."""
        prefix = self.subjects.origin_api
        if prefix is None:
            return self.api
        return Api(self.api.transport, ApiSubjects(prefix), self.api.timeout)

    # ---- reading one message

    async def ask_directly(self, key: str, *, stale: bool, deadline: Deadline) -> Frame | None:
        """Send a direct get for the last revision of a stored key and return the response.

        This is a fast path with a third of the steps of `last`. If it returns None, the caller must
        use `last`: either the fast path cannot be used, or the request failed, for example because
        the connection was lost.

        Raises `RequestTimeout` if there is no response before the deadline.
        """
        api = self.api
        name = key.encode()
        if not self._reads_directly(stale) or api.is_instrumented or len(name) > _LONG_KEY:
            return None
        if self._is_doubtful and not stale:
            return None
        transport = api.transport
        replies = transport.replies
        answer = replies.write(self._direct_last + name, b"", b"")
        if answer is None:
            return None
        try:
            await transport.wait(answer.signal, deadline)
        finally:
            if answer.frame is None:
                replies.forget(answer)
        if answer.frame is None and answer.error is None and deadline.expired():
            subject = self._direct_last.decode() + key
            raise RequestTimeout(f"{subject}: no answer in time")
        return answer.frame

    async def last(
        self, key: str, *, stale: bool, deadline: Deadline, answer: Frame | None = None
    ) -> StreamMessage | None:
        """Return the last revision of a stored key, or None if there is no revision.

        `answer` is the response that `ask_directly` returned, if any. If it contains no message of
        this stream, the stream's leader is asked.
        """
        request, least = {"last_by_subj": self.subjects.stored + key}, self._written.get(key, 0)
        if not stale:
            await self._look_again(deadline)
        if answer is not None:
            found = _found(answer, self.stream.name)
        elif self._reads_directly(stale):
            found = await self._get(request, True, deadline)
        else:
            found = None
        if found is not None and (stale or self.has_own_write(key, found.seq)):
            return found
        await self._look_again(deadline)
        found = await self._get(request, False, deadline)
        if least and (found is None or found.seq < least) and self._written.get(key) == least:
            # The write was removed, or the bucket was re-created.
            # Another thread may have found the same.
            self._written.pop(key, None)
        return found

    async def _look_again(self, deadline: Deadline) -> None:
        """Request the info, which has the current number of replicas, if that is necessary."""
        if not self._is_doubtful:
            return
        self._is_doubtful = False
        try:
            await self.stream.info(timeout=deadline.remaining())
        except TwinstreamError as error:
            self._is_doubtful = True
            raise_for_bucket(self.bucket, error)

    async def at(self, key: str, revision: int, deadline: Deadline) -> StreamMessage | None:
        """Return one revision of a stored key, or None if this revision is not stored.

        Any replica may answer the request, because a stored revision never changes. If the replica
        does not have the revision, the leader is asked.
        """
        config = self.config
        direct = config is None or bool(config.allow_direct)
        found = await self._get({"seq": revision}, direct, deadline)
        if found is None or found.subject != self.subjects.stored + key:
            return None
        return found

    def _reads_directly(self, stale: bool) -> bool:
        """Return whether to use a direct get instead of a request to the stream's leader.

        In a stream with several replicas, one that lags behind may answer a direct get. The result
        is then True only with `stale`, and so it is for an unknown configuration. With one replica,
        only the leader or a mirror answers. The response of a mirror contains the mirror's name, so
        the caller can reject the response.
        """
        config = self.config
        if config is None:
            return stale
        return bool(config.allow_direct) and (stale or (config.num_replicas or 1) == 1)

    async def _get(
        self, request: dict[str, Any], direct: bool, deadline: Deadline
    ) -> StreamMessage | None:
        name = self.stream.name
        try:
            if direct:
                found = await self._get_message(request, True, deadline)
                if found is not None and found.stream_name == name:
                    return found
                # No message was found, or a mirror responded. The responder may lag behind, so the
                # leader is asked.
            return await self._get_message(request, False, deadline)
        except TwinstreamError as error:
            raise_for_bucket(self.bucket, error)

    async def _get_message(
        self, request: dict[str, Any], direct: bool, deadline: Deadline
    ) -> StreamMessage | None:
        timeout = deadline.remaining()
        try:
            return await get_message(
                self.api, self.stream.name, request, direct=direct, headers=True, timeout=timeout
            )
        except MessageNotFound:
            return None


def _mirrors(
    config: StreamConfig, origins: Sequence[StreamConfig]
) -> tuple[StreamSource | None, ...]:
    """Return what a mirror copies, and what each mirror between it and the origin copies.

    For a bucket that is no mirror, the result contains only None.
    """
    return (config.mirror, *(each.mirror for each in origins if each.mirror is not None))


def _found(answer: Frame, stream: str) -> StreamMessage | None:
    """Return the message in the response to a direct get.

    Returns None if the response contains no message, or a message of another stream.
    """
    if is_unserved(answer):
        # The stream allows no direct gets, or it has no leader.
        return None
    try:
        found = from_direct(answer, stream)
    except MessageNotFound:
        return None
    # If the names differ, a mirror responded, which may lag behind.
    return found if found.stream_name == stream else None
