"""Publish one message: the fast path, and the retries after failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from js_async.api.api import Api
from js_async.client.requests import Answer
from js_async.publish import verify_stored
from js_async.publish.diagnose import reason
from js_async.runtime.concurrency import sleep
from twinstream.core.deadline import Deadline, Seconds, monotonic
from twinstream.core.publish.request import PublishRequest, publish_headers
from twinstream.core.publish.retry import (
    RetryPolicy,
    Step,
    leaves_doubt,
    may_get_leader,
    needs_pause,
    next_step,
)
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.pub_ack import is_pub_ack
from twinstream.core.wire.subjects import known_subject
from twinstream.errors import (
    BadAnswer,
    NoLeader,
    NoResponders,
    NoStream,
    OutcomeUnknown,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.models import PubAck

if TYPE_CHECKING:
    from js_async.client.instrumentation import OpenCall

__all__ = ["publish"]


async def publish(
    api: Api,
    request: PublishRequest,
    policy: RetryPolicy,
    timeout: Seconds | None = None,
    call: OpenCall | None = None,
) -> PubAck:
    """Publish one message and return its acknowledgement, within `timeout` seconds in total."""
    if api.on_call is not None and call is None:
        return await _told(api, request, policy, timeout)
    headers = publish_headers(request)
    subject = known_subject(request.subject)
    given = None if timeout is None else api.deadline(timeout)
    transport = api.transport
    # Send first: everything else is prepared while the server processes the message.
    answer = transport.replies.try_start(subject, headers, request.data, is_pub_ack)
    deadline = given or api.deadline()
    repeatable = bool(headers) and request.is_repeatable
    end = _end(policy, deadline, repeatable, 0)
    if answer is not None:
        # Fast path for the usual case, with a tenth of the steps.
        try:
            await transport.wait(answer.signal, end)
        except BaseException:
            transport.replies.forget(answer)
            raise
        if answer.frame is not None and request.expected_stream is None:
            ack = api.acks.like_last(answer.frame)
            if ack is not None:
                return ack
    attempts = _Attempts(api, request, subject, headers, policy, deadline, repeatable)
    while True:
        try:
            return await attempts.next(answer, end)
        except TwinstreamError as error:
            answer = None
            ack = await attempts.after(error)
            if ack is not None:
                return ack
            if call is not None:
                call.attempts += 1


async def _told(
    api: Api, request: PublishRequest, policy: RetryPolicy, timeout: Seconds | None
) -> PubAck:
    size = len(publish_headers(request)) + len(request.data)
    with api.told("publish", request.subject, size, request.expected_stream) as call:
        ack = await publish(api, request, policy, timeout, call)
        if call is not None:
            call.stream = ack.stream
        return ack


def _end(policy: RetryPolicy, deadline: Deadline, repeatable: bool, attempts: int) -> Deadline:
    """Return until when to wait for the response to the next attempt."""
    now = monotonic()
    return Deadline(now + policy.patience(deadline.at - now, repeatable, attempts))


class _Attempts:
    """The attempts to publish one message."""

    __slots__ = (
        "_api",
        "_count",
        "_deadline",
        "_doubt",
        "_headers",
        "_lacks_leader",
        "_policy",
        "_repeatable",
        "_request",
        "_subject",
    )

    def __init__(
        self,
        api: Api,
        request: PublishRequest,
        subject: bytes,
        headers: bytes,
        policy: RetryPolicy,
        deadline: Deadline,
        repeatable: bool,
    ) -> None:
        self._api = api
        self._request = request
        self._subject = subject
        self._headers = headers
        self._policy = policy
        self._deadline = deadline
        self._repeatable = repeatable
        self._count = 0
        self._doubt = False
        # Set if the stream has no leader, which is a temporary state.
        self._lacks_leader: NoLeader | None = None

    async def next(self, answer: Answer | None, end: Deadline) -> PubAck:
        """Send the message and return its acknowledgement, or raise why there is none.

        `answer` is given if the message was sent already, with a wait for its response until `end`.
        """
        api, request, deadline = self._api, self._request, self._deadline
        replies = api.transport.replies
        sent = answer is not None
        if answer is None:
            answer = await replies.start(
                self._subject, self._headers, request.data, deadline, is_pub_ack
            )
        try:
            if not sent:
                end = _end(self._policy, deadline, self._repeatable, self._count)
                await api.transport.wait(answer.signal, end)
            self._count += 1
            if answer.frame is None:
                await self._wait_on(answer, end)
        finally:
            # A response that arrived is forgotten already.
            if answer.frame is None:
                replies.forget(answer)
        frame = answer.take(request.subject)
        ack = api.acks.like_last(frame) or api.acks.read(frame, request.subject)
        if request.expected_stream is not None and ack.stream != request.expected_stream:
            raise BadAnswer(
                f"{request.subject}: {ack.stream} acknowledged, which is not the expected stream"
                f" {request.expected_stream}; the response came from another responder"
            )
        return ack

    async def _wait_on(self, answer: Answer, end: Deadline) -> None:
        """Wait until the acknowledgement arrives; so far an invalid response came, or none.

        `end` is the deadline of the attempt. Raises `BadAnswer` if only another responder than
        the stream answers, and `RequestTimeout`.
        """
        subject = self._request.subject
        if answer.stray is not None:
            await self._api.transport.replies.wait(
                answer, end.earlier(monotonic() + self._policy.wait)
            )
            if not answer.is_here():
                why = await reason(self._api, subject, end)
                if isinstance(why, NoStream):
                    raise self._bad_answer(answer.stray, why) from why
                await self._api.transport.replies.wait(answer, end)
        if answer.is_here():
            return
        if self._repeatable and self._count <= self._policy.retries:
            raise RequestTimeout(f"{subject}: no acknowledgement in time")
        why = await reason(self._api, subject, self._deadline, silent=True)
        await self._api.transport.replies.wait(answer, self._deadline)
        if answer.is_here():
            return
        if answer.stray is not None:
            raise self._bad_answer(answer.stray, why) from why
        tried = "1 attempt" if self._count == 1 else f"{self._count} attempts"
        raise RequestTimeout(
            f"{subject}: no acknowledgement in time after {tried}, it may be stored; {why}"
        ) from why

    def _bad_answer(self, stray: Frame, why: NoResponders) -> BadAnswer:
        return BadAnswer(
            f"{self._request.subject}: a responder that is no stream answered: {stray[3][:60]!r};"
            f" {why}"
        )

    async def after(self, error: TwinstreamError) -> PubAck | None:
        """Prepare the next attempt and return None, or return an acknowledgement, or raise."""
        deadline = self._deadline
        wait = self._policy.wait if needs_pause(error) else 0.0
        left = self._policy.left(
            self._count, deadline.remaining(), error, lacks_leader=self._lacks_leader is not None
        )
        match next_step(error, repeatable=self._repeatable, doubt=self._doubt, left=left):
            case Step.REPEAT:
                self._doubt = self._doubt or leaves_doubt(error)
                self._api.log_retry(self._request.subject, error)
                if wait:
                    await sleep(wait)
                return None
            case Step.PROVE:
                return await verify_stored.prove(self._api, self._request, error, deadline)
            case Step.EXPLAIN if not isinstance(error, RequestTimeout):
                subject = self._request.subject
                why: NoResponders | None = self._lacks_leader
                if why is None:
                    why = await reason(self._api, subject, deadline)
                    if await self._wait_for_leader(why):
                        return None
                if self._doubt:
                    raise OutcomeUnknown(
                        f"an earlier attempt had no answer and may be stored; then: {why}"
                    ) from why
                raise why from error
            case _:
                raise error

    async def _wait_for_leader(self, why: NoResponders) -> bool:
        """Tell, after a pause, whether to retry because the stream will get a leader."""
        if not may_get_leader(why):
            return False
        if not self._policy.may_wait_for_leader(self._deadline.remaining()):
            return False
        if isinstance(why, NoLeader):
            self._lacks_leader = why
        self._api.log_retry(self._request.subject, why)
        await sleep(self._policy.wait)
        return True
