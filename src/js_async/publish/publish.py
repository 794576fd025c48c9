"""Publish one message: send it, and retry after failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from js_async.api.api import Api
from js_async.client.requests import Answer
from js_async.publish.diagnose import reason
from js_async.runtime.concurrency import sleep
from twinstream.core.deadline import Deadline, Seconds, monotonic, seconds
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
from twinstream.core.publish.retry_pauses import RetryPolicy
from twinstream.core.server_faults.final_reply import FinalReply, refusing
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.pub_ack import is_pub_ack
from twinstream.core.wire.subjects import known_subject
from twinstream.errors import InvalidResponse, NoStream, TwinstreamError
from twinstream.models import PubAck
from twinstream.records.publish_request import PublishRequest

if TYPE_CHECKING:
    from twinstream.core.observe.operation import Operation

__all__ = ["PublishedMessage"]


class PublishedMessage:
    """One message, from its first attempt to the acknowledgement. The constructor sends it.

    All attempts together take at most `timeout` seconds; the default is that of `api`. With
    `early`, the message is sent together with the next request of the connection. The
    `PublishEngine` decides what to do after failures.
    """

    __slots__ = (
        "_answer",
        "_api",
        "_end",
        "_ends_at",
        "_expected",
        "_headers",
        "_operation",
        "_policy",
        "_repeatable",
        "_retries",
        "_subject",
        "request",
    )

    def __init__(
        self,
        api: Api,
        request: PublishRequest,
        policy: RetryPolicy,
        timeout: Seconds | None = None,
        early: bool = False,
    ) -> None:
        self._api: Final = api
        self._policy: Final = policy
        headers = publish_headers(request)
        self._subject: Final = known_subject(request.subject)
        patience = api.timeout if timeout is None else seconds(timeout)
        self._operation: Operation | None = None
        if api.transport.call_observers is not None:
            request, headers = self._observed(request)
        self.request: Final = request
        self._headers: Final = headers
        transport, now = api.transport, monotonic()
        # The sequence that the message expects. If the server is not clustered, only one replica
        # can respond, and each refusal is final.
        is_expecting = self._headers and transport.server_info.cluster
        self._expected: Final = request.expected_sequence if is_expecting else None
        # The response of the current attempt, or None if no response can arrive. The code below
        # runs while the server processes the message.
        self._answer: Answer | None = None
        if self._operation is None:
            fits = is_pub_ack if self._expected is None else self._filter()
            self._answer = transport.replies.write(
                self._subject, self._headers, request.data, fits, now=not early
            )
        self._repeatable: Final = bool(self._headers) and request.is_repeatable
        self._ends_at: Final = now + patience
        # When to stop waiting for the response of the current attempt.
        self._end = Deadline(now + policy.patience(patience, self._repeatable, 0))
        self._retries: PublishEngine | None = None

    async def acknowledged(self) -> PubAck:
        """Wait for the acknowledgement and return it, or raise the error that is final.

        Call this once, or `forget`.
        """
        operation = self._operation
        if operation is None:
            return await self._acknowledged()
        with operation:
            ack = await self._acknowledged()
            operation.stream_name, operation.seq = ack.stream, ack.seq
            return ack

    async def _acknowledged(self) -> PubAck:
        """Follow the steps of the publish engine until the message is acknowledged.

        Raises the error of the step that gives up.
        """
        api = self._api
        try:
            step: PubAck | Action | Answer = self._answer or await self._send()
            while True:
                match step:
                    case Answer():  # The message is sent.
                        await api.transport.wait(step.signal, self._end)
                        if step.stray is not None and not step.is_here():
                            await self._wait_for_stream(step, step.stray)
                        step = self._response(step)
                    case PubAck():
                        return step
                    case Send():
                        step = await self._send_again(step.pause)
                    case Listen():
                        step = await self._late_response(step.pause) or step.then
                    case Explain():
                        step = await self._explain(step.silent)
                    case Prove():
                        from js_async.publish.verify_stored import prove

                        return await prove(api, self.request, step.refusal, self._deadline)
                    case Fail():
                        raise step.error
        finally:
            # If the response has arrived, `replies` has forgotten the request already.
            if self._answer is not None and self._answer.frame is None:
                self.forget()

    def forget(self) -> None:
        """Ignore the acknowledgement."""
        if self._answer is not None:
            self._api.transport.replies.forget(self._answer)

    def _observed(self, request: PublishRequest) -> tuple[PublishRequest, bytes]:
        """Begin the operation; return the message with the headers that observers add."""
        from twinstream.core.observe.publish_context import begin_publish

        observers = self._api.transport.call_observers
        if observers is not None:
            request, self._operation = begin_publish(observers, request, "publish")
        headers = publish_headers(request)
        if self._operation is not None:
            self._operation.size = len(headers) + len(request.data)
        return request, headers

    # ---- sending

    def _filter(self) -> Callable[[Frame], bool]:
        """Return a function that returns True for a reply that is final."""
        return is_pub_ack if self._expected is None else FinalReply(refusing(self._expected))

    async def _send(self) -> Answer | Action:
        """Send the message when the client is connected; return the pending response."""
        replies, data, engine = self._api.transport.replies, self.request.data, self._engine
        try:
            answer = await replies.send(
                self._subject, self._headers, data, self._deadline, self._filter()
            )
        except TwinstreamError as error:
            return engine.unsent(error, self._left)
        self._answer = answer
        patience = self._policy.patience(self._left, self._repeatable, engine.attempts - 1)
        self._end = Deadline(monotonic() + patience)
        return answer

    async def _send_again(self, pause: float) -> PubAck | Action | Answer:
        """Send the message again after a pause, unless the last attempt gets its response."""
        if self._engine.error is not None:
            self._api.log_retry(self.request.subject, self._engine.error)
        late = await self._late_response(pause)
        if late is not None:
            return late
        self.forget()
        self._answer = None
        self._engine.attempts += 1
        if self._operation is not None:
            self._operation.attempts += 1
        return await self._send()

    # ---- responses

    def _response(self, answer: Answer) -> PubAck | Action:
        """Return the acknowledgement in a response, or the engine's action after a failure."""
        request, error = self.request, answer.error
        if error is None and answer.frame is not None:
            try:
                ack = self._api.acks.read(answer.frame, request.subject)
                if request.expected_stream is None or ack.stream == request.expected_stream:
                    return ack
                raise InvalidResponse(
                    f"{request.subject}: {ack.stream} acknowledged, which is not the expected"
                    f" stream {request.expected_stream}; the response came from another responder"
                )
            except TwinstreamError as refusal:
                error = refusal
        if error is not None:
            self._answer = None
        else:
            error = _doubtful(answer)
        if error is None:
            return self._engine.silent(self._left)
        return self._engine.failed(error, self._left)

    async def _late_response(self, pause: float) -> PubAck | Action | None:
        """Wait `pause` seconds; return the response of the last attempt if it arrives meanwhile."""
        answer = self._answer
        if answer is None:
            if pause:
                await sleep(pause)
            return None
        await self._api.transport.replies.wait(answer, Deadline(monotonic() + pause))
        return self._response(answer) if answer.is_here() else None

    async def _wait_for_stream(self, answer: Answer, stray: Frame) -> None:
        """Wait on after `stray`, a reply that is no acknowledgement or may not be final.

        If it came from a responder that is no stream, raises `InvalidResponse` if no stream has the
        subject.
        """
        if _doubtful(answer) is not None:
            return
        subject, replies = self.request.subject, self._api.transport.replies
        await replies.wait(answer, self._end.earlier(monotonic() + self._policy.wait))
        if answer.is_here() or _doubtful(answer) is not None:
            return
        why = await reason(self._api, subject, self._end)
        if isinstance(why, NoStream):
            raise InvalidResponse(f"{self._describe(stray)}; {why}") from why
        await replies.wait(answer, self._end)

    async def _explain(self, silent: bool) -> PubAck | Action:
        """Find out why no stream acknowledged the message; return the engine's next action.

        If the response of the last attempt arrives before the deadline, evaluate it instead.
        """
        deadline, answer = self._deadline, self._answer
        why = await reason(self._api, self.request.subject, deadline, silent=silent)
        if answer is not None:
            await self._api.transport.replies.wait(answer, deadline)
            if answer.is_here():
                return self._response(answer)
            if answer.stray is not None:
                self._engine.stray = InvalidResponse(self._describe(answer.stray))
        return self._engine.explained(why, self._left)

    def _describe(self, stray: Frame) -> str:
        return f"{self.request.subject}: a responder that is no stream answered: {stray[3][:60]!r}"

    # ---- the engine and the deadline

    @property
    def _engine(self) -> PublishEngine:
        """The engine of the message; it is created when it is needed for the first time."""
        if self._retries is None:
            subject, policy = self.request.subject, self._policy
            self._retries = PublishEngine(subject, policy, self._repeatable, self._expected)
        return self._retries

    @property
    def _deadline(self) -> Deadline:
        return Deadline(self._ends_at)

    @property
    def _left(self) -> float:
        return self._ends_at - monotonic()


def _doubtful(answer: Answer) -> TwinstreamError | None:
    """Return the refusal of a message that may not be final, if it has arrived."""
    return answer.fits.refusal if isinstance(answer.fits, FinalReply) else None
