# Generated from src/js_async/publish/counters.py by codegen/twin.py. Edit that file instead.
"""Counters: numbers of any size that many may add to at the same time (ADR-49)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from twinstream.core.publish.counters import (
    Counter,
    check_counters,
    counter_of,
    from_decimal,
    to_decimal,
)
from twinstream.core.deadline import Deadline, Seconds
from twinstream.errors import (
    BadAnswer,
    BadArgument,
    ConnectionLost,
    MessageIdInProcess,
    MessageNotFound,
    NoResponders,
    OutcomeUnknown,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.core.wire.header_names import INCREMENT
from twinstream.core.wire.pub_ack import read_pub_ack
from twinstream.core.publish.request import PublishRequest, publish_headers
from twinstream.core.wire.subject_match import matcher
from twinstream.core.wire.subjects import check_subject
from twinstream.models import PubAck
from js_sync.api import pager as _paging
from js_sync.api.api import Api
from js_sync.runtime.concurrency import Stream as Generated
from js_sync.runtime.concurrency import sleep
from js_sync.stream import Stream

if TYPE_CHECKING:
    from js_sync.client.instrumentation import OpenCall

__all__ = ["Counters"]

_SINCE: Final = (2, 12, 0)
# How long one attempt may stay without an answer, and the pause before the next, in seconds.
_ATTEMPT: Final = 2.0
_ANSWER: Final = 0.25
_PAUSE: Final = 0.1


class Counters:
    """The counters of a stream, a subject each. Get them from `JetStream.counters`."""

    def __init__(self, api: Api, stream: Stream) -> None:
        self._api: Final = api
        self._stream: Final = stream
        window = stream.config.duplicate_window
        self._window: Final = window.total_seconds() if window is not None else 0.0
        self._matches = matcher(stream.config.subjects or [stream.name])

    @classmethod
    def _open(cls, api: Api, name: str) -> Counters:
        """Look at a stream and return its counters."""
        api.transport.ready(api.deadline())
        api.require(_SINCE, "counters")
        info = api.stream_info(name)
        check_counters(info.config)
        return cls(api, Stream(api, name, info))

    @property
    def stream(self) -> str:
        """The name of the stream."""
        return self._stream.name

    def __repr__(self) -> str:
        return f"<Counters of {self.stream}>"

    def add(
        self,
        subject: str,
        delta: int = 1,
        *,
        msg_id: str | None = None,
        timeout: Seconds | None = None,
    ) -> int:
        """Add to a counter, which starts at 0, and return its new value. `delta` may be negative.

        Every addition carries a message id, so it is sent again when no answer comes, until
        `timeout` seconds are over, and is counted once. Give a `msg_id` of your own to be able to
        call again with the same one later, within the stream's duplicate window. The value
        returned after a repeat is the one right after the addition, or the newest one where the
        stream keeps no more.

        Raises `OutcomeUnknown` when it is not known whether it was counted, `NoResponders` when no
        stream takes the subject, `BadArgument`, or a `JetStreamError`.
        """
        deadline = self._api.deadline(timeout)
        self._check_subject(subject, deadline)
        request = PublishRequest(
            subject=subject,
            headers={INCREMENT: to_decimal(delta)},
            msg_id=self._api.transport.tokens.name() if msg_id is None else msg_id,
        )
        ack = self._publish(request, deadline)
        if ack.stream != self.stream:
            raise BadAnswer(f"{subject} is no counter of {self.stream}: {ack.stream} took it")
        if ack.val is not None:
            return from_decimal(ack.val)
        if not ack.duplicate:
            raise BadAnswer(f"{subject}: {ack.stream} stored it and did not count")
        return (self._stored(subject, ack)).value

    def _check_subject(self, subject: str, deadline: Deadline) -> None:
        """Raise `BadArgument` where another stream would count: no condition keeps it from that."""
        literal = check_subject(subject)
        if self._matches is None or self._matches(literal):
            return
        for name in _paging.StreamNames(self._api, subject, deadline.remaining()):
            if name != self.stream:
                raise BadArgument(f"{subject} is no counter of {self.stream}: {name} has it")
            # It got the subject since it was asked for.
            config = (self._stream.info(timeout=deadline.remaining())).config
            self._matches = matcher(config.subjects or [self.stream])

    def _publish(self, request: PublishRequest, deadline: Deadline) -> PubAck:
        """Publish until it is acknowledged, as long as the server knows the message id for sure."""
        headers = publish_headers(request)
        with self._api.told("publish", request.subject, len(headers), self.stream) as call:
            return self._insist(request, headers, deadline, call)

    def _insist(
        self, request: PublishRequest, headers: bytes, deadline: Deadline, call: OpenCall | None
    ) -> PubAck:
        transport = self._api.transport
        last_repeat = Deadline.after(self._window)
        doubt = False
        while True:
            attempt = deadline.earlier(Deadline.after(_ATTEMPT).at)
            try:
                transport.ready(deadline)
                frame = transport.ask(request.subject, headers, b"", attempt)
                return read_pub_ack(frame, request.subject)
            except (RequestTimeout, ConnectionLost) as error:
                problem: TwinstreamError = error
                doubt = True
            except NoResponders as error:
                problem = error
            except MessageIdInProcess as error:
                # The first attempt, perhaps.
                problem = error
                doubt = True
            # An attempt with no time for its answer would only leave a doubt.
            if deadline.remaining() <= _PAUSE + _ANSWER or last_repeat.remaining() <= _PAUSE:
                if doubt:
                    raise _unknown(request) from problem
                raise problem
            sleep(_PAUSE)
            if call is not None:
                call.attempts += 1

    def _stored(self, subject: str, ack: PubAck) -> Counter:
        """Return the counter as an earlier attempt left it, or as it is now."""
        if ack.seq:
            try:
                return counter_of(self._stream.get_message(ack.seq))
            except MessageNotFound:
                pass  # later additions replaced it
        return self.get(subject)

    def get(self, subject: str) -> Counter:
        """Return a counter, read from the leader.

        Raises `MessageNotFound` if there is none, `BadArgument` for a wildcard.
        """
        check_subject(subject)
        return counter_of(self._stream.get_last_message(subject))

    def get_many(self, subjects: str | Sequence[str] = ">") -> Generated[Counter]:
        """Iterate over all counters whose subjects match any of the filters, as of one moment.

        Every addition that was acknowledged before the call is in them; they are read at once, by
        `Stream.snapshot`, and raise what that raises.
        """
        for message in (self._stream.snapshot(subjects)).values():
            yield counter_of(message)

    def reset(
        self, subject: str, *, drop_history: bool = False, timeout: Seconds | None = None
    ) -> int:
        """Take a counter back to 0 by adding the opposite of its value; return the new value.

        That is not 0 where somebody added meanwhile: nothing of theirs is lost. Streams that
        source this one follow. `drop_history` also removes the older messages of the subject.
        Raises `MessageNotFound` if there is no such counter.
        """
        counter = self.get(subject)
        value = self.add(subject, -counter.value, timeout=timeout)
        if drop_history:
            self._stream.purge(subject=subject, keep=1)
        return value


def _unknown(request: PublishRequest) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"{request.subject}: whether the addition was counted is not known; within the stream's"
        f" duplicate window it may be repeated with msg_id {request.msg_id!r}"
    )
