"""Insert, update and upsert: writes that depend on the last message of their subject.

A write is repeated until its outcome is known or its deadline has passed. The message is stored at
most once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from js_async.api.api import Api
from js_async.api.leader_info import has_message
from js_async.api.write_attempt import write
from js_async.publish.diagnose import reason
from js_async.publish.verify_stored import prove
from js_async.runtime.concurrency import sleep
from js_async.stream import Stream, known_info
from js_async.subject_writes.stream_guarantees import StreamGuarantees
from twinstream.core.deadline import LONGEST, Deadline, Seconds, monotonic, seconds
from twinstream.core.exactly_once.attempts import WriteAttempts
from twinstream.core.exactly_once.conditional_write import (
    AlreadyThere,
    Refusal,
    Stored,
    is_mine,
    judge,
)
from twinstream.core.exactly_once.guarantees import (
    insert_gaps,
    rolls_up,
    update_gaps,
    upsert_gaps,
)
from twinstream.core.publish.limits import limits_of
from twinstream.core.publish.ttl import NEVER
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.server_faults.final_reply import is_doubtful
from twinstream.errors import (
    BadArgument,
    MessageNotFound,
    NoResponders,
    OutcomeUnknown,
    TwinstreamError,
)
from twinstream.models import PubAck
from twinstream.records.publish_request import PublishRequest

if TYPE_CHECKING:
    from js_async.publish.publish_many import PublishMany

__all__ = ["SubjectWrite", "SubjectWrites"]

# The number of refusals of one write that may not be final and are retried. The next one is raised.
_MOST_DOUBTS: Final = 3


class SubjectWrites:
    """The insert, update and upsert calls of a `SubjectWriter` and of packages.

    Each call first checks that the settings of the stream make its guarantee possible, unless
    `check` is False. Then it makes a `SubjectWrite`.
    """

    def __init__(self, api: Api) -> None:
        self._api: Final = api
        self.streams: Final = StreamGuarantees(api)

    def publish_each(
        self, requests: Iterable[PublishRequest], window: int, timeout: float
    ) -> PublishMany:
        """Publish messages like `JetStream.publish_many`, each in an operation `exactly_once`.

        So observers can distinguish a few results of a handler from the messages of a bulk call.
        """
        from js_async.publish.pipeline import Pipeline
        from js_async.publish.publish_many import PublishMany

        limits = limits_of(self._api.timeout, window, timeout)
        return PublishMany(Pipeline(self._api, limits, name="exactly_once"), requests, True)

    async def insert(
        self,
        request: PublishRequest,
        *,
        check: bool,
        lasting: Seconds | None,
        timeout: Seconds | None,
    ) -> Stored | AlreadyThere:
        """Store a message unless its subject has one; see `SubjectWriter.insert`."""
        tries = WriteAttempts(self._api.deadline(timeout))
        span = request.ttl if lasting is None else lasting
        last = None if span is None or span == NEVER else seconds(span, "lasting", years=LONGEST)
        await self.ready(tries.deadline)
        stream = await self.streams.check(
            request.subject,
            request.expected_stream,
            "that a subject is inserted once",
            lambda config: insert_gaps(config, last) if check else [],
            tries.deadline,
        )
        write = SubjectWrite(
            self, stream, _conditional(self._identified(request), stream, 0), tries
        )
        return await write.insert()

    async def update(
        self, request: PublishRequest, expected_seq: int, *, check: bool, timeout: Seconds | None
    ) -> Stored:
        """Replace the last message of a subject if its sequence is `expected_seq`.

        See `SubjectWriter.update`.
        """
        if type(expected_seq) is not int or expected_seq < 1:
            raise BadArgument(
                f"expected_seq is the sequence to replace, from 1 up, got {expected_seq!r};"
                " for an empty subject use insert"
            )
        tries = WriteAttempts(self._api.deadline(timeout))
        await self.ready(tries.deadline)
        version = self._api.transport.server_info.version_numbers
        stream = await self.streams.check(
            request.subject,
            request.expected_stream,
            "that a message can be replaced",
            lambda config: update_gaps(config, version) if check else [],
            tries.deadline,
        )
        request = _conditional(self._identified(request), stream, expected_seq)
        request = _rolling_up(request, rolls_up(known_info(stream).config, history=True))
        return await SubjectWrite(self, stream, request, tries).update(expected_seq)

    async def upsert(
        self, request: PublishRequest, *, check: bool, timeout: Seconds | None
    ) -> Stored:
        """Store a message, and remove the earlier messages of its subject.

        See `SubjectWriter.upsert`.
        """
        deadline = self._api.deadline(timeout)
        await self.ready(deadline)
        version = self._api.transport.server_info.version_numbers
        stream = await self.streams.check(
            request.subject,
            request.expected_stream,
            "that a subject holds its newest message only",
            lambda config: upsert_gaps(config, version) if check else [],
            deadline,
        )
        # Retry only while the server certainly knows the message id. Later, the server would not
        # recognise a retry, which could then replace a newer message of another client.
        window = known_info(stream).config.duplicate_window
        if window:
            deadline = deadline.earlier(monotonic() + window.total_seconds() / 2)
        tries = WriteAttempts(deadline)
        request = self._identified(request)._replace(expected_stream=stream.name)
        rollup = rolls_up(known_info(stream).config, history=False) and bool(
            known_info(stream).config.allow_rollup_hdrs
        )
        return await SubjectWrite(self, stream, _rolling_up(request, rollup), tries).upsert()

    def _identified(self, request: PublishRequest) -> PublishRequest:
        """Return the request with a message id, by which the message is found in the stream."""
        if request.msg_id is not None:
            return request
        return request._replace(msg_id=self._api.transport.tokens.name())

    async def ready(self, deadline: Deadline) -> None:
        """Wait until the client is connected.

        Without this wait, an attempt that was not sent would count as one whose response was lost.
        """
        await self._api.transport.ready(deadline)

    async def send(self, request: PublishRequest, stream: Stream, timeout: float) -> PubAck:
        """Make one attempt to publish, with a timeout in seconds."""
        domain = known_info(stream).domain
        return await self.write(request, stream.name, domain, self._api.deadline(timeout))

    async def write(
        self, request: PublishRequest, stream: str, domain: str | None, deadline: Deadline
    ) -> PubAck:
        """Make one attempt to publish into the stream of a name, in a domain if it is known."""
        return await write(self._api, request, stream, domain, deadline)

    async def has_message(self, stream: str, subject: str, deadline: Deadline) -> bool:
        """Return whether the leader of a stream has a message of a subject."""
        return await has_message(self._api, stream, subject, deadline)

    async def explain(self, subject: str, deadline: Deadline) -> NoResponders:
        """Return an error that explains why no stream stored a message with this subject."""
        return await reason(self._api, subject, deadline)

    async def prove(
        self, request: PublishRequest, refusal: TwinstreamError, deadline: Deadline
    ) -> PubAck:
        """Return the acknowledgement of an earlier attempt.

        Raises `refusal` if no attempt was stored.
        """
        return await prove(self._api, request, refusal, deadline)


class SubjectWrite:
    """One conditional write into one stream.

    `stored` is the subject under which the stream stores the message. It is given if it differs
    from the published subject, for example because of a domain's prefix.
    """

    def __init__(
        self,
        writes: SubjectWrites,
        stream: Stream,
        request: PublishRequest,
        tries: WriteAttempts,
        stored: str | None = None,
    ) -> None:
        self._writes: Final = writes
        self._stream: Final = stream
        self._request: Final = request
        self._stored_subject: Final = stored or request.subject
        self._id: Final = request.msg_id or ""
        self._tries: Final = tries
        self._began: Final = monotonic()

    async def insert(self) -> Stored | AlreadyThere:
        """Store the message if its subject has none, or return the existing one."""
        while True:
            answer = await self._attempt()
            if isinstance(answer, PubAck) and not answer.duplicate:
                return self._stored(answer.seq)
            found = await self._last()
            if found is not None and not is_mine(found, self._id):
                found = await self._read_again(found)
            if found is not None:
                if is_mine(found, self._id):
                    return self._stored(found.seq, repeated=True)
                return AlreadyThere(stream_name=self._stream.name, seq=found.seq, message=found)
            if isinstance(answer, PubAck):
                return AlreadyThere(stream_name=self._stream.name, seq=answer.seq, message=None)
            # The message that caused the refusal was removed, or is not visible yet.
            await sleep(self._tries.pause(answer, self._request.subject))

    async def update(self, expected_seq: int) -> Stored:
        """Store the message if `expected_seq` is the last sequence of its subject.

        Otherwise, raises the server's refusal. Raises `OutcomeUnknown` if a response was lost and
        it cannot be determined whether the message was stored.
        """
        doubts = 0
        while True:
            answer = await self._attempt()
            if isinstance(answer, PubAck):
                return self._stored(answer.seq, repeated=bool(answer.duplicate))
            unknown = self._tries.unknown
            if self._is_replicated and is_doubtful(answer, expected_seq):
                doubts += 1
            # If the stream has a domain, a stream of the same name in another domain may have
            # refused the write. In this case, check the last message before raising.
            sure = not unknown and not doubts and judge(answer) is Refusal.HELD
            if sure and known_info(self._stream).domain is None:
                raise answer
            found = await self._last()
            if found is not None and is_mine(found, self._id):
                return self._stored(found.seq, repeated=unknown)
            last = 0 if found is None else found.seq
            if last < expected_seq and doubts and not unknown:
                if doubts > _MOST_DOUBTS:
                    # A replica that lags behind would have caught up during the retries.
                    raise answer
            elif last != expected_seq:
                if sure:
                    raise answer
                return await self._proven(answer, found)
            await sleep(self._tries.pause(answer, self._request.subject))

    @property
    def _is_replicated(self) -> bool:
        """Whether the stream has several replicas. If it has one, every reply is final."""
        return known_info(self._stream).config.num_replicas != 1

    async def upsert(self) -> Stored:
        """Store the message, and remove the earlier messages of its subject."""
        while True:
            answer = await self._attempt()
            if isinstance(answer, PubAck):
                return self._stored(answer.seq, repeated=bool(answer.duplicate))
            if judge(answer) is not Refusal.IN_PROCESS:
                raise self._tries.end(answer, self._request.subject)
            await sleep(self._tries.pause(answer, self._request.subject))

    async def _attempt(self) -> PubAck | TwinstreamError:
        """Publish until the server acknowledges or refuses the message.

        Returns the acknowledgement, or the refusal if the subject's last message has to be checked.
        Raises an error that no further attempt can resolve.
        """
        while True:
            try:
                await self._writes.ready(self._tries.deadline)
            except TwinstreamError as error:
                raise self._tries.end(error, self._request.subject) from error
            try:
                return await self._writes.send(self._request, self._stream, self._tries.patience())
            except TwinstreamError as error:
                refusal = judge(error)
                if refusal is Refusal.LOST:
                    self._tries.lost()
                elif refusal is Refusal.FINAL:
                    self._writes.streams.forget(self._stream.name)
                    raise self._tries.end(error, self._request.subject) from error
                elif refusal is not Refusal.PASSING:
                    return error
                await sleep(self._tries.pause(error, self._request.subject))

    async def _last(self) -> StreamMessage | None:
        """Return the last message of the subject, or None if there is none."""
        while True:
            try:
                return await self._stream.get_last_message(
                    self._stored_subject, timeout=self._tries.deadline.remaining()
                )
            except MessageNotFound:
                return None
            except TwinstreamError as error:
                if judge(error) not in {Refusal.LOST, Refusal.PASSING}:
                    raise
                await sleep(self._tries.pause(error, self._request.subject))

    async def _read_again(self, found: StreamMessage) -> StreamMessage | None:
        """Return the last message of the subject, after another client's message was found.

        Neither the refusal nor `found` need be final: the leader that most replicas follow is asked
        whether the subject has a message, and then the message is read again.
        """
        if not self._is_replicated:
            return found
        subject, deadline = self._stored_subject, self._tries.deadline
        is_there = await self._writes.has_message(self._stream.name, subject, deadline)
        return await self._last() if is_there else None

    def _stored(self, seq: int, *, repeated: bool = False) -> Stored:
        return Stored(stream_name=self._stream.name, seq=seq, repeated=repeated)

    async def _proven(self, refusal: TwinstreamError, found: StreamMessage | None) -> Stored:
        """Find out whether an earlier attempt was stored and then replaced; return its result.

        Raises `refusal` if no attempt was stored. Raises `OutcomeUnknown` after half of the
        duplicate window, because the server forgets message ids after the window. The server will
        refuse an attempt that is still in flight, because the subject's last message is not the
        expected one.
        """
        window = known_info(self._stream).config.duplicate_window
        if window is None or monotonic() - self._began > window.total_seconds() / 2:
            where = "is empty" if found is None else f"has sequence {found.seq} of another writer"
            raise OutcomeUnknown(
                f"{self._request.subject}: an answer was lost, and now the subject {where}; the"
                " message was stored and replaced since, or never stored"
            ) from refusal
        ack = await self._writes.prove(self._request, refusal, self._tries.deadline)
        return self._stored(ack.seq, repeated=True)


def _conditional(request: PublishRequest, stream: Stream, seq: int) -> PublishRequest:
    return request._replace(expected_stream=stream.name, expected_last_subject_seq=seq)


def _rolling_up(request: PublishRequest, wanted: bool) -> PublishRequest:
    if not wanted:
        return request
    return request._replace(rollup="sub")
