"""The buffer of a consumer's messages, which it pulls from the server (ADR-37)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from js_async.consume.ack_progress import AckProgress
from js_async.consume.consumer_recovery import ConsumerRecovery
from js_async.consume.item_source import ItemSource, NothingInTime
from js_async.consume.message import (
    Message,
    TypedMessage,
    frame_of,
    late_at,
    message_of,
    messages_of,
)
from js_async.consume.pull_driver import PullDriver
from js_async.consume.pull_subscription import PullChannel
from js_async.consume.ready_messages import ReadyMessages
from js_async.runtime.concurrency import Forks, shielded
from twinstream.core.consume.fetch import frame_size
from twinstream.core.consume.pull_engine import PullEngine
from twinstream.core.consume.pull_request import PullLimits
from twinstream.core.consume.reports import PullReport, PullWarning
from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.status import Kind, Status, is_status, read_status
from twinstream.errors import TwinstreamError

if TYPE_CHECKING:
    from js_async.runtime.concurrency import Wait, Work
    from twinstream.core.observe.gauge import Gauge

__all__ = ["MessageBuffer"]

_GAVE_UP: Final = (
    "no message was taken for more than 5 x ack_wait: buffered messages were left for redelivery,"
    " pulling resumes now"
)
_NO_FRAME: Final[Frame] = (b"", b"", 0, b"")


class MessageBuffer(ItemSource[Message[Any]]):
    """The messages of one consumer: the mailbox, the pull engine and the progress reports.

    `take` returns a message, and pulls more if the engine requests it. `ready` contains the
    messages that have been moved out of the mailbox. Its `take_nowait` is the fast path for those
    that callers may take before the engine is updated.
    """

    # A default for `__del__`, which also runs if `__init__` was interrupted.
    _engine: PullEngine | None = None

    def __init__(
        self,
        recovery: ConsumerRecovery,
        limits: PullLimits,
        ack_wait: float | None,
        on_report: Callable[[PullReport], None] | None,
        give_back: bool,
        fragile: bool = False,
    ) -> None:
        self._recovery: Final = recovery
        self._transport: Final = recovery.api.transport
        self._driver: Final = PullDriver(recovery, limits, on_report, fragile)
        self._give_back: Final = give_back
        super().__init__(f"{recovery.stream}/{recovery.name}")
        self.ready: Final = ReadyMessages(self._transport, ack_wait, recovery.api.timeout)
        """The messages that callers may take."""
        self._channel: PullChannel | None = None
        self._forks: Final = Forks.count
        self._draining = self._drained = False
        self._closed = self._left = False
        self.progress: Final = AckProgress(self._transport, self.ready)
        """The progress reports of messages that are buffered or being handled."""
        self.on_heartbeat: Callable[[Status, int], None] | None = None
        """A callback for idle heartbeats, or None.

        Its second argument is the number of buffered messages that arrived before the heartbeat.
        """

        if self._transport.observers is not None:
            self._transport.observers.measure(self)

    def ends_by(self, end: Work, ended: Wait) -> None:
        """Let `Connection.drain` call these two. See `Drainables.add`."""
        self._transport.drainables.add(self, end, ended)

    def gauges(self) -> Iterable[Gauge]:
        """Return the gauges of the consumer, for observers."""
        from twinstream.core.observe.gauge import Gauge

        where = self._recovery.stream, self._recovery.name
        yield Gauge("buffered_messages", self.buffered, *where)
        yield Gauge("pending_acks", self.progress.pending, *where)

    @property
    def is_ended(self) -> bool:
        """Whether `take` returns no further message."""
        if self._closed:
            return True
        if self._drained or self._failure() is not None:
            return not self.buffered
        engine = self._engine
        return engine is not None and engine.still_wanted == self.ready.unsettled(engine)

    @property
    def buffered(self) -> int:
        """The number of messages that have arrived and were not taken."""
        frames = tuple(self._channel.box.frames) if self._channel else ()
        return len(self.ready.messages) + sum(not is_status(frame) for frame in frames)

    @property
    def outstanding(self) -> int:
        """The number of messages that were requested and have not arrived."""
        if self._engine is None or self.progress.gave_up:
            return 0
        return self._engine.requests.outstanding - self.ready.is_passed

    def change_ack_wait(self, ack_wait: float) -> None:
        """Set the `ack_wait` of an updated consumer, in seconds.

        Does nothing if the previous `ack_wait` is not known.
        """
        if self.ready.ack_wait is not None and ack_wait != self.ready.ack_wait:
            self.ready.ack_wait = ack_wait
            self.progress.report_soon()

    def stop_pulling(self) -> None:
        """Send no more pulls. Callers still get the messages that are buffered or in flight."""
        if self._engine is not None:
            self._engine.stop()

    def note_break(self, reason: str) -> None:
        """End a `fragile` buffer with `ConnectionLost` after the buffered messages.

        Does nothing to other buffers.
        """
        self._driver.note_break(reason)

    async def check_several(self) -> None:
        """Raise `SingleAnswers` if only the first response to each pull arrives.

        Only for the only user of a consumer that is left afterwards, because probes take messages.
        """
        channel, engine = self._channel, self._engine
        if channel is not None and engine is not None:
            self.ready.settle(engine)
            if engine.is_lone and self._transport.is_connected:
                from js_async.api.single_answers import check_several

                await check_several(self._recovery.api, channel.box.asks)

    async def probe(self, limits: PullLimits) -> bytes:
        """Send a pull request that the engine does not count. Return the token of the request."""
        channel, engine = await self.open()
        return await self._driver.pull_uncounted(channel, engine, limits)

    async def pull_ahead(self, deadline: Deadline) -> None:
        """Send the pull requests that are due, without waiting for a message.

        The server then delivers messages although no caller waits for them.
        """
        has_turn = await self.acquire(deadline)
        try:
            channel, engine = await self.open()
            is_over = self._closed or self._is_stale(channel)
            if self._transport.is_connected and not is_over:
                self.ready.settle(engine)
                self._sort(channel, engine)
                await self._driver.carry_out(channel, engine, False)
        finally:
            self.turn.release(has_turn)

    # ---- lifecycle

    async def drain(self) -> None:
        """Stop pulling. `take` still returns the buffered messages; `close` ends it at once."""
        if self._draining:
            return
        self._draining = True
        if self._engine is not None:
            self._engine.stop()
        closed: PullChannel | None = None
        try:
            # A caller that began earlier may replace the channel meanwhile.
            while (channel := self._channel) is not closed and channel is not None:
                closed = channel
                await self._close_mailbox(channel)
        finally:
            # Set this after the mailbox is closed, so that callers get the messages in flight.
            self._drained = True
            if self._channel is not None:
                self._channel.box.signal.set()

    async def close(self) -> None:
        """End the buffer, and return its messages to the server with a NAK."""
        if self._left:
            return
        self._closed = self._left = True
        self._note_closed()
        is_done = False
        try:
            self.progress.end()
            if self._channel is not None:
                # Waiting callers wake up when all messages in flight have arrived.
                await shielded(partial(self._leave, self._channel))
            is_done = True
        finally:
            # If the call was interrupted, the next one must do the remaining work.
            self._left = is_done

    def __del__(self) -> None:
        """Warn if the iterator was dropped, not closed, while messages could still arrive."""
        engine = self._engine
        if engine is None or self._closed or self._transport.is_closed:
            return
        self.progress.abandon()
        is_over = self._drained or self._failure() is not None or engine.still_wanted == 0
        # Do not warn in a forked child: the parent process may still use its buffer.
        if self._give_back and not is_over and self._forks == Forks.count:
            warnings.warn(
                f"{self._recovery.name}: an iterator over its messages was not closed; messages it"
                " requested are redelivered after ack_wait. Use it in a `with` block, or close it",
                ResourceWarning,
                stacklevel=2,
            )

    async def _leave(self, channel: PullChannel) -> None:
        # End the pull requests first. Otherwise the server could redeliver a returned message to
        # one of these requests.
        try:
            await self._close_mailbox(channel)
        finally:
            # Return the messages even if the call was interrupted, because no caller can take them
            # any more.
            await self._return_rest(channel)

    async def _close_mailbox(self, channel: PullChannel) -> None:
        await channel.close()
        await self.progress.settled()

    async def _return_rest(self, channel: PullChannel) -> None:
        """Send a NAK to the server for each message that no caller has taken."""
        frames = channel.box.take_all()
        # `take_all` cleared the signal. Set it again, because a caller may be about to wait for it.
        channel.box.signal.set()
        if self._driver.limits.may_pin:
            # No caller gets these messages, but their headers may contain the client's pin.
            for frame in frames:
                self._driver.note_pin(frame, quietly=True)
        fresh = self.ready.delivery(channel.box)
        rest = messages_of(frames, self.progress.deliveries(frames, fresh))
        rest += self.ready.take_rest()
        if self._give_back and self._transport.is_connected:
            now = monotonic()
            # Skip messages past ack_wait: the server may have redelivered them to another client.
            await channel.give_back([frame_of(each) for each in rest if now < late_at(each)])

    async def open(self) -> tuple[PullChannel, PullEngine]:
        """Subscribe, unless this was done before. Return the mailbox and the engine.

        If another caller closes the buffer meanwhile, the mailbox is closed, too.
        """
        if self._channel is None or self._engine is None:
            self._channel = await self._recovery.channels.take()
            self._channel.box.take_all()
            now = monotonic()
            self._engine = self._driver.begin(self._channel, now)
            if self._draining:
                # `drain` was called before the engine existed.
                self._engine.stop()
            self.ready.taken_at = now
            if self._closed:
                # The call that closed the buffer may have found no mailbox.
                await self._leave(self._channel)
            elif self._give_back:
                self.progress.start(self._channel)
        return self._channel, self._engine

    def _is_stale(self, channel: PullChannel) -> bool:
        """Return whether the buffer must no longer use this channel.

        Either another caller has replaced it, or `AckProgress` has closed its mailbox.
        """
        return channel is not self._channel or self._has_given_up()

    def _has_given_up(self) -> bool:
        """Return whether `AckProgress` closed the mailbox although the buffer is still in use."""
        return self.progress.gave_up and not (self._draining or self._closed)

    async def _reopen_channel(self, channel: PullChannel, engine: PullEngine) -> PullChannel:
        """Return the channel to use. Open a new one if `AckProgress` closed the current mailbox."""
        if channel is self._channel:
            fresh = await self._recovery.channels.take()
            if channel is self._channel and self._has_given_up():
                self._switch_channel(fresh, channel, engine)
                self._driver.report(PullWarning(_GAVE_UP))
            else:
                # While this call waited, another caller replaced the channel or closed the buffer.
                self._recovery.channels.put(fresh)
        return self._channel or channel

    def _switch_channel(self, fresh: PullChannel, left: PullChannel, engine: PullEngine) -> None:
        # Buffer the messages of the old mailbox: some may still be within ack_wait.
        self._sort(left, engine)
        fresh.box.take_all()
        # Closing the old mailbox has ended all requests.
        engine.restored(monotonic())
        self._channel = fresh
        self.progress.resume(fresh)
        # Wake up any caller that still waits for the old mailbox.
        left.box.signal.set()

    # ---- taking

    def take_nowait(self) -> Message[Any] | None:
        """Return a buffered message that may be taken before the engine is updated, or None."""
        return self.ready.take_nowait()

    async def _take_next(self, deadline: Deadline) -> Message[Any] | None:
        """Return the next message, or None at the end. Sends pull requests as they become due.

        Messages that stayed in the buffer longer than ack_wait are skipped, because the server may
        have redelivered them. Raises `NothingInTime` at the deadline.
        """
        ready, is_late = self.ready, False
        ready.reserve_all()
        channel, engine = self._channel, self._engine
        if channel is None or engine is None:
            channel, engine = await self.open()
        while not self._closed:
            ready.settle(engine)
            if engine.still_wanted == 0:
                break
            if self._is_stale(channel):
                channel = await self._reopen_channel(channel, engine)
                continue
            if ready.messages:
                now = monotonic()
                if engine.due(now):
                    await self._driver.carry_out(channel, engine, ready.has_waited)
                    if self._closed:
                        break
                message = ready.hand_over(engine, now)
                if message is None:
                    continue
                if now >= late_at(message):
                    ready.note_late()
                    continue
                engine.note_wanted(1)
                ready.reserve_rest(engine)
                return message
            if HOOKS:
                reached("messages: before clear", self)
            # Clear the signal before reading the mailbox, so that no arrival is missed.
            channel.box.signal.clear()
            if self._closed or self._is_stale(channel):
                # `close` or `AckProgress` may have set the signal just before this code cleared it.
                continue
            # Read this before the mailbox: `drain` sets it after the last message has arrived.
            is_drained = self._drained
            self._sort(channel, engine)
            if ready.messages:
                continue
            if HOOKS:
                reached("source: found empty", self)
            await self._driver.carry_out(channel, engine, ready.has_waited)
            self._check(channel, is_late)
            if is_drained:
                break
            # Ask before the wait, to save time between the arrival of a message and its return.
            may_skip_buffer = engine.may_pass()
            is_set = await self._wait(channel, deadline.earlier(engine.wake_at()))
            if may_skip_buffer:
                message = self._take_directly(channel, engine)
                if message is not None:
                    return message
            is_late = deadline.expired()
            if is_late and not is_set:
                raise NothingInTime("no message in time")
        if self._closed:
            # Another caller closed the buffer. That call may have missed frames that this call
            # was moving into the buffer, or a mailbox that this call has opened since.
            await self._leave(channel)
        return None

    async def _wait(self, channel: PullChannel, wake_at: Deadline) -> bool:
        """Wait for the mailbox. Return whether anything has arrived."""
        if HOOKS:
            reached("messages: before wait", self)
        self.ready.has_waited = True
        self.progress.waiting.append(None)
        try:
            return await self._transport.wait(channel.box.signal, wake_at)
        finally:
            self.progress.waiting.pop()
            self.ready.taken_at = monotonic()

    def _failure(self) -> TwinstreamError | None:
        """Return the error with which the buffer failed, or None."""
        box = self._channel.box if self._channel is not None else None
        return self._driver.error or (box.error if box is not None else None)

    def _check(self, channel: PullChannel, is_late: bool) -> None:
        """Raise the error that ended the buffer, if any; `NothingInTime` if the caller is late."""
        if self._driver.error is not None:
            raise self._driver.error
        channel.box.check()
        if not self._drained and self._transport.is_closed:
            raise self._transport.closed_error()
        if is_late and not self._drained:
            # Only statuses have arrived. A server that sends them without a pause must not delay
            # the timeout.
            raise NothingInTime("no message in time")

    def _take_directly(self, channel: PullChannel, engine: PullEngine) -> Message[Any] | None:
        """Return the message if exactly one frame has arrived and it is a message, else None.

        Also return None if the message is late, or if the connection was lost or restored. The
        returned message is reported to the engine later: `settle` does that before the next wait.
        This saves half of the work between the arrival of a message and the return to the caller.
        """
        box, now = channel.box, monotonic()
        delivery = self.ready.delivery(box)
        changed = not self._driver.has_same_connection()
        # Several frames, and all that needs a report to the engine first, take the usual path.
        if len(box.frames) != 1 or self._closed or changed or now >= delivery.late_at:
            return None
        try:
            frame = box.frames.popleft()
        except IndexError:
            return None
        if frame[2] and is_status(frame):
            box.frames.appendleft(frame)
            return None
        self.ready.note_passed(frame, now)
        self._driver.doubt.clear()
        engine.note_wanted(1)
        return message_of(frame, delivery)

    def _sort(self, channel: PullChannel, engine: PullEngine) -> None:
        """Move arrived messages into the buffer, and report them to the engine.

        Also report arrived statuses to the engine, and whether the connection was lost or restored.
        """
        driver, ready, frames = self._driver, self.ready, channel.box.frames
        driver.note_connection(engine)
        engine.note_response(channel.box.heard_at)
        if not frames:
            return
        # Fast path for pulls without a byte limit and without a priority group: their messages need
        # no inspection.
        limits = driver.limits
        plain = limits.max_bytes is None and limits.priority is None
        make: type[Message[Any]] = Message if ready.payloads is None else TypedMessage
        put, take, sizes = ready.messages.append, frames.popleft, ready.sizes
        count = size = 0
        frame = _NO_FRAME
        for delivery in self.progress.deliveries(frames, ready.delivery(channel.box)):
            try:
                frame = take()
            except IndexError:
                # Another caller closes the buffer, and returns the messages to the server.
                break
            if frame[2] and is_status(frame):
                engine.arrived(count, size)
                count = size = 0
                status = read_status(frame)
                if status.kind is Kind.HEARTBEAT and self.on_heartbeat is not None:
                    self.on_heartbeat(status, len(ready.messages))
                driver.note_status(engine, status)
                continue
            if not plain:
                driver.note_pin(frame)
                if limits.max_bytes is not None:
                    sizes.append(frame_size(frame, pinned=limits.may_pin))
                    size += sizes[-1]
            put(make(frame, delivery))
            count += 1
        if count:
            engine.arrived(count, size)
            if limits.max_bytes is None:
                # Measure only the last message. To measure each one would slow down the taking of
                # messages by 10 %.
                engine.note_size(len(frame[3]))
            driver.doubt.clear()
