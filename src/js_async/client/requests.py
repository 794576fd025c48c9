"""Requests. All responses of a connection arrive on one inbox; a token identifies the request."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from js_async.client.channel import Box, Channel
from js_async.client.inbox_pool import InboxPool
from js_async.runtime.concurrency import Lock, Signal
from twinstream.core.client.handshake import Denied
from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.on_failure import OnFailure
from twinstream.core.server_faults.repeats import ASK_AGAIN
from twinstream.core.wire.protocol import Frame, Sink
from twinstream.core.wire.status import is_unserved
from twinstream.core.wire.subjects import check_filter
from twinstream.errors import NoResponders, RequestTimeout, TwinstreamError

if TYPE_CHECKING:
    from twinstream.core.observe.operation import Operation

__all__ = ["Answer", "PendingRequests", "Watcher"]


class Watcher(Protocol):
    """An object with its own inbox that is notified of lost responses and refused subscriptions."""

    def note(self, subject: bytes | None, error: TwinstreamError) -> None:
        """Fail the open requests to `subject` (in lower case), or all of them if it is None.

        These requests get no response; `error` is the reason. The code that reads the socket calls
        this method, so the method must be quick.
        """
        ...

    def deny(self, box: Box, error: TwinstreamError) -> None:
        """Handle a subscription that the server refused. Its mailbox is `box`.

        The mailbox may belong to another object.
        """
        ...


class Answer:
    """The pending or received response to a request. Several responses may share one `signal`.

    `fits` returns whether a response is valid. It is used where other responders may reply first.
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
        """Return whether the response, or the error that replaces it, has arrived."""
        return self.frame is not None or self.error is not None

    def take(self, subject: str) -> Frame:
        """Return the response, or raise the reason why there is none.

        Raises `error` if it is set, `RequestTimeout` if no response has arrived, and `NoResponders`
        if the server responded that the subject has no responders.
        """
        frame = self.frame
        if self.error is not None:
            raise self.error
        if frame is None:
            stray = "" if self.stray is None else f"; another responder sent {self.stray[3][:80]!r}"
            raise RequestTimeout(f"{subject}: no answer in time{stray}")
        if frame[2] and is_unserved(frame):
            raise NoResponders(f"{subject}: no responders for this subject")
        return frame


