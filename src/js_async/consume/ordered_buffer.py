"""The messages of a stream in order, without gaps, across disconnects and server failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from js_async.api import consumer_admin
from js_async.api.api import Api
from js_async.consume.buffer import MessageBuffer
from js_async.consume.item_source import ItemSource, NothingInTime
from js_async.consume.message import Message, frame_of
from js_async.consume.ordered_consumer import OrderedConsumer
from js_async.consume.ordered_probes import OrderedProbes
from js_async.runtime.concurrency import Signal
from twinstream.core.arguments.check_arguments import check_whole
from twinstream.core.consume.batch import Batch, BatchEnd
from twinstream.core.consume.fetch import frame_size
from twinstream.core.consume.metadata import Position, Positions
from twinstream.core.consume.ordered import Mark, OrderedRead
from twinstream.core.consume.ordered_attempts import ConsumerAttempts
from twinstream.core.consume.pull_request import PullLimits, Wait, fetch_limits
from twinstream.core.consume.reports import PullReport, PullWarning
from twinstream.core.deadline import Deadline, Seconds, is_cut_short, monotonic
from twinstream.core.on_failure import AsyncOnFailure
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.status import Status
from twinstream.core.wire.subjects import check_name
from twinstream.errors import (
    BadArgument,
    ConnectionLost,
    ConsumerDeleted,
    ConsumerExists,
    IterationEnded,
    NoResponders,
    PullError,
    RequestTimeout,
    StreamNotFound,
    TwinstreamError,
)
from twinstream.errors.transient import FAILED_REQUEST
from twinstream.models import ConsumerConfig, ConsumerInfo, ReplayPolicy, StreamInfo

if TYPE_CHECKING:
    from twinstream.core.payloads.payloads import Payloads

__all__ = ["OrderedBuffer"]


class OrderedBuffer(ItemSource[Message[Any]]):
    """The messages of a stream in order. A lost consumer is replaced by the next one.

    The buffer of the current consumer has the messages. This object checks their order.
    """

    def __init__(
        self,
        api: Api,
        stream: str,
        config: ConsumerConfig,
        limits: PullLimits,
        on_report: Callable[[PullReport], None] | None,
        name_prefix: str | None = None,
        max_reset_attempts: int | None = None,
    ) -> None:
        super().__init__(stream)
        if name_prefix is not None:
            check_name(name_prefix, "name_prefix")
        if max_reset_attempts is not None:
            check_whole(max_reset_attempts, "max_reset_attempts")
        # With this policy, the server sends the messages at their original pace. While it waits to
        # send the next one, it sends no heartbeats.
        pause = None
        if config.replay_policy == ReplayPolicy.ORIGINAL:
            pause = 2 * limits.heartbeat
            limits = evolve(limits, heartbeat=float("inf"))
        self._is_paced: Final = pause is not None
        self._api: Final = api
        self._stream: Final = stream
        self._attempts: Final = ConsumerAttempts(max_reset_attempts)
        token = api.transport.tokens.name()
        prefix = token if name_prefix is None else f"{name_prefix}_{token}"
        self._read: Final = OrderedRead(config, prefix, by_bytes=limits.max_bytes is not None)
        self._consumer: Final = OrderedConsumer(api, stream, self._read, limits, on_report)
        self._probes: Final = OrderedProbes(api.transport, self._read, limits, pause)
        self._positions: Final = Positions()
        self._ended: Final = Signal()
        self._still_wanted: int | None = limits.stop_after
        # A message that was taken from the consumer and is the next one for the caller, for example
        # because it exceeds the remaining bytes of a fetch.
        self._unread: Message[Any] | None = None
        self._draining = self._closed = False
        self.stops_at_new_stream = False
        """Whether `take` returns None once after the stream was re-created.

        The owner then need not wait for the first message of the new stream.
        """
        self.resets = 0
        """The number of times that a lost consumer was replaced."""

    def set_payloads(self, payloads: Payloads[Any] | None) -> None:
        """Decode the messages as a typed stream does."""
        self._consumer.payloads = payloads

    @property
    def position(self) -> int:
        """The stream sequence of the last message taken."""
        return self._read.position

    @property
    def scanned(self) -> int:
        """The stream sequence up to which all matching messages were taken."""
        return self._read.scanned

    @property
    def is_current(self) -> bool:
        """Whether the caller took all matching messages that were stored when the read began."""
        return self._read.is_current

    @property
    def last_at_start(self) -> int:
        """The last sequence of the stream when the read began; 0 before that."""
        return self._read.last_at_start

    @property
    def is_ended(self) -> bool:
        """Whether the read has ended."""
        return self._closed or self._still_wanted == 0 or (self._draining and not self._is_filled())

    @property
    def buffered(self) -> int:
        """The number of messages that have arrived and were not taken."""
        messages = self._consumer.messages
        return (self._unread is not None) + (messages.buffered if messages is not None else 0)

    @property
    def name(self) -> str | None:
        """The name of the current consumer, or None if there is none."""
        return self._read.name if self._consumer.messages is not None else None

    async def info(self, timeout: Seconds | None) -> ConsumerInfo:
        """Request the configuration and state of the current consumer."""
        name = self.name
        if name is None:
            raise BadArgument(
                f"{self._stream}: the ordered read has no consumer now, request a message first"
            )
        deadline = self._api.deadline(timeout)
        return await consumer_admin.info(self._api, self._stream, name, deadline)

    async def open(self, deadline: Deadline) -> None:
        """Create the first consumer now, unless it exists.

        A read of new messages then includes all messages that are stored from now on.
        """
        has_turn = await self.acquire(deadline)
        try:
            if self._consumer.messages is None:
                await self._replace_consumer(deadline)
        finally:
            self.turn.release(has_turn)

    async def enter(self) -> None:
        """Begin a read of new messages, so that it includes those stored from now on.

        Any other read begins with its first message.
        """
        if self._read.begins_now:
            async with AsyncOnFailure(self.close):
                await self.open(self._api.deadline())

    async def pull_ahead(self, deadline: Deadline) -> None:
        """Let the server deliver messages from now on, although no caller waits for them.

        Otherwise, a message that is removed before the next call, for example because its subject
        was overwritten, is never delivered. Without a consumer, this does nothing.
        """
        messages = self._consumer.messages
        if messages is not None and not self._is_paced:
            try:
                await messages.pull_ahead(deadline)
            except FAILED_REQUEST:
                # The next call that takes a message pulls again, and finds the reason.
                pass

    async def renew(self, reason: str) -> None:
        """Leave a consumer that does not respond. The next consumer delivers the missing messages.

        `reason` is for the report.
        """
        has_turn = await self.acquire(self._api.deadline())
        try:
            await self._reset(reason)
        finally:
            self.turn.release(has_turn)

    async def leave_earlier_stream(self, stream: StreamInfo) -> bool:
        """Leave the consumer if the stream was re-created since the consumer's creation.

        Return whether it was. The next consumer then reads the new stream.
        """
        another = self._read.is_another(stream)
        if another:
            await self.renew("the stream was deleted and created again")
        return another

    # ---- iterating

    async def _take_next(self, deadline: Deadline) -> Message[Any] | None:
        return self._take_buffered() or await self._take_in_order(deadline)

    def _take_buffered(self) -> Message[Any] | None:
        """Return the next message if it is buffered and in order.

        In all other cases, return None. `_take_in_order` then waits or replaces the consumer.
        """
        messages, read = self._consumer.messages, self._read
        # The read is over, has no current consumer, or must first return a message it put back.
        if (
            messages is None
            or self._unread is not None
            or self._still_wanted == 0
            or self._closed
            or read.is_outdated
        ):
            return None
        message = messages.ready.take_nowait()
        if message is None:
            return None
        metadata = message.metadata
        if not read.is_in_order(metadata):
            self._unread = message
        elif read.take(metadata):
            if self._still_wanted is not None:
                self._still_wanted -= 1
            return message
        return None

    def take_run(self, use: Callable[[Frame, Position], object]) -> None:
        """Take the buffered messages up to the first gap, and pass them to `use` one by one.

        `use` must store each message at once. If the caller is interrupted, `use` may get the last
        messages again later. Does nothing if `_take_in_order` must check the messages one by one.
        """
        messages, read = self._consumer.messages, self._read
        if messages is None or self._closed:
            return
        # A run is not counted against a limit, and must not overtake a message that was put back.
        has_limit, has_unread = self._still_wanted is not None, self._unread is not None
        if has_limit or has_unread or not read.takes_runs:
            return
        next_seq, at = read.next_consumer_seq, read.position
        parse = self._positions.read
        after_gap = None
        # The fast path of `take_nowait` without a call for each message.
        ready, reserved = messages.ready.messages, messages.ready.reserved
        for _ in range(len(ready) - reserved):
            try:
                message = ready.popleft()
            except IndexError:
                # Another thread closes the buffer.
                break
            frame = frame_of(message)
            position = parse(frame[1])
            if position is None or position[1] != next_seq:
                # There is a gap. The next consumer delivers the messages after it again.
                after_gap = message
                break
            next_seq += 1
            if position[0] > at:
                at = position[0]
                use(frame, position)
        read.take_run(next_seq - 1, at)
        self._unread = after_gap

    def _is_filled(self) -> bool:
        return self.buffered > 0

    async def _take_in_order(
        self, deadline: Deadline, fits: Callable[[Message[Any]], bool] | None = None
    ) -> Message[Any] | None:
        """Return the next message, or None.

        None means that the read has ended, that the pending check has ended, or that the
        next message does not satisfy `fits`. A message that does not satisfy `fits` stays buffered.
        With `stops_at_new_stream`, None may also mean that the stream was re-created.
        """
        read, consumer = self._read, self._consumer
        while not (self._closed or self._still_wanted == 0):
            messages = consumer.messages
            if messages is None or read.is_outdated:
                if self._draining:
                    break
                recreations = read.recreations
                await self._replace_consumer(deadline)
                if self.stops_at_new_stream and read.recreations != recreations:
                    return None
                continue
            if self._draining:
                await messages.drain()
            try:
                message, self._unread = self._unread, None
                if message is None and self._probes.are_needed:
                    message = await self._probes.take(messages, deadline)
                elif message is None:
                    message = await messages.take(deadline)
            except (ConsumerDeleted, ConnectionLost, NoResponders) as error:
                await self._reset_after_gap(messages, str(error))
                continue
            if message is None:
                if self._probes.is_checked:
                    return None
                # The consumer's iterator is closed: another caller is leaving the consumer, or was
                # interrupted while leaving it.
                await consumer.leave()
                continue
            metadata = message.metadata
            if not read.is_in_order(metadata):
                gap = f"a gap after stream sequence {self.position}"
                await self._reset_after_gap(messages, gap)
            elif fits is not None and read.wants(metadata) and not fits(message):
                self._unread = message
                return None
            elif read.take(metadata):
                if self._still_wanted is not None:
                    self._still_wanted -= 1
                return message
            elif deadline.expired():
                raise NothingInTime("no message in time")
        # Another caller may have closed the read while this call created a consumer. Delete that
        # consumer.
        await consumer.end()
        return None

    # ---- fetching

    async def fetch(
        self,
        max_messages: int | None = None,
        *,
        timeout: Seconds = 5.0,
        max_bytes: int | None = None,
        wait: Wait = "full",
    ) -> Batch[Message[Any]]:
        """Fetch a batch of messages. `take` and `fetch` share a buffer."""
        limits = fetch_limits(max_messages, max_bytes, timeout, wait)
        ends = self._api.deadline() if wait == "none" else Deadline.after(timeout)
        has_turn, begin = False, None
        try:
            has_turn = await self.acquire(ends)
            begin = self._read.mark(), self._still_wanted
            return await self._fetch(limits, ends, wait)
        except BaseException:
            # The call failed or was interrupted. The next call returns the same messages again.
            if begin is not None:
                self._go_back(*begin)
            raise
        finally:
            if has_turn:
                self._probes.end_check()
            self.turn.release(has_turn)

    def _go_back(self, mark: Mark, left: int | None) -> None:
        if self._read.mark() != mark:
            self._read.go_back(mark)
            self._still_wanted = left

    async def _fetch(
        self, limits: PullLimits, deadline: Deadline, wait: Wait
    ) -> Batch[Message[Any]]:
        """Take messages in order until `limits` are reached or `wait` ends the fetch.

        A message that exceeds the remaining bytes stays buffered. After the first message, an error
        does not raise: it ends the batch, which names it.
        """
        messages: list[Message[Any]] = []
        room, ends = limits.max_bytes, deadline

        def fits(message: Message[Any]) -> bool:
            return room is None or frame_size(frame_of(message)) <= room

        while len(messages) < limits.max_messages:
            if wait == "none" or (wait == "first" and messages):
                # `_take_in_order` waits until a message arrives or the check has ended. The server
                # answers the probes even if no further message arrives, so the default timeout
                # applies.
                deadline = self._api.deadline()
                if wait == "first":
                    deadline = deadline.earlier(ends.at)
                self._probes.begin_check()
            try:
                message = await self._take_in_order(deadline, fits if room is not None else None)
            except RequestTimeout:
                if not messages and self._consumer.messages is None:
                    raise
                return Batch(messages, BatchEnd.EXPIRED)
            except TwinstreamError as error:
                if not messages:
                    raise
                return Batch(messages, BatchEnd.INTERRUPTED, str(error))
            if message is None:
                return self._ended_batch(messages, limits)
            messages.append(message)
            if room is not None:
                room -= frame_size(frame_of(message))
        return Batch(messages, BatchEnd.FILLED)

    def _ended_batch(self, messages: list[Message[Any]], limits: PullLimits) -> Batch[Message[Any]]:
        """Return the batch of a fetch that gets no further message.

        If the batch would be empty, raises `PullError` if the next message exceeds `max_bytes`, and
        `IterationEnded` if the read has ended.
        """
        if self._unread is not None:
            if not messages:
                raise PullError(
                    f"the next message is bigger than the {limits.max_bytes} bytes requested:"
                    " raise max_bytes"
                )
            return Batch(messages, BatchEnd.BYTES_FILLED)
        if not self.is_ended:
            return Batch(messages, BatchEnd.NO_MESSAGES)
        if not messages:
            raise IterationEnded("the ordered read has ended: it was drained or closed")
        return Batch(messages, BatchEnd.NO_MESSAGES, "the ordered read has ended")

    def _note_heartbeat(self, heartbeat: Status, buffered: int) -> None:
        """Process an idle heartbeat. `buffered` is the number of messages in the iterator's buffer.

        All of these messages arrived before the heartbeat.
        """
        messages = self._consumer.messages
        self._probes.note_heartbeat(heartbeat)
        wrong = self._read.note_heartbeat(heartbeat, buffered + (self._unread is not None))
        if wrong is not None and messages is not None:
            messages.note_break(wrong)

    # ---- replacing consumers

    async def _replace_consumer(self, deadline: Deadline) -> None:
        """Leave the current consumer and create the next one.

        `StreamNotFound` and `BadArgument` are raised at once. The first attempt of a read also
        raises other errors, except a lost connection. Later attempts are repeated after a pause,
        until `max_reset_attempts` in a row have failed.
        """
        await self._leave()
        attempts = self._attempts
        if attempts.needs_rest:
            await self._wait(ConnectionLost("two consumers in a row were lost soon"), deadline)
            attempts.rested()
        while not (self._closed or self._draining):
            try:
                await self._api.transport.ready(deadline)
                within = self._api.deadline().earlier(deadline.at)
                messages = await self._consumer.create(within, self._still_wanted)
            except (StreamNotFound, BadArgument):
                raise
            except ConsumerExists:
                continue
            except FAILED_REQUEST as error:
                if self._is_explained(error, deadline):
                    self._check_time(deadline)
                    continue
                if attempts.failed(error):
                    raise
                await self._wait(error, deadline)
                continue
            messages.on_heartbeat = self._note_heartbeat
            attempts.created(self.position, monotonic())
            return

    def _is_explained(self, error: TwinstreamError, deadline: Deadline) -> bool:
        """Return whether an attempt had too little time, and an earlier one shows the reason."""
        return (
            self._attempts.trouble is not None
            and self._api.transport.is_connected
            and is_cut_short(error, deadline)
        )

    def _check_time(self, deadline: Deadline) -> None:
        """Raise `RequestTimeout` at the deadline. Its cause is the last failure of an attempt."""
        if deadline.expired() and not (self._closed or self._draining):
            if self._attempts.trouble is None:
                raise NothingInTime("no message in time")
            raise RequestTimeout("no message in time") from self._attempts.trouble

    async def _wait(self, error: TwinstreamError, deadline: Deadline) -> None:
        self._consumer.report(PullWarning(f"no consumer for the ordered read yet: {error}"))
        pause = self._attempts.pause(error)
        await self._ended.sleep(pause.earlier(deadline.at))
        # Check before the next attempt, which would have no time.
        self._check_time(deadline)

    async def _reset_after_gap(self, messages: MessageBuffer, reason: str) -> None:
        """Leave the consumer. Raises `SingleAnswers` if that is why messages are missing."""
        try:
            # The first response arrives in any case.
            if self._read.next_consumer_seq > 1:
                await messages.check_several()
        finally:
            await self._reset(reason)

    async def _reset(self, reason: str) -> None:
        if not self._draining:
            self.resets += 1
            report = PullWarning(f"the ordered read starts a new consumer: {reason}")
            self._consumer.report(report)
            self._attempts.lost(self.position, monotonic())
        await self._leave()

    async def _leave(self) -> None:
        """Leave the current consumer. The next consumer delivers the buffered messages again."""
        self._unread = None
        self._probes.restart()
        await self._consumer.leave()

    # ---- draining and closing

    async def drain(self) -> None:
        """Stop pulling. The read ends after the buffered messages; `close` ends it at once."""
        self._draining = True
        self._ended.set()
        messages = self._consumer.messages
        if messages is not None:
            await messages.drain()

    async def close(self) -> None:
        """End the read and delete its consumer."""
        self._closed = True
        self._ended.set()
        await self._consumer.end()
