"""Counters: integers of any size to which several clients may add concurrently (ADR-49)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from js_async import JetStream
from js_async.extension import api_of
from js_async.runtime.concurrency import Items, sleep
from js_async.runtime.opening import looped
from twinstream.core.counters.counters import (
    Counter,
    check_counters,
    counter_of,
    from_decimal,
    to_decimal,
)
from twinstream.core.deadline import Deadline, Seconds
from twinstream.core.publish.request import publish_headers
from twinstream.core.wire.pub_ack import read_pub_ack
from twinstream.core.wire.subject_match import matcher
from twinstream.core.wire.subjects import check_subject
from twinstream.errors import (
    BadArgument,
    InvalidResponse,
    MessageIdInProcess,
    MessageNotFound,
    NoResponders,
    OutcomeUnknown,
    TwinstreamError,
)
from twinstream.errors.transient import LOST_RESPONSE
from twinstream.models import PubAck, StreamConfig
from twinstream.records.header_names import INCREMENT
from twinstream.records.publish_request import PublishRequest

if TYPE_CHECKING:
    from twinstream.core.observe.operation import Operation

__all__ = ["Counters"]

_SINCE: Final = (2, 12, 0)
# In seconds: the timeout of one attempt, the minimum time that must remain for the response to
# another attempt, and the pause between two attempts.
_ATTEMPT: Final = 2.0
_ANSWER: Final = 0.25
_PAUSE: Final = 0.1


class Counters:
    """The counters of a stream with `allow_msg_counter` (server 2.12), one for each subject.

    The constructor sends no request. The first call requests the info of the stream. It raises
    `StreamNotFound`, `Unsupported` if the server is older than 2.12, or `BadArgument` if the stream
    does not allow counters.

    Args:
        jet: The JetStream context.
        stream_name: Name of the stream.
    """

    def __init__(self, jet: JetStream, stream_name: str) -> None:
        self._api: Final = api_of(jet)
        self._jet: Final = jet
        self._stream: Final = jet.bind_stream(stream_name)
        self._is_checked = False
        self._window = 0.0
        self._matches: Callable[[bytes], object] | None = None

    @property
    def stream_name(self) -> str:
        """The name of the stream."""
        return self._stream.name

    def __repr__(self) -> str:
        return f"<Counters of {self.stream_name}>"

    async def _check(self, deadline: Deadline) -> None:
        """Check, in the first call, that the server and the stream allow counters."""
        if self._is_checked:
            return
        config = await self._api.config_of(self.stream_name, _SINCE, "counters", deadline)
        check_counters(config)
        self._learn(config)
        self._is_checked = True

    def _learn(self, config: StreamConfig) -> None:
        window = config.duplicate_window
        self._window = window.total_seconds() if window is not None else 0.0
        self._matches = matcher(config.subjects or [self.stream_name])

    async def add(
        self,
        subject: str,
        delta: int = 1,
        *,
        msg_id: str | None = None,
        timeout: Seconds | None = None,
    ) -> int:
        """Add to a counter and return its new value. A new counter starts at 0.

        Each addition has a message id. If a response is lost, the call repeats the addition with
        the same id, and the server counts it once. If an earlier attempt was counted, the call
        reads the value from the message that this attempt stored. If the stream no longer has this
        message, the call returns the current value of the counter.

        Args:
            subject: Subject of the counter.
            delta: Amount to add; may be negative.
            msg_id: Message id, by default a random one. If you choose the id, you can repeat the
                call later, within the stream's duplicate window.
            timeout: Seconds; the default is that of the API.

        Raises:
            OutcomeUnknown: It is unknown whether the addition was counted.
            NoResponders: No stream has the subject.
            BadArgument: An argument is invalid.
            JetStreamError: The server refused the addition.
        """
        check_subject(subject)
        request = PublishRequest(
            subject=subject,
            headers={INCREMENT: to_decimal(delta)},
            msg_id=self._api.transport.tokens.name() if msg_id is None else msg_id,
        )
        deadline = self._api.deadline(timeout)
        await self._check(deadline)
        await self._check_subject(subject, deadline)
        ack = await self._publish(request, deadline)
        if ack.stream != self.stream_name:
            raise InvalidResponse(
                f"{subject} is no counter of {self.stream_name}: {ack.stream} stored it"
            )
        if ack.val is not None:
            return from_decimal(ack.val)
        if not ack.duplicate:
            raise InvalidResponse(f"{subject}: {ack.stream} stored it and did not count")
        return (await self._read_stored(subject, ack, deadline)).value

    async def _check_subject(self, subject: str, deadline: Deadline) -> None:
        """Raise `BadArgument` if another stream has the subject and would store the message."""
        if self._matches is None or self._matches(subject.encode()):
            return
        async for name in self._jet.stream_names(subject, timeout=deadline.remaining()):
            if name != self.stream_name:
                raise BadArgument(f"{subject} is no counter of {self.stream_name}: {name} has it")
            # The subject was added to the stream after the last check.
            self._learn((await self._stream.info(timeout=deadline.remaining())).config)

    async def _publish(self, request: PublishRequest, deadline: Deadline) -> PubAck:
        """Publish the message, and repeat that until the server acknowledges it.

        Repetitions end at the deadline or with the duplicate window: later, the server may have
        forgotten the message id, and would count the addition again.
        """
        observers = self._api.transport.call_observers
        if observers is None:
            return await self._publish_with_repeats(request, deadline, None)
        from twinstream.core.observe.publish_context import begin_publish

        request, call = begin_publish(observers, request, "publish", self.stream_name)
        with call:
            ack = await self._publish_with_repeats(request, deadline, call)
            call.seq = ack.seq
            return ack

    async def _publish_with_repeats(
        self, request: PublishRequest, deadline: Deadline, call: Operation | None
    ) -> PubAck:
        """Publish an increment, and repeat it until it is acknowledged or the deadline passes.

        Repeats have the same message id, so they cannot count twice within the stream's duplicate
        window. Raises `OutcomeUnknown` if an attempt may have been stored.
        """
        headers, transport = publish_headers(request), self._api.transport
        last_repeat = Deadline.after(self._window)
        problem: TwinstreamError | None = None
        may_be_stored = False
        if call is not None:
            call.size = len(headers)
        while True:
            attempt, is_sent = deadline.earlier(Deadline.after(_ATTEMPT).at), False
            try:
                await transport.ready(deadline)
                # Nothing is sent after the deadline, for example if the program was held up.
                is_sent = not attempt.expired()
                frame = await transport.ask(request.subject, headers, b"", attempt)
                return read_pub_ack(frame, request.subject)
            except LOST_RESPONSE as error:
                if is_sent or problem is None:
                    problem = error
                may_be_stored |= is_sent
            except NoResponders as error:
                problem = error
            except MessageIdInProcess as error:
                # The server is storing a message with this id, probably of an earlier attempt.
                problem = error
                may_be_stored = True
            except TwinstreamError as error:
                if may_be_stored:
                    raise _unknown(request) from error
                raise
            # Do not begin an attempt whose response could not arrive before the deadline, or
            # that could arrive at the server after the duplicate window.
            has_no_time = deadline.remaining() <= _PAUSE + _ANSWER
            is_window_over = last_repeat.remaining() <= _PAUSE
            if has_no_time or is_window_over:
                if may_be_stored:
                    raise _unknown(request) from problem
                raise problem
            await sleep(_PAUSE)
            if call is not None:
                call.attempts += 1

    async def _read_stored(self, subject: str, ack: PubAck, deadline: Deadline) -> Counter:
        """Return the counter as stored by an earlier attempt.

        If the message of this attempt was removed, the current counter is returned.
        """
        if ack.seq:
            try:
                return counter_of(
                    await self._stream.get_message(ack.seq, timeout=deadline.remaining())
                )
            except MessageNotFound:
                pass  # The message was removed, for example when a later addition replaced it.
        return await self._get(subject, deadline)

    async def get(self, subject: str, *, timeout: Seconds | None = None) -> Counter:
        """Return a counter as stored by the leader of the stream.

        Raises `MessageNotFound` if the counter does not exist, and `BadArgument` for a wildcard.

        Args:
            subject: Subject of the counter.
            timeout: Seconds; the default is that of the API.
        """
        check_subject(subject)
        deadline = self._api.deadline(timeout)
        await self._check(deadline)
        return await self._get(subject, deadline)

    async def _get(self, subject: str, deadline: Deadline) -> Counter:
        timeout = deadline.remaining()
        return counter_of(await self._stream.get_last_message(subject, timeout=timeout))

    @looped
    async def list(
        self, subjects: str | Iterable[str] | None = None, *, idle_timeout: Seconds = 120.0
    ) -> Items[Counter]:
        """Iterate over the counters whose subjects match any of the filters, as of one moment.

        The counters include every addition that was acknowledged before the call. All counters are
        read with `Stream.snapshot` before the first counter is returned. Raises `StreamNotFound`,
        `JetStreamError` or `RequestTimeout`.

        Args:
            subjects: One filter or several. The default matches all counters of the stream, an
                empty list none.
            idle_timeout: Seconds without progress after which the call fails.
        """
        await self._check(self._api.deadline(idle_timeout))
        for message in (await self._stream.snapshot(subjects, idle_timeout=idle_timeout)).values():
            yield counter_of(message)

    async def reset(
        self, subject: str, *, drop_history: bool = False, timeout: Seconds | None = None
    ) -> int:
        """Reset a counter to 0 by adding the negative of its value; return the new value.

        No addition is lost: the new value is not 0 if another client added meanwhile. Streams that
        source this stream subtract the same amount. Raises `MessageNotFound` if the counter does
        not exist, and `OutcomeUnknown` or another error as `add` does.

        Args:
            subject: Subject of the counter.
            drop_history: Also remove the older messages of the subject.
            timeout: Seconds for the whole call; the default is that of the API.
        """
        deadline = self._api.deadline(timeout)
        counter = await self.get(subject, timeout=deadline.remaining())
        value = await self.add(subject, -counter.value, timeout=deadline.remaining())
        if drop_history:
            await self._stream.purge(subject=subject, keep=1, timeout=deadline.remaining())
        return value


def _unknown(request: PublishRequest) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"{request.subject}: it is unknown whether the addition was counted; within the stream's"
        f" duplicate window it may be repeated with msg_id {request.msg_id!r}"
    )
