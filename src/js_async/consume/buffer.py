"""The buffer of a consumer's messages, which it pulls from the server (ADR-37)."""

from __future__ import annotations

import sys
import warnings
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from js_async.client.transport import Box
from js_async.consume.ack_progress import AckProgress
from js_async.consume.consumer_recovery import ConsumerRecovery
from js_async.consume.delivery import AGE_SHARE, Delivery
from js_async.consume.item_source import ItemSource
from js_async.consume.message import Message, messages_of
from js_async.consume.pull_driver import PullDriver
from js_async.consume.pull_subscription import PullChannel
from js_async.runtime.concurrency import Forks, shielded
from twinstream.core.consume.fetch import frame_size
from twinstream.core.consume.pull_engine import PullEngine
from twinstream.core.consume.pull_request import PullLimits
from twinstream.core.consume.reports import PullReport, PullWarning
from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.status import Kind, Status, is_status, read_status
from twinstream.errors import RequestTimeout, TwinstreamError
from twinstream.models.codec.records import evolve

__all__ = ["MessageBuffer"]

_GAVE_UP: Final = (
    "no message was taken for more than 5 x ack_wait: buffered messages were left for redelivery,"
    " pulling resumes now"
)
_ALL: Final = sys.maxsize
_NO_FRAME: Final[Frame] = (b"", b"", 0, b"")


