"""Requests: one inbox for all answers of a connection, a token for each request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from js_async.client.inbox_pool import IdleInboxes
from js_async.runtime.concurrency import Lock, Signal
from js_async.client.transport import Box, Transport
from twinstream.core.deadline import Deadline, monotonic
from twinstream.errors import NoResponders, RequestTimeout, TwinstreamError
from twinstream.core.connect.handshake import Denied
from twinstream.core.wire.protocol import Frame, Sink
from twinstream.core.api.idempotent_calls import ASK_AGAIN
from twinstream.core.wire.status import is_unserved
from twinstream.core.wire.subjects import check_filter

if TYPE_CHECKING:
    from js_async.client.instrumentation import OnCall, OpenCall

__all__ = ["Answer", "Replies", "Watcher"]


class Watcher(Protocol):
    """Has an inbox of its own, and is told why answers will not come."""

    def note(self, subject: bytes | None, error: TwinstreamError) -> None:
        """Take the news that requests to a subject, or all if None, get no answer.

        Called by whoever reads; it must be quick.
        """
        ...

    def deny(self, box: Box, error: TwinstreamError) -> None:
        """Take the news that the server refused a subscription, perhaps the watcher's own."""
        ...


class Answer:
    """The place of one answer; `signal` may serve several answers.

    `fits` tells an answer from what somebody else may send first.
    """

    __slots__ = ("error", "fits", "frame", "signal", "stray", "subject", "token")

    def __init__(
        self,
        subject: bytes,
        token: bytes,
        signal: Signal,
        fits: Callable[[Frame], bool] | None = None,
    ) -> None:
        self.subject = subject
        self.token = token
        self.signal: Final = signal
        self.fits: Final = fits
        self.frame: Frame | None = None
        self.stray: Frame | None = None
        self.error: TwinstreamError | None = None

    def is_here(self) -> bool:
        """Tell whether the answer, or the reason why none comes, is here."""
        return self.frame is not None or self.error is not None

    def take(self, subject: str) -> Frame:
        """Return the answer, or raise why there is none."""
        frame = self.frame
        if self.error is not None:
            raise self.error
        if frame is None:
            stray = "" if self.stray is None else f"; somebody else said {self.stray[3][:80]!r}"
            raise RequestTimeout(f"{subject}: no answer in time{stray}")
        if frame[2] and is_unserved(frame):
            raise NoResponders(f"{subject}: nobody serves this subject")
        return frame