class PendingRequests:
    """The open requests of a connection. The last token of the reply subject identifies each."""

    def __init__(self, channel: Channel) -> None:
        self._channel: Final = channel
        self._prefix: Final = channel.tokens.inbox().encode() + b"."
        self._behind_prefix: Final = slice(len(self._prefix), None)
        self._token: Final = channel.tokens.next_bytes
        self._answers: Final[dict[bytes, Answer]] = {}
        self._watchers: list[Watcher] = []
        self.idle_inboxes: Final = InboxPool()
        self.several: Final[set[str]] = set()
        """The API subjects whose requests are known to get several responses."""
        self._box: Box | None = None
        self._opening: Final = Lock()

    async def open(self) -> None:
        """Subscribe to the inbox, unless the client is subscribed to it already.

        Raises the server's error if it refused the subscription, for example `PermissionDenied`.
        """
        box = self._box
        if box is None or box.error is not None:
            box = await self._listen(box)
        box.check()

    async def _listen(self, refused: Box | None) -> Box:
        """Subscribe to the inbox and return its mailbox; close the `refused` mailbox, if given."""
        channel = self._channel
        async with self._opening:
            if self._box is not None and self._box is not refused:
                # Another caller has subscribed already.
                return self._box
            box = await channel.open_mailbox(self._prefix + b"*", sink=self._sink)
            self._box = box
            if refused is not None:
                # The server may permit the subject by now. `settle` waits until the server has
                # accepted or refused the new subscription.
                await channel.close_mailbox(refused, settle=True)
            return box

    def _sink(self, _: Box) -> Sink:
        return self._deliver

    def _deliver(self, frame: Frame) -> None:
        token = frame[0][self._behind_prefix]
        answer = self._answers.get(token)
        # The request has ended, for example by a timeout, or this is a second response.
        if answer is None:
            return
        if answer.fits is not None and not answer.fits(frame):
            answer.stray = frame
        elif self._answers.pop(token, None) is not None:
            answer.frame = frame
        answer.signal.set()

    def write(
        self,
        subject: bytes,
        headers: bytes,
        payload: bytes,
        fits: Callable[[Frame], bool] | None = None,
        signal: Signal | None = None,
        now: bool = True,
    ) -> Answer | None:
        """Send a request without waiting, and return its pending response.

        Return None if it was not sent, because that has to wait. `fits` returns whether a response
        is valid. It is used where other responders may reply first. Several requests may share a
        `signal`. Without `now`, the request is sent with the next one, or before the next wait.
        """
        token = self._token()
        answer = Answer(subject, token, Signal() if signal is None else signal, fits)
        self._answers[token] = answer
        try:
            # Check the inbox after adding the request. If the server refuses the inbox later,
            # `deny` fails the request.
            box = self._box
            if box is not None and box.error is None:
                reply = self._prefix + token
                if self._channel.write(subject, reply, headers, payload, now):
                    return answer
        except BaseException:  # The request was not sent. `OnFailure` would be slower.
            self.forget(answer)
            raise
        self.forget(answer)
        return None

    async def send(
        self,
        subject: bytes,
        headers: bytes,
        payload: bytes,
        deadline: Deadline,
        fits: Callable[[Frame], bool] | None = None,
        signal: Signal | None = None,
    ) -> Answer:
        """Send a request as `write` does, after waiting until that is possible.

        The caller then waits for the response's `signal`, and finally calls `forget`. Requests that
        share a `signal` are sent together, and wait while the send buffer is full.
        """
        now = signal is None
        answer = self.write(subject, headers, payload, fits, signal, now)
        if answer is None:
            # Wait before adding the request, because a lost connection fails all requests.
            await self._channel.ready(deadline)
            answer = Answer(subject, self._token(), Signal() if signal is None else signal, fits)
            await self._send(answer, headers, payload, now)
        return answer

    async def _send(self, answer: Answer, headers: bytes, payload: bytes, now: bool) -> None:
        with OnFailure(partial(self.forget, answer)):
            self._answers[answer.token] = answer
            # Check the inbox after adding the request. If the server refuses the inbox later,
            # `deny` fails the request.
            if self._box is None or self._box.error is not None:
                await self.open()
            reply = self._prefix + answer.token
            await self._channel.send(answer.subject, reply, headers, payload, now)

    def forget(self, answer: Answer) -> None:
        """Remove a request; its response is ignored from now on."""
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
        call: Operation | None = None,
    ) -> Frame:
        """Send a request and return its response, as `Transport.ask` does.

        A `repeatable` request is sent again while no response arrives; `call` counts the repeats.
        Responses that do not satisfy `fits` come from other responders and are skipped. `fits` is
        not supported for a repeatable request.
        """
        # Allow wildcards: the API takes a consumer's filter as part of the request subject.
        encoded = check_filter(subject)
        if deadline.expired():
            raise RequestTimeout(
                f"{subject}: the deadline passed before the request was sent; a request needs a"
                " timeout above 0"
            )
        answer = await self.send(encoded, headers, payload, deadline, fits)
        try:
            if repeatable:
                await self._wait_and_repeat(answer, headers, payload, deadline, call)
            else:
                await self.wait(answer, deadline)
        finally:
            self.forget(answer)
        return answer.take(subject)

    async def wait(self, answer: Answer, deadline: Deadline) -> None:
        """Wait for the response, its error or the deadline."""
        if HOOKS:
            reached("request: before wait", answer)
        while not answer.is_here():
            # The signal may be set by a response that does not satisfy `fits`.
            answer.signal.clear()
            if answer.is_here() or not await self._channel.wait(answer.signal, deadline):
                return
            if answer.stray is not None and deadline.expired():
                # Otherwise a responder that sends without a pause would delay the timeout.
                return

    async def _wait_and_repeat(
        self,
        answer: Answer,
        headers: bytes,
        payload: bytes,
        deadline: Deadline,
        call: Operation | None,
    ) -> None:
        """Wait for the response, and send the request again after each pause of `ASK_AGAIN`."""
        for pause in ASK_AGAIN:
            end = deadline.earlier(monotonic() + pause)
            if await self._channel.wait(answer.signal, end) or deadline.expired():
                return
            if call is not None:
                call.attempts += 1
            await self._send(answer, headers, payload, True)

    def watch(self, watcher: Watcher) -> None:
        """Register a watcher, which is notified of lost responses and refused subscriptions."""
        self._watchers.append(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """Stop notifying a watcher. Do nothing if it is not registered."""
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    @property
    def open_requests(self) -> int:
        """The number of requests that wait for a response."""
        return len(self._answers)

    def deny(self, denied: Denied, boxes: list[Box], error: TwinstreamError) -> None:
        """Fail the requests that are affected by a refusal of the server, and notify the watchers.

        `boxes` are the mailboxes whose subscription the server refused.
        """
        if denied.publishing:
            self._fail_subject(denied.subject, error)
            return
        for box in boxes:
            if box is self._box:
                # Without the inbox, no response can arrive.
                self.fail(error)
            for watcher in tuple(self._watchers):
                watcher.deny(box, error)

    def _fail_subject(self, subject: bytes, error: TwinstreamError) -> None:
        # Ignore case, because nats-py converts the server's error text to lower case.
        subject = subject.lower()
        for answer in list(self._answers.values()):
            if answer.subject.lower() == subject:
                answer.error = error
                answer.signal.set()
        for watcher in tuple(self._watchers):
            watcher.note(subject, error)

    def fail(self, error: TwinstreamError) -> None:
        """Fail every open request with `error`, and notify the watchers."""
        # Iterate over a copy: callers add and remove requests meanwhile.
        for answer in list(self._answers.values()):
            if self._answers.pop(answer.token, None) is not None:
                answer.error = error
                answer.signal.set()
        for watcher in tuple(self._watchers):
            watcher.note(None, error)