class MessageBuffer(ItemSource[Message]):
    """The messages of one consumer: the mailbox, the pull engine and the progress reports.

    `take` returns a message, and pulls more if the engine requests it. `take_nowait` is the fast
    path for the messages that callers may take before the engine is updated.
    """

    # A default for `__del__`, which also runs if `__init__` was interrupted.
    _engine: PullEngine | None = None

    def __init__(
        self,
        missing: ConsumerRecovery,
        limits: PullLimits,
        ack_wait: float | None,
        on_report: Callable[[PullReport], None] | None,
        give_back: bool,
        fragile: bool = False,
    ) -> None:
        self._missing: Final = missing
        self._transport: Final = missing.api.transport
        self.ack_wait = ack_wait
        """The `ack_wait` of the consumer in seconds, or None if it is unknown or not used."""
        self._timeout: Final = missing.api.timeout
        self._decisions: Final = PullDriver(missing, limits, on_report, fragile)
        self._give_back: Final = give_back
        super().__init__(f"{missing.stream}/{missing.name}")
        self.ready: Final[deque[Message]] = deque()
        """The messages that callers may take, oldest first."""
        # The sizes in bytes of the messages in `ready`; empty if no byte limit is set.
        self._sizes: Final[deque[int]] = deque()
        self.reserved = _ALL
        """Callers may take messages as `take_nowait` does while `ready` contains more than this."""
        # Messages beyond `stop_after`. `close` returns them to the server.
        self._surplus: Final[list[Message]] = []
        self._channel: PullChannel | None = None
        self._epoch = 0
        self._forks: Final = Forks.count
        # The message that `_pass` returned to a caller and `_settle` has not yet reported to the
        # engine, or None.
        self._passed: Frame | None = None
        self._waited = False
        self._draining = self._drained = False
        self._closed = self._left = False
        self.progress: Final = AckProgress(self._transport, self.ready, ack_wait, self._timeout)
        """The progress reports of messages that are buffered or being handled."""
        # One entry for each late message that was skipped. Several threads may add one, and
        # appending to a list is atomic.
        self._late: Final[list[None]] = []
        # One entry for each late message that `take_nowait` skipped and that `_settle` has not yet
        # reported to the engine.
        self._late_unsettled: Final[deque[None]] = deque()
        self._probe_token: bytes | None = None
        self.on_heartbeat: Callable[[Status, int], None] | None = None
        """A callback for idle heartbeats, or None.

        Its second argument is the number of buffered messages that arrived before the heartbeat.
        """

    @property
    def is_ended(self) -> bool:
        """Whether `take` returns no further message."""
        if self._closed:
            return True
        if self._drained or self._failure() is not None:
            return not self.buffered
        engine = self._engine
        return engine is not None and engine.still_wanted == self._unsettled(engine)

    @property
    def late(self) -> int:
        """The number of messages that were skipped because they were late (`Message.is_late`)."""
        return len(self._late)

    @property
    def buffered(self) -> int:
        """The number of messages that have arrived and were not taken."""
        return len(self.ready) + (len(self._channel.box.frames) if self._channel else 0)

    @property
    def outstanding(self) -> int:
        """The number of messages that were requested and have not arrived."""
        if self._engine is None or self.progress.gave_up:
            return 0
        return self._engine.requests.outstanding - (self._passed is not None)

    def set_ack_wait(self, ack_wait: float) -> None:
        """Set the `ack_wait` of the consumer in seconds. Call this before the first pull."""
        self.ack_wait = ack_wait
        decisions = self._decisions
        decisions.limits = evolve(decisions.limits, max_age=ack_wait * AGE_SHARE)
        self.progress.learn(ack_wait)

    def change_ack_wait(self, ack_wait: float) -> None:
        """Set the `ack_wait` of an updated consumer, in seconds.

        Does nothing if the previous `ack_wait` is not known.
        """
        if self.ack_wait is not None and ack_wait != self.ack_wait:
            self.ack_wait = ack_wait
            self.progress.hurry(ack_wait)

    def stop_pulling(self) -> None:
        """Send no more pulls. Callers still get the messages that are buffered or in flight."""
        if self._engine is not None:
            self._engine.stop()

    def note_break(self, reason: str) -> None:
        """End a `fragile` buffer with `ConnectionLost` after the buffered messages.

        Does nothing to other buffers.
        """
        self._decisions.note_break(reason)

    async def check_several(self) -> None:
        """Raise `SingleAnswers` if only the first response to each pull arrives.

        Only for the only user of a consumer that is left afterwards, because probes take messages.
        """
        channel, engine = self._channel, self._engine
        if channel is not None and engine is not None:
            self._settle(engine)
            if engine.is_lone and self._transport.is_connected:
                from js_async.api.single_answers import check_several

                await check_several(self._missing.api, channel.box.asks)

    async def probe(self, limits: PullLimits) -> bytes:
        """Send a pull request that the engine does not count. Return the token of the request."""
        channel, engine = await self.open()
        engine.probing()
        token = self._probe_token = channel.token()
        await channel.pull(token, limits.max_messages, None, limits)
        return token

    async def pull_ahead(self, deadline: Deadline) -> None:
        """Send the pull requests that are due, without waiting for a message.

        The server then delivers messages although no caller waits for them.
        """
        held = await self.acquire(deadline)
        try:
            channel, engine = await self.open()
            if self._transport.is_connected and not self._is_stale(channel):
                self._settle(engine)
                self._sort(channel, engine)
                await self._decisions.carry_out(channel, engine, False)
        finally:
            self.turn.release(held)

    # ---- lifecycle

    async def drain(self) -> None:
        """Stop pulling. `take` still returns the buffered messages; `close` ends it at once."""
        if self._draining:
            return
        self._draining = True
        if self._engine is not None:
            self._engine.stop()
        channel = self._channel
        try:
            if channel is not None:
                await self._close_mailbox(channel)
        finally:
            # Set this after the mailbox is closed, so that callers get the messages in flight.
            self._drained = True
            if channel is not None:
                channel.box.signal.set()

    async def close(self) -> None:
        """End the buffer, and return its messages to the server with a NAK."""
        if self._left:
            return
        self._closed = self._left = True
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
        engine = self._engine
        if engine is None or self._closed or self._transport.is_closed:
            return
        self.progress.abandon()
        is_over = self._drained or self._failure() is not None or engine.still_wanted == 0
        # Do not warn in a forked child: the parent process may still use its buffer.
        if self._give_back and not is_over and self._forks == Forks.count:
            warnings.warn(
                f"{self._missing.name}: an iterator over its messages was not closed; messages it"
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
        await self._transport.close_mailbox(channel.box, settle=True)
        await self.progress.settled()

    async def _return_rest(self, channel: PullChannel) -> None:
        """Send a NAK to the server for each message that no caller has taken.

        Other callers may take buffered messages meanwhile. Only one call can remove a message from
        the buffer: either this call or the call of another caller.
        """
        frames = channel.box.take_all()
        # `take_all` cleared the signal. Set it again, because a caller may be about to wait for it.
        channel.box.signal.set()
        if self._decisions.limits.may_pin:
            # No caller gets these messages, but their headers may contain the client's pin.
            for frame in frames:
                self._decisions.note_pin(frame, quietly=True)
        rest = self._messages_of(frames, channel.box)
        try:
            while True:
                rest.append(self.ready.popleft())
        except IndexError:
            rest += self._surplus
            self._surplus.clear()
        if self._give_back and self._transport.is_connected:
            now = monotonic()
            # Skip messages past ack_wait: the server may have redelivered them to another client.
            await channel.give_back(
                [each._frame for each in rest if not each._delivery.is_late(now)]
            )

    def _messages_of(self, frames: list[Frame], box: Box) -> list[Message]:
        """Return a message with its `Delivery` for each of the frames, even for statuses.

        `box` is the mailbox from which the caller has taken the frames.
        """
        fresh = Delivery(self._transport, box.heard_at, self.ack_wait, self._timeout)
        return messages_of(frames, self.progress.deliveries(frames, fresh))

    async def open(self) -> tuple[PullChannel, PullEngine]:
        """Subscribe, unless this was done before. Return the mailbox and the engine."""
        if self._channel is None or self._engine is None:
            self._channel = await self._missing.channels.take()
            self._channel.box.take_all()
            now = monotonic()
            self._engine = PullEngine(self._decisions.limits, self._channel.token, now)
            if self._draining:
                # `drain` was called before the engine existed.
                self._engine.stop()
            self._epoch = self._transport.epoch
            self.progress.taken_at = now
            if self._give_back:
                self.progress.start(self._channel.box)
        return self._channel, self._engine

    def _is_stale(self, channel: PullChannel) -> bool:
        """Return whether the buffer must no longer use this channel.

        Either another caller has replaced it, or `AckProgress` has closed its mailbox.
        """
        return channel is not self._channel or self._has_given_up()

    def _has_given_up(self) -> bool:
        """Return whether `AckProgress` closed the mailbox although the buffer is still in use."""
        return self.progress.gave_up and not (self._draining or self._closed)

    async def _come_back(self, channel: PullChannel, engine: PullEngine) -> PullChannel:
        """Return the channel to use. Open a new one if `AckProgress` closed the current mailbox."""
        if channel is self._channel:
            fresh = await self._missing.channels.take()
            if channel is self._channel and self._has_given_up():
                self._switch_channel(fresh, channel, engine)
                self._decisions.report(PullWarning(_GAVE_UP))
            else:
                # While this call waited, another caller replaced the channel or closed the buffer.
                self._missing.channels.put(fresh)
        return self._channel or channel

    def _switch_channel(self, fresh: PullChannel, left: PullChannel, engine: PullEngine) -> None:
        # Buffer the messages of the old mailbox: some may still be within ack_wait.
        self._sort(left, engine)
        fresh.box.take_all()
        # Closing the old mailbox has ended all requests.
        engine.restored(monotonic())
        self._channel = fresh
        self.progress.resume(fresh.box)
        # Wake up any caller that still waits for the old mailbox.
        left.box.signal.set()

    # ---- taking

    def take_nowait(self) -> Message | None:
        """Return a buffered message that may be taken before the engine is updated, or None."""
        # An update for each message would take more than twice the CPU time (5.3 instead of 2.0 µs
        # a message; nats-py's fetch takes 51 to 55). No lock is needed, because `_settle` computes
        # the number of these messages from the length of the buffer.
        ready = self.ready
        while len(ready) > self.reserved:
            try:
                message = ready.popleft()
            except IndexError:
                # Another thread took the message, or closes the buffer and returns the message to
                # the server.
                return None
            if self.ack_wait is None:
                return message
            self.progress.taken_at = now = monotonic()
            if not message._delivery.is_late(now):
                return message
            self._late_unsettled.append(None)
            self.note_late()
        return None

    def note_late(self) -> None:
        """Count a message that was skipped as late."""
        self._late.append(None)

    def _unsettled(self, engine: PullEngine) -> int:
        """Return how many messages callers took without updating the engine, except late ones."""
        return engine.budget.buffered - len(self.ready) - len(self._late_unsettled)

    def _settle(self, engine: PullEngine) -> None:
        """Report to the engine the messages that callers took without updating it."""
        if self._passed is not None:
            engine.arrived(1, 0)
            engine.note_size(len(self._passed[3]))
            engine.handed_over(0, self.progress.taken_at)
            self._passed = None
            self._decisions.doubt.clear()
            self._waited = False
        taken = engine.budget.buffered - len(self.ready)
        if taken:
            engine.handed_over(self._size_of(taken), monotonic(), taken)
            late = len(self._late_unsettled)
            for _ in range(late):
                self._late_unsettled.popleft()
            self._count(engine, taken - late)
            self._waited = False
        wanted = engine.still_wanted
        if wanted is not None and len(self.ready) > wanted:
            self._cut(engine, wanted)

    def _cut(self, engine: PullEngine, wanted: int) -> None:
        """Remove messages beyond `stop_after` from the buffer.

        Such messages arrive if the server answers both a request that was sent before a reconnect
        and the repetition of this request.
        """
        while len(self.ready) > max(0, wanted):
            self._surplus.append(self.ready.pop())
            engine.handed_over(self._sizes.pop() if self._sizes else 0, monotonic())

    def _count(self, engine: PullEngine, given: int) -> None:
        if engine.still_wanted is not None:
            engine.still_wanted -= given

    async def _take_next(self, deadline: Deadline) -> Message | None:
        self.reserved, is_late = _ALL, False
        channel, engine = self._channel, self._engine
        if channel is None or engine is None:
            channel, engine = await self.open()
        while not self._closed:
            self._settle(engine)
            if engine.still_wanted == 0:
                break
            if self._is_stale(channel):
                channel = await self._come_back(channel, engine)
                continue
            if self.ready:
                now = monotonic()
                if engine.due(now):
                    await self._decisions.carry_out(channel, engine, self._waited)
                    if self._closed:
                        break
                message = self._hand_over(engine, now)
                if message is None:
                    continue
                if message._delivery.is_late(now):
                    self.note_late()
                    continue
                self._count(engine, 1)
                self.reserved = engine.budget.buffered - engine.grant(self._sizes)
                return message
            if HOOKS:
                reached("messages: before clear", self)
            # Clear the signal before reading the mailbox, so that no arrival is missed.
            channel.box.signal.clear()
            if self._closed or self._is_stale(channel):
                # `close` or `AckProgress` may have set the signal just before this code cleared it.
                continue
            self._sort(channel, engine)
            if self.ready:
                continue
            await self._decisions.carry_out(channel, engine, self._waited)
            if self._ends(channel, is_late):
                break
            if HOOKS:
                reached("messages: before wait", self)
            wake_at = deadline.earlier(engine.wake_at())
            self._waited = True
            may_pass = engine.may_pass()
            self.progress.waiting.append(None)
            try:
                is_set = await self._transport.wait(channel.box.signal, wake_at)
            finally:
                self.progress.waiting.pop()
                self.progress.taken_at = monotonic()
            if may_pass and (message := self._pass(channel, engine)) is not None:
                return message
            is_late = deadline.expired()
            if is_late and not is_set:
                raise RequestTimeout("no message in time")
        if self._closed:
            # Another caller closed the buffer. That call may have missed frames that this call
            # was moving into the buffer, or a mailbox that this call has opened since.
            await self._leave(channel)
        return None

    def _failure(self) -> TwinstreamError | None:
        """Return the error with which the buffer failed, or None."""
        box = self._channel.box if self._channel is not None else None
        return self._decisions.error or (box.error if box is not None else None)

    def _ends(self, channel: PullChannel, is_late: bool) -> bool:
        if self._decisions.error is not None:
            raise self._decisions.error
        channel.box.check()
        if not self._drained and self._transport.is_closed:
            raise self._transport.closed_error()
        if is_late and not self._drained:
            # Only statuses have arrived. A server that sends them without a pause must not delay
            # the timeout.
            raise RequestTimeout("no message in time")
        return self._drained

    def _hand_over(self, engine: PullEngine, now: float) -> Message | None:
        """Take one message out of the buffer, and report that to the engine.

        Return None if another thread took it. The caller must not wait before it returns the
        message to the user: the message would be lost if that wait were interrupted.
        """
        if HOOKS:
            reached("messages: before hand-over", self)
        try:
            message = self.ready.popleft()
        except IndexError:
            # Another thread took the message, or closes the buffer and returns the message to
            # the server.
            return None
        engine.handed_over(self._size_of(1), now)
        self.progress.taken_at = now
        self._waited = False
        return message

    def _pass(self, channel: PullChannel, engine: PullEngine) -> Message | None:
        """Return the message if exactly one frame has arrived and it is a message, else None.

        Also return None if the message is late, or if the connection was lost or restored. The
        returned message is reported to the engine later: `_settle` does that before the next wait.
        This saves half of the work between the arrival of a message and the return to the caller.
        """
        transport, box, now = self._transport, channel.box, monotonic()
        delivery = Delivery(transport, box.heard_at, self.ack_wait, self._timeout)
        changed = transport.epoch != self._epoch or not transport.is_connected
        if len(box.frames) != 1 or self._closed or changed or delivery.is_late(now):
            return None
        try:
            frame = box.frames.popleft()
        except IndexError:
            return None
        if frame[2] and is_status(frame):
            box.frames.appendleft(frame)
            return None
        self._passed = frame
        self.progress.taken_at = now
        self._count(engine, 1)
        return Message(frame, delivery)

    def _size_of(self, count: int) -> int:
        """Return the total size in bytes of the next `count` messages, and remove their sizes.

        Returns 0 if the buffer is not limited by bytes.
        """
        sizes = self._sizes
        return sum([sizes.popleft() for _ in range(count)]) if sizes else 0

    def _sort(self, channel: PullChannel, engine: PullEngine) -> None:
        """Move arrived messages into the buffer, and report them to the engine.

        Also report arrived statuses to the engine, and whether the connection was lost or restored.
        """
        transport = self._transport
        if transport.epoch != self._epoch:
            self._epoch = transport.epoch
            engine.restored(monotonic())
            self._decisions.doubt.clear()
            self._decisions.note_break("the client reconnected")
        elif not transport.is_connected:
            engine.lost()
        engine.heard(channel.box.heard_at)
        frames = channel.box.frames
        if not frames:
            return
        fresh = Delivery(transport, channel.box.heard_at, self.ack_wait, self._timeout)
        # Fast path for pulls without a byte limit and without a priority group: their messages need
        # no inspection.
        limits = self._decisions.limits
        plain = limits.max_bytes is None and limits.priority is None
        put, take, sizes = self.ready.append, frames.popleft, self._sizes
        count = size = 0
        frame = _NO_FRAME
        for delivery in self.progress.deliveries(frames, fresh):
            try:
                frame = take()
            except IndexError:
                # Another caller closes the buffer, and returns the messages to the server.
                break
            if frame[2] and is_status(frame):
                engine.arrived(count, size)
                count = size = 0
                status = read_status(frame)
                if status.kind is not Kind.NO_RESPONDERS:
                    self._decisions.doubt.clear()
                elif status.token == self._probe_token:
                    engine.probe_failed(monotonic())
                if status.kind is Kind.HEARTBEAT and self.on_heartbeat is not None:
                    self.on_heartbeat(status, len(self.ready))
                engine.status(status, monotonic())
                continue
            if not plain:
                self._decisions.note_pin(frame)
                if limits.max_bytes is not None:
                    sizes.append(frame_size(frame, pinned=limits.may_pin))
                    size += sizes[-1]
            put(Message(frame, delivery))
            count += 1
        if count:
            engine.arrived(count, size)
            if limits.max_bytes is None:
                # Measure only the last message. To measure each one would slow down the taking of
                # messages by 10 %.
                engine.note_size(len(frame[3]))
            self._decisions.doubt.clear()