class Replies:
    """Matches answers to requests by the last token of the subject that they come to."""

    def __init__(self, transport: Transport, on_call: OnCall | None = None) -> None:
        self._transport: Final = transport
        # For the layers above, which know what a call is.
        self.on_call: Final = on_call
        self._prefix: Final = transport.tokens.inbox().encode() + b"."
        self._behind_prefix: Final = slice(len(self._prefix), None)
        self._token: Final = transport.tokens.next_bytes
        self._answers: Final[dict[bytes, Answer]] = {}
        self._watchers: list[Watcher] = []
        self.idle_inboxes: Final = IdleInboxes()
        self._box: Box | None = None
        self._opening: Final = Lock()

    async def open(self) -> None:
        """Subscribe to the inbox, once. Raises `PermissionDenied` when the server refuses it."""
        box = self._box
        if box is None or box.error is not None:
            box = await self._listen(box)
        if box.error is not None:
            raise box.error

    async def _listen(self, refused: Box | None) -> Box:
        """Subscribe, in the place of what the server refused perhaps; return the mailbox."""
        transport = self._transport
        async with self._opening:
            if self._box is not None and self._box is not refused:
                # Somebody else was quicker.
                return self._box
            box = await transport.open_mailbox(self._prefix + b"*", sink=self._sink)
            self._box = box
            if refused is not None:
                # It may be permitted by now. Settled, the server has said whether it is.
                await transport.close_mailbox(refused, settle=True)
            return box

    def _sink(self, _: Box) -> Sink:
        return self._deliver

    def _deliver(self, frame: Frame) -> None:
        token = frame[0][self._behind_prefix]
        answer = self._answers.get(token)
        # A late answer has no place any more: its request gave up and said so.
        if answer is None:
            return
        if answer.fits is not None and not answer.fits(frame):
            answer.stray = frame
        elif self._answers.pop(token, None) is not None:
            answer.frame = frame
        answer.signal.set()

    async def send(self, subject: bytes, headers: bytes, payload: bytes, signal: Signal) -> Answer:
        """Send a request and return the place of its answer."""
        return await self._send(Answer(subject, self._token(), signal), headers, payload, False)

    async def start(
        self,
        subject: bytes,
        headers: bytes,
        payload: bytes,
        deadline: Deadline,
        fits: Callable[[Frame], bool] | None = None,
    ) -> Answer:
        """Send a request once there is a link; return the place of its answer.

        Whoever calls this waits for its `signal` next, and calls `forget` in the end. `fits` tells
        an answer from what somebody else may send first.
        """
        answer = self.try_start(subject, headers, payload, fits)
        if answer is not None:
            return answer
        # First, for a link that has ended fails all requests that are listed.
        await self._transport.ready(deadline)
        answer = Answer(subject, self._token(), Signal(), fits)
        return await self._send(answer, headers, payload, True)

    def try_start(
        self,
        subject: bytes,
        headers: bytes,
        payload: bytes,
        fits: Callable[[Frame], bool] | None = None,
    ) -> Answer | None:
        """Send a request as `start` does if that needs no waiting, else return None."""
        token = self._token()
        self._answers[token] = answer = Answer(subject, token, Signal(), fits)
        try:
            # Looked at after the answer is listed: the inbox may be refused at any moment.
            box = self._box
            if box is not None and box.error is None:
                reply = self._prefix + token
                if self._transport.try_send(subject, reply, headers, payload, True):
                    return answer
        except BaseException:
            self.forget(answer)
            raise
        self.forget(answer)
        return None

    async def _send(self, answer: Answer, headers: bytes, payload: bytes, now: bool) -> Answer:
        transport, subject = self._transport, answer.subject
        self._answers[answer.token] = answer
        reply = self._prefix + answer.token
        try:
            # Looked at after the answer is listed: the inbox may be refused at any moment.
            if self._box is None or self._box.error is not None:
                await self.open()
            if not transport.try_send(subject, reply, headers, payload, now):
                await transport.send(subject, reply, headers, payload, now)
        except BaseException:
            self.forget(answer)
            raise
        return answer

    def forget(self, answer: Answer) -> None:
        """Give up on an answer."""
        self._answers.pop(answer.token, None)

    async def ask(
        self,
        subject: str,
        headers: bytes,
        payload: bytes,
        deadline: Deadline,
        *,
        repeatable: bool = False,
        fits: Callable[[Frame], bool] | None = None,
        call: OpenCall | None = None,
    ) -> Frame:
        """Send a request and return its answer; one that is `repeatable` perhaps several times.

        With `fits`, which is for one that is not, what somebody else answers is passed over.
        Repeats are counted in `call`.
        """
        # Wildcards may stand here: the API takes a consumer's filter as part of the subject.
        encoded = check_filter(subject)
        if deadline.expired():
            raise RequestTimeout(f"{subject}: the time was over before the request was sent")
        answer = await self.start(encoded, headers, payload, deadline, fits)
        try:
            if repeatable:
                await self._insist(answer, headers, payload, deadline, call)
            else:
                await self.wait(answer, deadline)
        finally:
            self.forget(answer)
        return answer.take(subject)

    async def wait(self, answer: Answer, deadline: Deadline) -> None:
        """Return when an answer is here, or at the deadline; what else comes is passed over."""
        while not answer.is_here():
            # What somebody else sends raises the flag too.
            answer.signal.clear()
            if answer.is_here() or not await self._transport.wait(answer.signal, deadline):
                return

    async def _insist(
        self,
        answer: Answer,
        headers: bytes,
        payload: bytes,
        deadline: Deadline,
        call: OpenCall | None,
    ) -> None:
        """Wait for an answer, and send its request again when none comes."""
        pause = ASK_AGAIN
        while not await self._transport.wait(answer.signal, deadline.earlier(monotonic() + pause)):
            if deadline.expired():
                return
            if call is not None:
                call.attempts += 1
            await self._send(answer, headers, payload, True)
            pause *= 2

    def watch(self, watcher: Watcher) -> None:
        """Tell somebody else too why answers do not come, until `unwatch`."""
        self._watchers.append(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """Tell a watcher no more; it may be gone already."""
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    @property
    def open_requests(self) -> int:
        """How many requests wait for an answer."""
        return len(self._answers)

    def deny(self, denied: Denied, boxes: list[Box], error: TwinstreamError) -> None:
        """Note what the server refused, and which mailboxes get no messages because of it."""
        if denied.publishing:
            self._fail_subject(denied.subject, error)
            return
        for box in boxes:
            if box is self._box:
                # Without the inbox no answer can come.
                self.fail(error)
            for watcher in tuple(self._watchers):
                watcher.deny(box, error)

    def _fail_subject(self, subject: bytes, error: TwinstreamError) -> None:
        # In any case of letters: nats-py puts the server's words into lower case.
        subject = subject.lower()
        for answer in list(self._answers.values()):
            if answer.subject.lower() == subject:
                answer.error = error
                answer.signal.set()
        for watcher in tuple(self._watchers):
            watcher.note(subject, error)

    def fail(self, error: TwinstreamError) -> None:
        """Tell every open request that no answer comes."""
        # One by one out of a copy: others add and take theirs meanwhile.
        for answer in list(self._answers.values()):
            if self._answers.pop(answer.token, None) is not None:
                answer.error = error
                answer.signal.set()
        for watcher in tuple(self._watchers):
            watcher.note(None, error)
