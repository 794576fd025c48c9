# Generated from src/js_async/consume/messages.py by codegen/twin.py. Edit that file instead.
"""An endless iteration over a consumer's messages, with a buffer that refills itself (ADR-37)."""

from __future__ import annotations

import sys
import warnings
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, Self

from attrs import evolve

from twinstream.core.deadline import NEVER, Deadline, monotonic
from twinstream.errors import RequestTimeout
from twinstream.core.consume.fetch import frame_size
from twinstream.core.wire.protocol import Frame
from twinstream.core.consume.pull_engine import PullEngine
from twinstream.core.consume.pull_request import PullLimits
from twinstream.core.consume.reports import PullReport, PullWarning
from twinstream.core.wire.status import Kind, Status, is_status, read_status
from js_sync.consume.pull_driver import Decisions
from js_sync.consume.delivery import AGE_SHARE, Delivery
from js_sync.consume.ack_progress import Held
from js_sync.runtime.concurrency import Forks, Lock, shielded
from js_sync.consume.iterator import Iteration
from js_sync.consume.consumer_recovery import Missing
from js_sync.consume.pull_subscription import PullChannel
from js_sync.client.transport import Box
from js_sync.consume.message import Message, message_of, messages_of

__all__ = ["Messages"]

_AWAY: Final = (
    "no message was taken for more than five times the ack_wait: what was here comes again, if it"
    " is late, and the pulls begin anew"
)
_ALL: Final = sys.maxsize
_NO_FRAME: Final[Frame] = (b"", b"", 0, b"")


