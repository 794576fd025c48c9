"""Publish one message: send it, and retry after failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from js_async.api.api import Api
from js_async.client.requests import Answer
from js_async.publish.diagnose import reason
from js_async.publish.verify_stored import prove
from js_async.runtime.concurrency import sleep
from twinstream.core.deadline import Deadline, Seconds, monotonic, seconds
from twinstream.core.on_failure import OnFailure
from twinstream.core.publish.publish_engine import (
    Action,
    Explain,
    Fail,
    Listen,
    Prove,
    PublishEngine,
    Send,
)
from twinstream.core.publish.request import publish_headers
from twinstream.core.publish.retry import RetryPolicy
from twinstream.core.server_faults.final_reply import FinalReply, refusing
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.pub_ack import is_pub_ack
from twinstream.core.wire.subjects import known_subject
from twinstream.errors import BadAnswer, NoStream, TwinstreamError
from twinstream.models import PubAck
from twinstream.records.publish_request import PublishRequest

if TYPE_CHECKING:
    from js_async.client.instrumentation import InstrumentedCall

__all__ = ["EarlyPublish", "publish"]


async def publish(
    api: Api,
    request: PublishRequest,
    policy: RetryPolicy,
    timeout: Seconds | None = None,
    call: InstrumentedCall | None = None,
) -> PubAck:
    """Publish one message and return its acknowledgement.

    All attempts together take at most `timeout` seconds; the default is that of `api`.
    """
    if api.on_call is not None and call is None:
        return await _told(api, request, policy, timeout)
    headers = publish_headers(request)
    subject = known_subject(request.subject)
    left = api.timeout if timeout is None else seconds(timeout)
    transport, now = api.transport, monotonic()
    fits = _fits(_expected(api, request)) if headers else is_pub_ack
    # The request is sent first. The code below runs while the server processes the message.
    answer = transport.replies.write(subject, headers, request.data, fits)
    repeatable = bool(headers) and request.is_repeatable
    end = Deadline(now + policy.patience(left, repeatable, 0))
    if answer is not None:
        # Fast path: most messages are acknowledged without the steps of `_Publishing`.
        try:
            await transport.wait(answer.signal, end)
        except BaseException:  # Cancelled or interrupted. `OnFailure` would be slower.
            transport.replies.forget(answer)
            raise
        if answer.frame is not None and request.expected_stream is None:
            ack = api.acks.like_last(answer.frame)
            if ack is not None:
                return ack
    deadline = Deadline(now + left)
    publishing = _Publishing(api, request, subject, headers, policy, deadline, repeatable)
    return await publishing.run(answer, end, call)


def _expected(api: Api, request: PublishRequest) -> int | None:
    """Return the sequence that a message expects, or None if it expects none.

    Also return None if the server is not clustered: then only one replica can respond.
    """
    return request.expected_sequence if api.transport.server_info.cluster else None


def _fits(expected: int | None) -> Callable[[Frame], bool]:
    """Return a function that returns True for a reply that is final."""
    return is_pub_ack if expected is None else FinalReply(refusing(expected))


def _doubtful(answer: Answer) -> TwinstreamError | None:
    """Return the refusal of a message that may not be final, if it has arrived."""
    return answer.fits.refusal if isinstance(answer.fits, FinalReply) else None


async def _told(
    api: Api, request: PublishRequest, policy: RetryPolicy, timeout: Seconds | None
) -> PubAck:
    size = len(publish_headers(request)) + len(request.data)
    with api.told("publish", request.subject, size, request.expected_stream) as call:
        ack = await publish(api, request, policy, timeout, call)
        if call is not None:
            call.stream = ack.stream
        return ack


class EarlyPublish:
    """A message that is sent before its caller waits for the acknowledgement.

    Its request is sent together with the next request of the connection.
    """

    def __init__(
        self, api: Api, request: PublishRequest, policy: RetryPolicy, timeout: Seconds
    ) -> None:
        self._api: Final = api
        self.request: Final = request
        self._policy: Final = policy
        self._timeout: Final = timeout
        self._deadline: Final = Deadline.after(seconds(timeout))
        self._answer: Answer | None = None
        if api.on_call is None:
            subject, headers = known_subject(request.subject), publish_headers(request)
            fits = _fits(_expected(api, request)) if headers else is_pub_ack
            replies = api.transport.replies
            self._answer = replies.write(subject, headers, request.data, fits, now=False)

    async def result(self) -> PubAck:
        """Wait for the acknowledgement, and return it. Sends the message again as `publish` does.

        Call this once, or `forget`.
        """
        api, request, answer = self._api, self.request, self._answer
        if answer is None:
            return await publish(api, request, self._policy, self._deadline.remaining())
        headers, policy = publish_headers(request), self._policy
        repeatable = bool(headers) and request.is_repeatable
        end = Deadline.after(policy.patience(self._deadline.remaining(), repeatable, 0))
        with OnFailure(self.forget):
            await api.transport.wait(answer.signal, end)
        subject, deadline = known_subject(request.subject), self._deadline
        publishing = _Publishing(api, request, subject, headers, policy, deadline, repeatable)
        return await publishing.run(answer, end, None)

    def forget(self) -> None:
        """Ignore the acknowledgement."""
        if self._answer is not None:
            self._api.transport.replies.forget(self._answer)


class _Publishing:
    """The publishing of one message. Its `PublishEngine` decides what to do after failures."""

    __slots__ = (
        "_api",
        "_deadline",
        "_engine",
        "_expected",
        "_headers",
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
        self._expected = _expected(api, request)
        self._engine = PublishEngine(request.subject, policy, repeatable, self._expected)

    async def run(
        self, answer: Answer | None, end: Deadline, call: InstrumentedCall | None
    ) -> PubAck:
        """Send the message until it has an outcome; return the acknowledgement or raise the error.

        If the caller has already sent the message, `answer` is its response, for which the caller
        waited until `end`. If `answer` is None, the message is sent first.
        """
        while (ack := await self._attempt(answer, end)) is None:
            answer = None
            self._engine.attempts += 1
            if call is not None:
                call.attempts += 1
        return ack

    async def _attempt(self, answer: Answer | None, end: Deadline) -> PubAck | None:
        """Make one attempt, or finish the one whose `answer` is given.

        Return the acknowledgement, or None to make another attempt. Raise an error that is final.
        """
        transport, is_sent = self._api.transport, answer is not None
        if answer is None:
            try:
                data, fits = self._request.data, _fits(self._expected)
                answer = await transport.replies.send(
                    self._subject, self._headers, data, self._deadline, fits
                )
            except TwinstreamError as error:
                return await self._after(self._engine.unsent(error, self._left()), None)
        try:
            if not is_sent:
                left, before = self._left(), self._engine.attempts - 1
                end = Deadline(monotonic() + self._policy.patience(left, self._repeatable, before))
                await transport.wait(answer.signal, end)
            if answer.stray is not None and not answer.is_here():
                # The reply may also come from a responder that is no stream.
                if _doubtful(answer) is None:
                    await self._wait_on(answer, answer.stray, end)
                refusal = None if answer.is_here() else _doubtful(answer)
                if refusal is not None:
                    return await self._after(self._engine.failed(refusal, self._left()), answer)
            return await self._judge(answer)
        finally:
            # If the response has arrived, `replies` has forgotten the request already.
            if answer.frame is None:
                transport.replies.forget(answer)

    def _left(self) -> float:
        return self._deadline.remaining()

    async def _wait_on(self, answer: Answer, stray: Frame, end: Deadline) -> None:
        """Continue to wait for the stream's response, until `end`.

        `stray` is a reply of another responder, which is no acknowledgement. Raises `BadAnswer` if
        no stream has the subject.
        """
        subject, replies = self._request.subject, self._api.transport.replies
        await replies.wait(answer, end.earlier(monotonic() + self._policy.wait))
        if answer.is_here() or _doubtful(answer) is not None:
            return
        why = await reason(self._api, subject, end)
        if isinstance(why, NoStream):
            raise BadAnswer(f"{self._stray(stray)}; {why}") from why
        await replies.wait(answer, end)

    def _stray(self, stray: Frame) -> str:
        return f"{self._request.subject}: a responder that is no stream answered: {stray[3][:60]!r}"

    async def _judge(self, answer: Answer) -> PubAck | None:
        """Evaluate the response of an attempt, which may be missing.

        Return the acknowledgement, or None to make another attempt. Raise an error that is final.
        """
        if not answer.is_here():
            return await self._after(self._engine.silent(self._left()), answer)
        try:
            return self._read(answer)
        except TwinstreamError as error:
            return await self._after(self._engine.failed(error, self._left()), None)

    def _read(self, answer: Answer) -> PubAck:
        api, request = self._api, self._request
        frame = answer.take(request.subject)
        ack = api.acks.like_last(frame) or api.acks.read(frame, request.subject)
        if request.expected_stream is not None and ack.stream != request.expected_stream:
            raise BadAnswer(
                f"{request.subject}: {ack.stream} acknowledged, which is not the expected stream"
                f" {request.expected_stream}; the response came from another responder"
            )
        return ack

    async def _after(self, action: Action, answer: Answer | None) -> PubAck | None:
        """Carry out an action of the engine.

        Return the acknowledgement, or None to retry. Raise an error that is final. `answer` is the
        pending response of the last attempt, or None if no response can arrive any more.
        """
        engine, subject = self._engine, self._request.subject
        if isinstance(action, Explain):
            why = await reason(self._api, subject, self._deadline, silent=action.silent)
            if answer is not None:
                await self._api.transport.replies.wait(answer, self._deadline)
                if answer.is_here():
                    return await self._judge(answer)
                if answer.stray is not None:
                    engine.stray = BadAnswer(self._stray(answer.stray))
            action = engine.explained(why, self._left())
        match action:
            case Send():
                if engine.error is not None:
                    self._api.log_retry(subject, engine.error)
                return await self._pause(action.pause, answer)
            case Listen():
                if answer is not None and await self._arrives(answer, action.pause):
                    return await self._judge(answer)
                return await self._after(action.then, None)
            case Prove():
                return await prove(self._api, self._request, action.refusal, self._deadline)
            case Fail():
                raise action.error

    async def _pause(self, pause: float, answer: Answer | None) -> PubAck | None:
        """Wait before the next attempt, and return None.

        If the response of the last attempt arrives meanwhile, evaluate it as `_judge` does.
        """
        if not pause:
            return None
        if answer is None:
            await sleep(pause)
            return None
        return await self._judge(answer) if await self._arrives(answer, pause) else None

    async def _arrives(self, answer: Answer, pause: float) -> bool:
        """Return whether a response arrives within `pause` seconds."""
        await self._api.transport.replies.wait(answer, Deadline(monotonic() + pause))
        return answer.is_here()
