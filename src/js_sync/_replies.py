# Generated from src/js_async/_replies.py by codegen/twin.py. Edit that file instead.
"""Requests: one inbox for all answers of a connection, a token for each request."""

from __future__ import annotations

from typing import Final

from js_core.deadline import Deadline
from js_core.errors import BadArgument, NoResponders, RequestTimeout, TwinstreamError
from js_core.headers import parse_status
from js_core.protocol import Frame, Sink
from js_core.subjects import check_filter
from js_sync._io import Lock, Signal
from js_sync._transport import Box, Transport

__all__ = ["Answer", "Replies"]

_NO_RESPONDERS: Final = 503


class Answer:
    """The place of one answer; `signal` may serve several answers."""

    __slots__ = ("error", "frame", "signal", "subject", "token")

    def __init__(self, subject: bytes, token: bytes, signal: Signal) -> None:
        self.subject = subject
        self.token = token
        self.signal = signal
        self.frame: Frame | None = None
        self.error: TwinstreamError | None = None

    def is_here(self) -> bool:
        """Tell whether the answer, or the reason why none comes, is here."""
        return self.frame is not None or self.error is not None

    def take(self, subject: str) -> Frame:
        """Return the answer, or raise why there is none."""
        if self.error is not None:
            raise self.error
        if self.frame is None:
            raise RequestTimeout(f"{subject}: no answer in time")
        _, _, header_size, body = self.frame
        if header_size and parse_status(body)[0] == _NO_RESPONDERS:
            raise NoResponders(f"{subject}: nobody serves this subject")
        return self.frame


class Replies:
    """Matches answers to requests by the last token of the subject that they come to."""

    def __init__(self, transport: Transport) -> None:
        self._transport: Final = transport
        self._prefix: Final = transport.tokens.inbox().encode() + b"."
        self._answers: dict[bytes, Answer] = {}
        self._box: Box | None = None
        self._opening: Final = Lock()

    def open(self) -> None:
        """Subscribe to the inbox, once."""
        if self._box is None:
            with self._opening:
                if self._box is None:
                    inbox = self._prefix + b"*"
                    self._box = self._transport.open_mailbox(inbox, sink=self._sink)

    def _sink(self, _: Box) -> Sink:
        return self._deliver

    def _deliver(self, frame: Frame) -> None:
        answer = self._answers.pop(frame[0][len(self._prefix) :], None)
        # A late answer has no place any more: its request gave up and said so.
        if answer is not None:
            answer.frame = frame
            answer.signal.set()

    def send(self, subject: bytes, headers: bytes, payload: bytes, signal: Signal) -> Answer:
        """Send a request and return the place of its answer; `open` was called before."""
        answer = Answer(subject, self._transport.tokens.next().encode(), signal)
        self._answers[answer.token] = answer
        try:
            self._transport.send(subject, self._prefix + answer.token, headers, payload)
        except BaseException:
            self.forget(answer)
            raise
        return answer

    def forget(self, answer: Answer) -> None:
        """Give up on an answer."""
        self._answers.pop(answer.token, None)

    def ask(self, subject: str, headers: bytes, payload: bytes, deadline: Deadline) -> Frame:
        """Send a request and return its answer."""
        # Wildcards may stand here: the API takes a consumer's filter as part of the subject.
        encoded = check_filter(subject)
        if deadline.expired():
            raise BadArgument(f"{subject}: the timeout is over before the request was sent")
        self._transport.ready(deadline)
        self.open()
        answer = self.send(encoded, headers, payload, Signal())
        try:
            self._transport.wait(answer.signal, deadline)
        finally:
            self.forget(answer)
        return answer.take(subject)

    @property
    def open_requests(self) -> int:
        """How many requests wait for an answer."""
        return len(self._answers)

    def fail_subject(self, subject: bytes, error: TwinstreamError) -> None:
        """Tell the open requests to a subject that no answer comes."""
        for answer in list(self._answers.values()):
            if answer.subject == subject:
                answer.error = error
                answer.signal.set()

    def fail(self, error: TwinstreamError) -> None:
        """Tell every open request that no answer comes."""
        answers, self._answers = self._answers, {}
        for answer in answers.values():
            answer.error = error
            answer.signal.set()
