"""The messages of a push consumer, with flow control."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from js_async.api import consumer_admin
from js_async.api.api import Api
from js_async.api.create_update import create_consumer
from js_async.client.transport import Box
from js_async.consume.delivery import Delivery
from js_async.consume.item_source import ItemSource, NothingInTime
from js_async.consume.message import Message, message_of
from twinstream.core.consume.absence_timer import AbsenceTimer
from twinstream.core.consume.ack_wait import ack_wait_of
from twinstream.core.consume.reports import PullReport, PullWarning
from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.log.reporter import Reporter
from twinstream.core.on_failure import AsyncOnFailure
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.status import Kind, is_status, read_status
from twinstream.errors import BadArgument, ConsumerExists, PermissionDenied, RequestTimeout
from twinstream.errors.transient import FAILED_REQUEST
from twinstream.models import ConsumerConfig, ConsumerInfo
from twinstream.records.headers import Headers

if TYPE_CHECKING:
    from twinstream.core.payloads.payloads import Payloads

__all__ = ["PushBuffer", "check_group", "with_heartbeats"]

_STALLED: Final = "Nats-Consumer-Stalled"
_HEARTBEAT: Final = timedelta(seconds=5)
# After this silence (seconds), check that a consumer without heartbeats still exists.
_SILENCE: Final = 10.0


def check_group(config: ConsumerConfig) -> None:
    """Raise `BadArgument` for a group without a name.

    Each member would create a consumer of its own, and get every message.
    """
    if config.deliver_group and not (config.durable_name or config.name):
        raise BadArgument(
            f"deliver_group {config.deliver_group!r} needs a durable_name or name, the same for all"
            " members: without one, each member creates a consumer of its own, and gets every"
            " message"
        )


def with_heartbeats(config: ConsumerConfig) -> ConsumerConfig:
    """Return the configuration with heartbeats of 5 s, which show that the consumer still exists.

    A configuration with heartbeats, a name or a group is returned unchanged. A named consumer may
    already exist with other settings. In a group, the server sends each heartbeat to only one
    member.
    """
    shared = config.durable_name or config.name or config.deliver_group
    if shared or config.idle_heartbeat is not None:
        return config
    return evolve(config, idle_heartbeat=_HEARTBEAT)


def _without_inbox(error: ConsumerExists, group: str | None) -> ConsumerExists:
    """Return the error without the inbox, which the client has chosen and not the caller."""
    shown = tuple(
        evolve(each, wanted="an inbox") if each.field == "deliver_subject" else each
        for each in error.differences
    )
    advice = (
        f"all members of the deliver_group {group!r} must give one deliver_subject, or open the"
        " existing consumer by its name: push_messages(name)"
    )
    return error.with_differences(shown, advice if group else "")


class PushBuffer(ItemSource[Message[Any]]):
    """The messages of a push consumer: the mailbox, flow control, and the check of silence."""

    def __init__(
        self,
        api: Api,
        stream: str,
        config: ConsumerConfig,
        on_report: Callable[[PullReport], None] | None,
    ) -> None:
        super().__init__(f"{stream}/{config.durable_name or config.name or '(unnamed)'}")
        self._api: Final = api
        self._stream: Final = stream
        self._config = config
        self._report: Final[Reporter[PullReport]] = Reporter(on_report, stream=stream)
        self._info: ConsumerInfo | None = None
        self._box: Box | None = None
        self._ready: Final[deque[Message[Any]]] = deque()
        self.payloads: Payloads[Any] | None = None
        """What decodes the messages of a typed stream, otherwise None."""
        self._looked_at = 0.0
        self._heard_at = 0.0
        self._draining = self._drained = False
        self._closed = False
        self._doubt: Final = AbsenceTimer()
        self._epoch = 0

    @property
    def name(self) -> str:
        """The consumer's name; empty before the consumer is created."""
        return self._info.name if self._info is not None else ""

    async def open(self, info: ConsumerInfo | None = None) -> None:
        """Subscribe, then create the consumer unless `info` of an existing one is given."""
        transport = self._api.transport
        chosen = self._config.deliver_subject is None
        if chosen:
            self._config = evolve(self._config, deliver_subject=transport.tokens.inbox())
        subject = (self._config.deliver_subject or "").encode()
        queue = (self._config.deliver_group or "").encode()
        self._box = await transport.open_mailbox(subject, queue)
        transport.drainables.add(self, self.drain, self.drained)
        self._box.owner = f"{self.label}: an iterator over its pushed messages"
        self._heard_at = self._looked_at = monotonic()
        async with AsyncOnFailure(self.close):
            try:
                self._info = info or await create_consumer(
                    self._api, self._stream, self._config, "create"
                )
            except ConsumerExists as error:
                if not chosen:
                    raise
                raise _without_inbox(error, self._config.deliver_group) from None

    # ---- taking

    @property
    def is_ended(self) -> bool:
        """Whether the buffer is closed, or drained and empty."""
        return self._closed or (self._drained and not self.buffered)

    @property
    def buffered(self) -> int:
        """The number of messages that have arrived and were not taken."""
        waiting = sum(not is_status(frame) for frame in tuple(self._box.frames)) if self._box else 0
        return len(self._ready) + waiting

    def take_nowait(self) -> Message[Any] | None:
        """Return a buffered message, or None. This needs no lock."""
        try:
            return self._ready.popleft()
        except IndexError:
            return None

    async def _take_next(self, deadline: Deadline) -> Message[Any] | None:
        """Return the next message, or None at the end.

        Answers flow control and checks the consumer while it waits. Raises `NothingInTime` at the
        deadline.
        """
        box, is_late = self._box, False
        while box is not None and not self._closed:
            if HOOKS:
                reached("push: before clear", self)
            # Clear the signal before reading the mailbox, so that no arrival is missed.
            box.signal.clear()
            if self._closed:
                break
            # Read this before the mailbox: `drain` sets it after the last message has arrived.
            is_drained = self._drained
            while (status := self._fill(box)) is not None:
                await self._answer(status, box)
            if self._closed:
                break
            message = self.take_nowait()
            if message is not None:
                return message
            if box.frames:
                # Another thread took the buffered messages. The next frame is a status.
                continue
            if HOOKS:
                reached("source: found empty", self)
            self._check(box)
            if is_drained:
                break
            await self._watch(box)
            if is_late:
                # Only statuses have arrived. A server that sends them without a pause must not
                # delay the timeout.
                raise NothingInTime("no message in time")
            wake_at = deadline.earlier(self._quiet_until())
            try:
                is_set = await self._api.transport.wait(box.signal, wake_at)
            finally:
                # Frames that are in the mailbox now arrived during the wait.
                self._looked_at = monotonic()
            is_late = deadline.expired()
            if is_late and not is_set:
                raise NothingInTime("no message in time")
        self._ready.clear()
        return None

    def _fill(self, box: Box) -> Frame | None:
        """Buffer the messages before the next status.

        Return the status if all messages before it were taken, else None.
        """
        frames = box.frames
        if not frames:
            return None
        # These frames arrived since the last check, perhaps while the caller was busy. Assume that
        # they arrived at the time of that check.
        arrived_at = min(box.heard_at, self._looked_at)
        api = self._api
        delivery = Delivery(
            api.transport, arrived_at, ack_wait_of(self._info), api.timeout, self.payloads
        )
        self._looked_at = monotonic()
        for _ in range(len(frames)):
            if is_status(frames[0]):
                return None if self._ready else frames.popleft()
            self._ready.append(message_of(frames.popleft(), delivery))
        return None

    def _check(self, box: Box) -> None:
        """Raise the error that ended the iterator, if any."""
        box.check()
        if not self._drained and self._api.transport.is_closed:
            raise self._api.transport.closed_error()

    async def _answer(self, frame: Frame, box: Box) -> None:
        """Answer a status if it is a flow control request. All messages before it were taken.

        A heartbeat of a stalled consumer repeats the request in a header.
        """
        status = read_status(frame)
        where = frame[1] if status.kind is Kind.FLOW_CONTROL else b""
        if status.kind is Kind.HEARTBEAT:
            headers = Headers.parse(frame[3][: frame[2]])
            where = headers.get(_STALLED, "").encode("utf-8", "surrogateescape")
        if not (where and self._api.transport.is_connected):
            # Without `where`, the status is not a flow control request. While the client is
            # disconnected, it sends no answer: a server that still waits repeats the request.
            return
        # If the user may not publish to this subject, the server refuses the answer and sends no
        # more messages. Because of `asks`, the mailbox then gets the error of the refusal.
        box.asks = where
        try:
            await self._api.transport.send(where, b"", b"", b"")
        except RequestTimeout:
            # The connection was just lost; the server repeats the request.
            return

    @property
    def _heartbeat(self) -> timedelta | None:
        """The interval at which this client receives heartbeats, or None.

        None for a member of a group: the server sends each heartbeat to only one member.
        """
        return None if self._config.deliver_group else self._config.idle_heartbeat

    def _quiet_until(self) -> float:
        heartbeat = self._heartbeat
        return self._heard_at + (2 * heartbeat.total_seconds() if heartbeat else _SILENCE)

    async def _watch(self, box: Box) -> None:
        """Check that the consumer exists, if two heartbeats are missing.

        A consumer without heartbeats is checked after 10 s of silence.
        """
        if box.heard_at > self._heard_at:
            self._heard_at = box.heard_at
            self._doubt.clear()
        if monotonic() < self._quiet_until():
            return
        self._heard_at = monotonic()
        beats = bool(self._heartbeat)
        if beats:
            self._report(PullWarning("two heartbeats are missing; checking the consumer"))
        if self._epoch != self._api.transport.epoch:
            self._epoch = self._api.transport.epoch
            self._doubt.clear()
        try:
            if not self._doubt.is_known:
                await consumer_admin.require_there(self._api, self._stream, self.name)
                return
        except PermissionDenied:
            if not beats:
                # Silence of a consumer without heartbeats does not show that it was deleted.
                return
            self._doubt.grow(monotonic())
        except FAILED_REQUEST:
            # The leader or the connection is missing now: check again later.
            return
        unknown = self._doubt.grow(monotonic())
        if unknown is not None:
            raise unknown

    async def drain(self) -> None:
        """Unsubscribe. `take` still returns the messages that the server has sent."""
        if self._box is None or self._closed or self._draining:
            return
        self._draining = True
        try:
            await self._api.transport.close_mailbox(self._box, settle=True)
        finally:
            # Set this after the mailbox is closed, so that callers get the messages in flight.
            self._drained = True
            self._box.signal.set()

    async def close(self) -> None:
        """Unsubscribe, and drop the buffered messages."""
        self._closed = True
        self._note_closed()
        self._ready.clear()
        if self._box is not None:
            self._box.signal.set()
            await self._api.transport.close_mailbox(self._box)
