"""Publishing into streams: one message at a time, or many under way in order."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, Iterable
from typing import Final

from js_async._api import Api
from js_async._io import Signal, each
from js_async._io import Stream as Generated
from js_async._replies import Answer
from js_core.deadline import Deadline, Seconds
from js_core.errors import NoResponders, TwinstreamError
from js_core.publish import PublishFailure, PublishRequest, publish_headers, read_pub_ack
from js_core.subjects import check_subject
from js_models import PubAck

__all__ = ["Publisher"]

_UnderWay = tuple[PublishRequest, Answer | TwinstreamError]


class Publisher:
    """Sends messages to streams and reads their acknowledgements."""

    def __init__(self, api: Api) -> None:
        self._api: Final = api

    async def publish(self, request: PublishRequest, timeout: Seconds | None) -> PubAck:
        """Publish one message and return its acknowledgement."""
        headers = publish_headers(request)
        check_subject(request.subject)
        deadline = self._api.deadline(timeout)
        try:
            frame = await self._api.transport.ask(request.subject, headers, request.data, deadline)
        except NoResponders as error:
            raise _nobody(request.subject) from error
        return read_pub_ack(frame, request.subject)

    async def publish_many(
        self,
        requests: Iterable[PublishRequest] | AsyncIterable[PublishRequest],
        window: int,
        timeout: Seconds | None,
    ) -> Generated[PubAck | PublishFailure]:
        """Publish with up to `window` messages under way; yield the outcomes in order."""
        under_way: deque[_UnderWay] = deque()
        signal = Signal()
        await self._api.transport.ready(self._api.deadline(timeout))
        await self._api.transport.replies.open()
        try:
            async for request in each(requests):
                under_way.append((request, await self._send(request, signal)))
                # Half the window is taken in at once, so that waking up pays.
                if len(under_way) >= window:
                    while len(under_way) > window // 2:
                        yield await self._outcome(under_way, signal, timeout)
            while under_way:
                yield await self._outcome(under_way, signal, timeout)
        finally:
            for _, answer in under_way:
                if isinstance(answer, Answer):
                    self._api.transport.replies.forget(answer)

    async def _send(self, request: PublishRequest, signal: Signal) -> Answer | TwinstreamError:
        try:
            headers = publish_headers(request)
            subject = check_subject(request.subject)
            return await self._api.transport.replies.send(subject, headers, request.data, signal)
        except TwinstreamError as error:
            return error

    async def _outcome(
        self, under_way: deque[_UnderWay], signal: Signal, timeout: Seconds | None
    ) -> PubAck | PublishFailure:
        """Return the oldest message's outcome; it leaves the window in the same step."""
        request, answer = under_way[0]
        if isinstance(answer, Answer) and not answer.is_here():
            await self._await(answer, signal, self._api.deadline(timeout))
        under_way.popleft()
        if isinstance(answer, TwinstreamError):
            return PublishFailure(request, answer)
        try:
            return read_pub_ack(answer.take(request.subject), request.subject)
        except NoResponders:
            return PublishFailure(request, _nobody(request.subject))
        except TwinstreamError as error:
            return PublishFailure(request, error)
        finally:
            self._api.transport.replies.forget(answer)

    async def _await(self, answer: Answer, signal: Signal, deadline: Deadline) -> None:
        while not answer.is_here():
            signal.clear()
            if answer.is_here():
                return
            if not await self._api.transport.wait(signal, deadline):
                return


def _nobody(subject: str) -> NoResponders:
    return NoResponders(
        f"{subject}: no stream took the message; none has this subject, or it has no leader now"
    )
