"""Requests: one inbox for all responses of a connection, with a token for each request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from js_async.client.channel import Box, Channel
from js_async.client.inbox_pool import IdleInboxes
from js_async.runtime.concurrency import Lock, Signal
from twinstream.core.api.idempotent_calls import ASK_AGAIN
from twinstream.core.base.hooks import HOOKS, reached
from twinstream.core.connect.handshake import Denied
from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.wire.protocol import Frame, Sink
from twinstream.core.wire.status import is_unserved
from twinstream.core.wire.subjects import check_filter
from twinstream.errors import NoResponders, RequestTimeout, TwinstreamError

if TYPE_CHECKING:
    from js_async.client.instrumentation import OnCall, OpenCall

__all__ = ["Answer", "Replies", "Watcher"]


class Watcher(Protocol):
    """The owner of an inbox of its own, which is notified when responses will not come."""

    def note(self, subject: bytes | None, error: TwinstreamError) -> None:
        """Handle the report that requests to a subject, or all if None, get no response.

        Called by the reader; it must be quick.
        """
        ...

    def deny(self, box: Box, error: TwinstreamError) -> None:
        """Handle a refused subscription, which may be the watcher's own."""
        ...


class Answer:
    """The pending or received response to a request; several may share one `signal`.

    `fits` returns whether a response is valid, as other responders may reply first.
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
        """Return whether the response, or the reason why none comes, has arrived."""
        return self.frame is not None or self.error is not None

    def take(self, subject: str) -> Frame:
        """Return the response, or raise why there is none."""
        frame = self.frame
        if self.error is not None:
            raise self.error
        if frame is None:
            stray = "" if self.stray is None else f"; another responder sent {self.stray[3][:80]!r}"
            raise RequestTimeout(f"{subject}: no answer in time{stray}")
        if frame[2] and is_unserved(frame):
            raise NoResponders(f"{subject}: no responders for this subject")
        return frame


class Replies:
    """Matches responses to requests by the last token of their subject."""

    def __init__(self, channel: Channel, on_call: OnCall | None = None) -> None:
        self._channel: Final = channel
        # Used by the layers above, which define what a call is.
        self.on_call: Final = on_call
        self._prefix: Final = channel.tokens.inbox().encode() + b"."
        self._behind_prefix: Final = slice(len(self._prefix), None)
        self._token: Final = channel.tokens.next_bytes
        self._answers: Final[dict[bytes, Answer]] = {}
        self._watchers: list[Watcher] = []
        self.idle_inboxes: Final = IdleInboxes()
        self._box: Box | None = None
        self._opening: Final = Lock()

    async def open(self) -> None:
        """Subscribe to the inbox, once. Raises `PermissionDenied` if the server refuses it."""
        box = self._box
        if box is None or box.error is not None:
            box = await self._listen(box)
        if box.error is not None:
            raise box.error

    async def _listen(self, refused: Box | None) -> Box:
        """Subscribe, perhaps in place of a refused inbox; return the mailbox."""
        channel = self._channel
        async with self._opening:
            if self._box is not None and self._box is not refused:
                # Another caller has subscribed already.
                return self._box
            box = await channel.open_mailbox(self._prefix + b"*", sink=self._sink)
            self._box = box
            if refused is not None:
                # The subject may be permitted by now. After settling, the server has accepted or
                # refused it.
                await channel.close_mailbox(refused, settle=True)
            return box

    def _sink(self, _: Box) -> Sink:
        return self._deliver

    def _deliver(self, frame: Frame) -> None:
        token = frame[0][self._behind_prefix]
        answer = self._answers.get(token)
        # The request of a late response has timed out already.
        if answer is None:
            return
        if answer.fits is not None and not answer.fits(frame):
            answer.stray = frame
        elif self._answers.pop(token, None) is not None:
            answer.frame = frame
        answer.signal.set()

    async def send(self, subject: bytes, headers: bytes, payload: bytes, signal: Signal) -> Answer:
        """Send a request and return its pending response."""
        return await self._send(Answer(subject, self._token(), signal), headers, payload, False)

    async def start(
        self,
        subject: bytes,
        headers: bytes,
        payload: bytes,
        deadline: Deadline,
        fits: Callable[[Frame], bool] | None = None,
    ) -> Answer:
        """Send a request once connected; return its pending response.

        The caller then waits for its `signal`, and finally calls `forget`. `fits` returns whether a
        response is valid, as other responders may reply first.
        """
        answer = self.try_start(subject, headers, payload, fits)
        if answer is not None:
            return answer
        # Connect before listing the request: a lost connection fails all listed requests.
        await self._channel.ready(deadline)
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
            # Check the inbox after listing the request: it may be refused at any moment.
            box = self._box
            if box is not None and box.error is None:
                reply = self._prefix + token
                if self._channel.try_send(subject, reply, headers, payload, True):
                    return answer
        except BaseException:
            self.forget(answer)
            raise
        self.forget(answer)
        return None

    async def _send(self, answer: Answer, headers: bytes, payload: bytes, now: bool) -> Answer:
        channel, subject = self._channel, answer.subject
        self._answers[answer.token] = answer
        reply = self._prefix + answer.token
        try:
            # Check the inbox after listing the request: it may be refused at any moment.
            if self._box is None or self._box.error is not None:
                await self.open()
            if not channel.try_send(subject, reply, headers, payload, now):
                await channel.send(subject, reply, headers, payload, now)
        except BaseException:
            self.forget(answer)
            raise
        return answer

    def forget(self, answer: Answer) -> None:
        """Stop waiting for a response."""
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
        """Send a request and return its response. A `repeatable` request may be sent several times.

        `fits`, for requests that are not repeatable, makes it skip responses of other responders.
        Repeats are counted in `call`.
        """
        # Wildcards are allowed here: the API takes a consumer's filter as part of the subject.
        encoded = check_filter(subject)
        if deadline.expired():
            raise RequestTimeout(f"{subject}: the deadline passed before the request was sent")
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
        """Wait for a response or the deadline; skip what other responders send."""
        if HOOKS:
            reached("request: before wait", answer)
        while not answer.is_here():
            # A response of another responder sets the signal, too.
            answer.signal.clear()
            if answer.is_here() or not await self._channel.wait(answer.signal, deadline):
                return

    async def _insist(
        self,
        answer: Answer,
        headers: bytes,
        payload: bytes,
        deadline: Deadline,
        call: OpenCall | None,
    ) -> None:
        """Wait for a response, and send the request again when none comes."""
        for pause in ASK_AGAIN:
            end = deadline.earlier(monotonic() + pause)
            if await self._channel.wait(answer.signal, end) or deadline.expired():
                return
            if call is not None:
                call.attempts += 1
            await self._send(answer, headers, payload, True)

    def watch(self, watcher: Watcher) -> None:
        """Notify a watcher of missing responses, until `unwatch`."""
        self._watchers.append(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """Stop notifying a watcher. Does nothing if it is not listed."""
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    @property
    def open_requests(self) -> int:
        """Number of requests that wait for a response."""
        return len(self._answers)

    def deny(self, denied: Denied, boxes: list[Box], error: TwinstreamError) -> None:
        """Handle what the server refused; `boxes` are the mailboxes that get no messages now."""
        if denied.publishing:
            self._fail_subject(denied.subject, error)
            return
        for box in boxes:
            if box is self._box:
                # Without the inbox no response can come.
                self.fail(error)
            for watcher in tuple(self._watchers):
                watcher.deny(box, error)

    def _fail_subject(self, subject: bytes, error: TwinstreamError) -> None:
        # Case-insensitive: nats-py converts the server's error text to lower case.
        subject = subject.lower()
        for answer in list(self._answers.values()):
            if answer.subject.lower() == subject:
                answer.error = error
                answer.signal.set()
        for watcher in tuple(self._watchers):
            watcher.note(subject, error)

    def fail(self, error: TwinstreamError) -> None:
        """Fail every open request."""
        # Iterate over a copy: others add and remove requests meanwhile.
        for answer in list(self._answers.values()):
            if self._answers.pop(answer.token, None) is not None:
                answer.error = error
                answer.signal.set()
        for watcher in tuple(self._watchers):
            watcher.note(None, error)