class Messages(Iteration[Message]):
    """Iterates over messages until it is closed; made by `Consumer.messages`.

    Without `stop_after` it never ends by itself: what cannot be mended raises
    (`ConsumerDeleted`, `ConsumerIsPush`, `BadPull`, `PermissionDenied`, `ConnectionClosed`),
    everything else is mended and told to `on_report`. Where the user may not ask whether the
    consumer is there, a minute without anybody answering for it counts as deleted: `NoResponders`,
    or as `on_deleted` says.
    """

    # Of the class: what was interrupted while it was made has it, too, at its end.
    _engine: PullEngine | None = None

    def __init__(
        self,
        missing: Missing,
        limits: PullLimits,
        ack_wait: float | None,
        on_report: Callable[[PullReport], None] | None,
        give_back: bool,
        fragile: bool = False,
    ) -> None:
        self._missing: Final = missing
        self._transport: Final = missing.api.transport
        self._ack_wait = ack_wait
        self._timeout: Final = missing.api.timeout
        self._decisions: Final = Decisions(missing, limits, on_report, fragile)
        self._give_back: Final = give_back
        super().__init__(f"{missing.stream}/{missing.name}")
        self._ready: Final[deque[Message]] = deque()
        # What each of these counts for, where the buffer is bounded by bytes.
        self._sizes: Final[deque[int]] = deque()
        # How many of these may not be handed over before the engine is asked.
        self._reserved = _ALL
        # More than `stop_after` allows; returned to the server at the end.
        self._surplus: Final[list[Message]] = []
        self._channel: PullChannel | None = None
        self._epoch = 0
        self._forks: Final = Forks.count
        # Given away, and not yet told to the engine.
        self._passed: Frame | None = None
        self._waited = False
        self._draining = self._drained = False
        self._closed = self._left = False
        self._held: Final = Held(self._transport, self._ready, ack_wait, self._timeout)
        """What is here or with the user, and kept alive."""
        self._counting: Final = Lock()
        # Late ones among those that were taken without asking, and how many the engine knows.
        self._missed = self._missed_known = 0
        self.late = 0
        """Messages that were dropped because the server had given up on this delivery of them."""
        self._on_heartbeat: Callable[[Status, int], None] | None = None
        """Called with each idle heartbeat, and how many messages before it are buffered."""

    @property
    def is_ended(self) -> bool:
        """Tell whether `next` would raise `IterationEnded`, or the error that ended it."""
        if self._closed or self._decisions.error is not None:
            return True
        if self._drained:
            return not self.buffered
        engine = self._engine
        return engine is not None and engine.still_wanted == self._unsettled(engine)

    @property
    def buffered(self) -> int:
        """How many messages arrived and were not handed over."""
        return len(self._ready) + (len(self._channel.box.frames) if self._channel else 0)

    @property
    def outstanding(self) -> int:
        """How many messages are asked for and not here."""
        if self._engine is None or self._held.gave_up:
            return 0
        return self._engine.outstanding - (self._passed is not None)

    def _learn(self, ack_wait: float) -> None:
        """Note the consumer's `ack_wait` in seconds, found out before the first pull."""
        self._ack_wait = ack_wait
        decisions = self._decisions
        decisions.limits = evolve(decisions.limits, max_age=ack_wait * AGE_SHARE)
        self._held.learn(ack_wait)

    def _hurry(self, ack_wait: float) -> None:
        """Note that the consumer's `ack_wait` is another one now, in seconds."""
        if self._ack_wait is not None and ack_wait != self._ack_wait:
            self._ack_wait = ack_wait
            self._held.hurry(ack_wait)

    def _note_break(self, reason: str) -> None:
        """Have a `fragile` iteration end with `ConnectionLost` after what is buffered."""
        self._decisions.note_break(reason)

    def _probe(self, limits: PullLimits) -> bytes:
        """Send one more pull request, which the engine does not count; return its token."""
        channel, _ = self._open()
        token = channel.token()
        channel.pull(token, limits.max_messages, None, limits)
        return token

    # ---- life

    def drain(self) -> None:
        """Ask for no more; the iteration ends after what is here (with `close` at once)."""
        if self._draining:
            return
        self._draining = True
        if self._engine is not None:
            self._engine.stop()
        channel = self._channel
        try:
            if channel is not None:
                self._close_mailbox(channel)
        finally:
            # Not before: what is on its way is waited for, and handed over.
            self._drained = True
            if channel is not None:
                channel.box.signal.set()

    def close(self) -> None:
        """End the iteration. What was buffered and not handed over is given back with a NAK."""
        if self._left:
            return
        self._closed = self._left = True
        try:
            self._held.end()
            if self._channel is not None:
                # Wakes whoever iterates once the mailbox is left: what is on its way comes first.
                shielded(partial(self._leave, self._channel))
        except BaseException:
            # Interrupted: closing again does the rest.
            self._left = False
            raise

    def __del__(self) -> None:
        engine = self._engine
        if engine is None or self._closed or self._transport.is_closed:
            return
        self._held.abandon()
        is_over = self._drained or self._decisions.error is not None or engine.still_wanted == 0
        # In a forked process it is the parent's, which may go on with it.
        if self._give_back and not is_over and self._forks == Forks.count:
            warnings.warn(
                f"{self._missing.name}: an iteration over its messages was not closed; what it"
                " asked for comes again after ack_wait. Use it in a `with` block, or close it",
                ResourceWarning,
                stacklevel=2,
            )

    def _leave(self, channel: PullChannel) -> None:
        # First the end of the requests: what is given back while one is open comes here again.
        try:
            self._close_mailbox(channel)
        finally:
            # Also where the whole program ends meanwhile: nobody will be given what is here.
            self._return_rest(channel)

    def _close_mailbox(self, channel: PullChannel) -> None:
        self._transport.close_mailbox(channel.box, settle=True)
        self._held.settled()

    def _return_rest(self, channel: PullChannel) -> None:
        """Give back what nobody was given; whoever takes a frame out of the buffer has it."""
        frames = channel.box.take_all()
        # That lowered the flag, and whoever iterates may be just about to wait for it.
        channel.box.signal.set()
        rest = self._messages_of(frames, channel.box)
        try:
            while True:
                rest.append(self._ready.popleft())
        except IndexError:
            rest += self._surplus
            self._surplus.clear()
        if self._give_back and self._transport.is_connected:
            now = monotonic()
            # What is late may be with somebody else, who is to have it alone.
            channel.give_back([each._frame for each in rest if not each._delivery.is_late(now)])

    def _messages_of(self, frames: list[Frame], box: Box) -> list[Message]:
        """Return frames out of the mailbox with their deliveries; a status is one, too."""
        fresh = Delivery(self._transport, box.heard_at, self._ack_wait, self._timeout)
        return messages_of(frames, self._held.deliveries(frames, fresh))

    def __enter__(self) -> Self:
        self._open()
        return self

    def _open(self) -> tuple[PullChannel, PullEngine]:
        if self._channel is None or self._engine is None:
            self._channel = self._missing.channels.take()
            self._channel.box.take_all()
            now = monotonic()
            self._engine = PullEngine(self._decisions.limits, self._channel.token, now)
            if self._draining:
                # Before there was anything to stop.
                self._engine.stop()
            self._epoch = self._transport.epoch
            self._held.taken_at = now
            if self._give_back:
                self._held.start(self._channel.box)
        return self._channel, self._engine

    def _is_stale(self, channel: PullChannel) -> bool:
        """Tell whether another channel is to be used, or opened."""
        return channel is not self._channel or self._is_left()

    def _is_left(self) -> bool:
        """Tell whether the channel was given up, and nobody ends the iteration."""
        return self._held.gave_up and not (self._draining or self._closed)

    def _come_back(self, channel: PullChannel, engine: PullEngine) -> PullChannel:
        """Return the channel to use; the next one is opened where this one was given up."""
        if channel is self._channel:
            fresh = self._missing.channels.take()
            if channel is self._channel and self._is_left():
                self._go_on(fresh, channel, engine)
                self._decisions.report(PullWarning(_AWAY))
            else:
                # Meanwhile somebody else came back, or ends it. Nothing was asked for there.
                self._missing.channels.put(fresh)
        return self._channel or channel

    def _go_on(self, fresh: PullChannel, left: PullChannel, engine: PullEngine) -> None:
        # Some of what came before may be in time still.
        self._sort(left, engine)
        fresh.box.take_all()
        # The server ended all requests with the mailbox.
        engine.restored(monotonic())
        self._channel = fresh
        self._held.resume(fresh.box)
        # For all who wait there: each of them lowers the flag.
        left.box.signal.set()

    # ---- iterating

    def __next__(self) -> Message:
        """Return the next message; the iteration ends after `drain` or `close`."""
        # As `take` does, in one call less.
        if len(self._ready) > self._reserved:
            try:
                message = self._ready.popleft()
            except IndexError:
                pass
            else:
                if self._ack_wait is None or self._in_time(message):
                    return message
                self._note_late(granted=True)
        taken = super()._take(NEVER)
        if taken is None:
            raise StopIteration
        return taken

    def _take(self, deadline: Deadline) -> Message | None:
        """Return the next message, or None when the iteration has ended.

        Raises `RequestTimeout` when none came before the deadline.
        """
        # Most messages are those that the engine granted. Taking them here costs less than half
        # the CPU of asking it for each (5.3 against 2.0 µs a message where nats-py's fetch took
        # 55 and 51). Threads need no lock for it: what they took shows in the buffer's length.
        if len(self._ready) > self._reserved:
            try:
                message = self._ready.popleft()
            except IndexError:
                # Another thread took it, or closes and returns it to the server.
                pass
            else:
                if self._ack_wait is None or self._in_time(message):
                    return message
                self._note_late(granted=True)
        return super()._take(deadline)

    def _take_granted(self) -> Message | None:
        """Return a buffered message that may be handed over without asking the engine, if any.

        For iterations without an ack_wait.
        """
        if len(self._ready) <= self._reserved:
            return None
        try:
            return self._ready.popleft()
        except IndexError:
            return None

    def _in_time(self, message: Message) -> bool:
        """Note that a granted message was taken; tell whether it is not late."""
        self._held.taken_at = now = monotonic()
        return not message._delivery.is_late(now)

    def _note_late(self, *, granted: bool = False) -> None:
        """Count a message that was dropped as late; `granted` where the engine was not asked."""
        with self._counting:
            self.late += 1
            self._missed += granted

    def _unsettled(self, engine: PullEngine) -> int:
        """Return how many messages were handed over that the engine does not know of."""
        return engine.buffered - len(self._ready) - (self._missed - self._missed_known)

    def _settle(self, engine: PullEngine) -> None:
        """Report to the engine what was handed over without asking it."""
        if self._passed is not None:
            engine.arrived(1, 0)
            engine.note_size(len(self._passed[3]))
            engine.handed_over(0, self._held.taken_at)
            self._passed = None
            self._decisions.doubt.clear()
            self._waited = False
        taken = engine.buffered - len(self._ready)
        if taken:
            engine.handed_over(self._size_of(taken), monotonic(), taken)
            missed = self._missed - self._missed_known
            self._missed_known += missed
            self._count(engine, taken - missed)
            self._waited = False
        wanted = engine.still_wanted
        if wanted is not None and len(self._ready) > wanted:
            self._cut(engine, wanted)

    def _cut(self, engine: PullEngine, wanted: int) -> None:
        """Take out what is more than wanted: a request before a reconnect was answered, too."""
        while len(self._ready) > max(0, wanted):
            self._surplus.append(self._ready.pop())
            engine.handed_over(self._sizes.pop() if self._sizes else 0, monotonic())

    def _count(self, engine: PullEngine, given: int) -> None:
        if engine.still_wanted is not None:
            engine.still_wanted -= given

    def _take_next(self, deadline: Deadline) -> Message | None:
        self._reserved = _ALL
        channel, engine = self._channel, self._engine
        if channel is None or engine is None:
            channel, engine = self._open()
        while not self._closed:
            self._settle(engine)
            if engine.still_wanted == 0:
                break
            if self._is_stale(channel):
                channel = self._come_back(channel, engine)
                continue
            if self._ready:
                now = monotonic()
                if engine.due(now):
                    self._decisions.carry_out(channel, engine, self._waited)
                    if self._closed:
                        break
                message = self._hand_over(engine, now)
                if message is None:
                    continue
                if message._delivery.is_late(now):
                    self._note_late()
                    continue
                self._count(engine, 1)
                self._reserved = engine.buffered - engine.grant(self._sizes)
                return message
            # The flag goes down before the mailbox is looked into: nothing is missed.
            channel.box.signal.clear()
            if self._closed or self._is_stale(channel):
                # Whoever closes may have raised it already.
                continue
            self._sort(channel, engine)
            if self._ready:
                continue
            self._decisions.carry_out(channel, engine, self._waited)
            if self._ends(channel):
                break
            wake_at = deadline.earlier(engine.wake_at())
            self._waited = True
            may_pass = engine.may_pass()
            self._held.waiting.append(None)
            try:
                came = self._transport.wait(channel.box.signal, wake_at)
            finally:
                self._held.waiting.pop()
                self._held.taken_at = monotonic()
            if may_pass and (message := self._pass(channel, engine)) is not None:
                return message
            if not came and deadline.expired():
                raise RequestTimeout("no message in time")
        if self._closed:
            # Closed by somebody else, while frames were being sorted in here perhaps, or before
            # there was a mailbox.
            self._leave(channel)
        return None

    def _ends(self, channel: PullChannel) -> bool:
        error = self._decisions.error or channel.box.error
        if error is None and not self._drained and self._transport.is_closed:
            error = self._transport.closed_error()
        if error is not None:
            raise error
        return self._drained

    def _hand_over(self, engine: PullEngine, now: float) -> Message | None:
        """Take one message out of the buffer: it leaves it in the step that returns it."""
        try:
            message = self._ready.popleft()
        except IndexError:
            # Another thread took it, or closes and returns it to the server.
            return None
        engine.handed_over(self._size_of(1), now)
        self._held.taken_at = now
        self._waited = False
        return message

    def _pass(self, channel: PullChannel, engine: PullEngine) -> Message | None:
        """Give away the one message that was waited for; the engine is told before the next wait.

        That is half of the work between its arrival and the user.
        """
        transport, box, now = self._transport, channel.box, monotonic()
        delivery = Delivery(transport, box.heard_at, self._ack_wait, self._timeout)
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
        self._held.taken_at = now
        self._count(engine, 1)
        return message_of(frame, delivery)

    def _size_of(self, count: int) -> int:
        """Return the bytes of so many messages that left the buffer, in order."""
        sizes = self._sizes
        return sum([sizes.popleft() for _ in range(count)]) if sizes else 0

    def _sort(self, channel: PullChannel, engine: PullEngine) -> None:
        """Move what arrived into the buffer, and tell the engine."""
        transport = self._transport
        if transport.epoch != self._epoch:
            self._epoch = transport.epoch
            engine.restored(monotonic())
            self._decisions.doubt.clear()
            self._decisions.note_break("the link was made anew")
        elif not transport.is_connected:
            engine.lost()
        engine.heard(channel.box.heard_at)
        frames = channel.box.frames
        if not frames:
            return
        fresh = Delivery(transport, channel.box.heard_at, self._ack_wait, self._timeout)
        # Most frames are plain messages of a pull by count: those need no look inside.
        limits = self._decisions.limits
        plain = limits.max_bytes is None and limits.priority is None
        put, take, sizes = self._ready.append, frames.popleft, self._sizes
        count = size = 0
        frame = _NO_FRAME
        for delivery in self._held.deliveries(frames, fresh):
            try:
                frame = take()
            except IndexError:
                # Somebody else closes just now and gives them back.
                break
            if frame[2] and is_status(frame):
                engine.arrived(count, size)
                count = size = 0
                status = read_status(frame)
                if status.kind is not Kind.NO_RESPONDERS:
                    self._decisions.doubt.clear()
                if status.kind is Kind.HEARTBEAT and self._on_heartbeat is not None:
                    self._on_heartbeat(status, len(self._ready))
                engine.status(status, monotonic())
                continue
            if not plain:
                self._decisions.note_pin(frame)
                if limits.max_bytes is not None:
                    sizes.append(frame_size(frame, pinned=limits.may_pin))
                    size += sizes[-1]
            put(message_of(frame, delivery))
            count += 1
        if count:
            engine.arrived(count, size)
            if limits.max_bytes is None:
                # The last one stands for all: a look at each would cost a tenth of taking it.
                engine.note_size(len(frame[3]))
            self._decisions.doubt.clear()
