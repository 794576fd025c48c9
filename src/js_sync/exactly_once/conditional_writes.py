# Generated from src/js_async/exactly_once/conditional_writes.py by codegen/twin.py. Edit that file instead.
"""Insert, update and upsert: writes that say what the subject must hold before.

Each is repeated until its outcome is known, under one deadline, and cannot store twice.
"""

from __future__ import annotations

from typing import Final

from twinstream.core.deadline import LONGEST, Deadline, Seconds, monotonic, seconds
from twinstream.errors import (
    BadArgument,
    MessageNotFound,
    OutcomeUnknown,
    TwinstreamError,
)
from twinstream.core.exactly_once.guarantees import insert_holes, rolls_up, update_holes, upsert_holes
from twinstream.core.publish.request import PublishRequest
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.exactly_once.conditional_write import AlreadyThere, Refusal, Stored, is_mine, judge
from twinstream.core.exactly_once.attempts import Tries
from twinstream.core.publish.ttl import NEVER
from twinstream.models import PubAck
from js_sync.api.api import Api
from js_sync.runtime.concurrency import sleep
from js_sync.exactly_once.stream_guarantees import PromisedStreams
from js_sync.publish.verify_stored import prove
from js_sync.api.write_attempt import write
from js_sync.stream import Stream

__all__ = ["SubjectWrites"]


class SubjectWrites:
    """Writes messages by what their subject holds."""

    def __init__(self, api: Api) -> None:
        self._api: Final = api
        self.streams: Final = PromisedStreams(api)

    def insert(
        self,
        request: PublishRequest,
        *,
        check: bool,
        lasting: Seconds | None,
        timeout: Seconds | None,
    ) -> Stored | AlreadyThere:
        """Store a message unless its subject holds one."""
        tries = Tries(self._api.deadline(timeout))
        span = request.ttl if lasting is None else lasting
        last = None if span is None or span == NEVER else seconds(span, "lasting", years=LONGEST)
        self.ready(tries.deadline)
        stream = self.streams.check(
            request.subject,
            request.expected_stream,
            "that a subject is inserted once",
            lambda config: insert_holes(config, last) if check else [],
            tries.deadline,
        )
        write = _Write(self, stream, _conditional(self._identified(request), stream, 0), tries)
        return write.insert()

    def update(
        self, request: PublishRequest, expected_seq: int, *, check: bool, timeout: Seconds | None
    ) -> Stored:
        """Replace the last message of a subject if it is the expected one."""
        if type(expected_seq) is not int or expected_seq < 1:
            raise BadArgument(
                f"expected_seq is the sequence to replace, from 1 up, got {expected_seq!r};"
                " for a subject that holds nothing use insert"
            )
        tries = Tries(self._api.deadline(timeout))
        self.ready(tries.deadline)
        version = self._api.transport.server_info.version_numbers
        stream = self.streams.check(
            request.subject,
            request.expected_stream,
            "that a message can be replaced",
            lambda config: update_holes(config, version) if check else [],
            tries.deadline,
        )
        request = _conditional(self._identified(request), stream, expected_seq)
        request = _rolling_up(request, rolls_up(stream.config, history=True))
        return _Write(self, stream, request, tries).update(expected_seq)

    def upsert(self, request: PublishRequest, *, check: bool, timeout: Seconds | None) -> Stored:
        """Store a message in the place of what its subject holds."""
        deadline = self._api.deadline(timeout)
        self.ready(deadline)
        version = self._api.transport.server_info.version_numbers
        stream = self.streams.check(
            request.subject,
            request.expected_stream,
            "that a subject holds its newest message only",
            lambda config: upsert_holes(config, version) if check else [],
            deadline,
        )
        # Only the duplicate window makes a repeat harmless: another writer may have come between.
        window = stream.config.duplicate_window
        if window:
            deadline = deadline.earlier(monotonic() + window.total_seconds() / 2)
        tries = Tries(deadline)
        request = self._identified(request)._replace(expected_stream=stream.name)
        rollup = rolls_up(stream.config, history=False) and bool(stream.config.allow_rollup_hdrs)
        return _Write(self, stream, _rolling_up(request, rollup), tries).upsert()

    def _identified(self, request: PublishRequest) -> PublishRequest:
        """Give the message an identity, so that it can be told when it is found."""
        if request.msg_id is not None:
            return request
        return request._replace(msg_id=self._api.transport.tokens.name())

    def ready(self, deadline: Deadline) -> None:
        """Return when there is a link, so that what is lost after that was sent."""
        self._api.transport.ready(deadline)

    def send(self, request: PublishRequest, stream: Stream, timeout: float) -> PubAck:
        """Make one attempt."""
        domain = stream.cached_info.domain
        return write(self._api, request, stream.name, domain, self._api.deadline(timeout))

    def prove(
        self, request: PublishRequest, refusal: TwinstreamError, deadline: Deadline
    ) -> PubAck:
        """Return the acknowledgement of an attempt without an answer, or raise the refusal."""
        return prove(self._api, request, refusal, deadline)


class _Write:
    """One message on its way into one stream."""

    def __init__(
        self, writes: SubjectWrites, stream: Stream, request: PublishRequest, tries: Tries
    ) -> None:
        self._writes: Final = writes
        self._stream: Final = stream
        self._request: Final = request
        self._id: Final = request.msg_id or ""
        self._tries: Final = tries
        self._began: Final = monotonic()

    def insert(self) -> Stored | AlreadyThere:
        while True:
            answer = self._attempt()
            if isinstance(answer, PubAck) and not answer.duplicate:
                return self._stored(answer.seq)
            found = self._last()
            if found is not None:
                if is_mine(found, self._id):
                    return self._stored(found.seq, repeated=True)
                return AlreadyThere(stream=self._stream.name, seq=found.seq, message=found)
            if isinstance(answer, PubAck):
                return AlreadyThere(stream=self._stream.name, seq=answer.seq, message=None)
            # What was there is gone, or not there yet.
            sleep(self._tries.pause(answer, self._request.subject))

    def update(self, expected_seq: int) -> Stored:
        while True:
            answer = self._attempt()
            if isinstance(answer, PubAck):
                return self._stored(answer.seq, repeated=bool(answer.duplicate))
            unknown = self._tries.unknown
            # A refusal may be of a stream of the same name in another domain.
            sure = not unknown and judge(answer) is Refusal.HELD
            if sure and self._stream.cached_info.domain is None:
                raise answer
            found = self._last()
            if found is not None and is_mine(found, self._id):
                return self._stored(found.seq, repeated=unknown)
            if found is None or found.seq != expected_seq:
                if sure:
                    raise answer
                return self._proven(answer, found)
            sleep(self._tries.pause(answer, self._request.subject))

    def upsert(self) -> Stored:
        while True:
            answer = self._attempt()
            if isinstance(answer, PubAck):
                return self._stored(answer.seq, repeated=bool(answer.duplicate))
            if judge(answer) is not Refusal.IN_PROCESS:
                raise self._tries.end(answer, self._request.subject)
            sleep(self._tries.pause(answer, self._request.subject))

    def _attempt(self) -> PubAck | TwinstreamError:
        """Write until there is an answer; return it, or the refusal that asks for a look."""
        while True:
            try:
                self._writes.ready(self._tries.deadline)
            except TwinstreamError as error:
                raise self._tries.end(error, self._request.subject) from error
            try:
                return self._writes.send(self._request, self._stream, self._tries.patience())
            except TwinstreamError as error:
                refusal = judge(error)
                if refusal is Refusal.LOST:
                    self._tries.lost()
                elif refusal is Refusal.FINAL:
                    self._writes.streams.forget(self._stream.name)
                    raise self._tries.end(error, self._request.subject) from error
                elif refusal is not Refusal.PASSING:
                    return error
                sleep(self._tries.pause(error, self._request.subject))

    def _last(self) -> StreamMessage | None:
        """Return what the subject holds."""
        while True:
            try:
                return self._stream.get_last_message(
                    self._request.subject, timeout=self._tries.deadline.remaining()
                )
            except MessageNotFound:
                return None
            except TwinstreamError as error:
                if judge(error) not in {Refusal.LOST, Refusal.PASSING}:
                    raise
                sleep(self._tries.pause(error, self._request.subject))

    def _stored(self, seq: int, *, repeated: bool = False) -> Stored:
        return Stored(stream=self._stream.name, seq=seq, repeated=repeated)

    def _proven(self, refusal: TwinstreamError, found: StreamMessage | None) -> Stored:
        """Return that an attempt without an answer was stored and replaced since.

        Raises the refusal when none was stored. What is still under way comes too late: the
        subject does not hold what was expected. The server knows within its duplicate window.
        """
        window = self._stream.config.duplicate_window
        if window is None or monotonic() - self._began > window.total_seconds() / 2:
            where = "is empty" if found is None else f"holds sequence {found.seq} of another writer"
            raise OutcomeUnknown(
                f"{self._request.subject}: an answer was lost, and now the subject {where}; the"
                " message was stored and replaced since, or never stored"
            ) from refusal
        ack = self._writes.prove(self._request, refusal, self._tries.deadline)
        return self._stored(ack.seq, repeated=True)


def _conditional(request: PublishRequest, stream: Stream, seq: int) -> PublishRequest:
    return request._replace(expected_stream=stream.name, expected_last_subject_seq=seq)


def _rolling_up(request: PublishRequest, wanted: bool) -> PublishRequest:
    if not wanted:
        return request
    return request._replace(rollup="sub")
