"""Extend the ack_wait of the messages that an iterator buffers or its handlers work on.

A client that takes no message for a long time may hang, so its buffered messages are left for
redelivery. The mailbox is closed then. Otherwise the server would keep redelivering the same
messages into it until their `max_deliver` is used up. The next take opens a new mailbox.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, islice, repeat
from typing import Final

from js_async.client.transport import Box, Transport
from js_async.consume.delivery import Delivery
from js_async.consume.message import Message
from js_async.runtime.concurrency import Signal, Task, spawn
from twinstream.core.consume.acks import IN_PROGRESS
from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.status import is_status
from twinstream.errors import AlreadyAcknowledged, TwinstreamError

__all__ = ["Held"]

# Buffered messages are kept alive if the caller took a message within this many ack_waits.
# Afterwards the server may deliver them to a client that works.
_PATIENCE: Final = 5
# Limit of the wait for a mailbox that is being closed (seconds). In a forked process nothing closes
# it, so the wait must end.
_CLOSE_TIME: Final = 2.0


_Mark = tuple[Frame, Delivery]
"""A mailbox frame and the delivery of all messages from the previous mark up to that frame."""


class Held:
    """The messages of one iterator: buffered (mailbox or `ready`), queued or being processed.

    If `ack_wait` (seconds) is unknown, no progress is reported for any of them.
    """

    def __init__(
        self,
        transport: Transport,
        ready: deque[Message],
        ack_wait: float | None,
        timeout: float,
    ) -> None:
        self._transport: Final = transport
        self._ready: Final = ready
        self._ack_wait = ack_wait
        self._timeout: Final = timeout
        self._queued: dict[int, Message] = {}
        self._running: dict[int, Message] = {}
        self._box: Box | None = None
        # Marks in the order of the mailbox. Those of frames that were taken out are skipped.
        self._marks: list[_Mark] = []
        self._keeper: Task | None = None
        self._woken: Final = Signal()
        self._ended = False
        # Cleared while the mailbox is being closed. Not a lock: a signal handler may close, too.
        self._settled: Final = Signal()
        self._settled.set()
        self.taken_at = 0.0
        """When the caller last took a message or stopped waiting for one (monotonic)."""
        self.waiting: Final[list[None]] = []
        """One entry for each caller that waits for a message. A list, as threads append, too."""
        self.gave_up = False
        """Whether the mailbox was closed because no message was taken for too long."""
        self.keep_all = False
        """Keep buffered messages alive even if none is taken for long. For ordered delivery, if a
        handler is known to run, or if the messages would not be redelivered to another client."""

    def start(self, box: Box) -> None:
        """Start reporting progress, including for messages in the mailbox."""
        self._box = box
        if self._ack_wait is not None:
            self._keeper = spawn(self._keep_alive, "twinstream-progress")

    def resume(self, box: Box) -> None:
        """Continue with a new mailbox after the previous one was closed."""
        self._box = box
        self._marks = []
        self.gave_up = False

    def learn(self, ack_wait: float) -> None:
        """Set the ack_wait in seconds, before `start`."""
        self._ack_wait = ack_wait

    def end(self) -> None:
        """Stop reporting progress."""
        self._ended = True
        self._woken.set()

    def abandon(self) -> None:
        """Stop at the next wake-up. For the garbage collector, which runs in any thread."""
        self._ended = True

    def hurry(self, ack_wait: float) -> None:
        """Report progress now, and from now on at the rate of this `ack_wait` (seconds)."""
        if self._ack_wait is not None:
            self._ack_wait = ack_wait
            self._woken.set()

    def queue(self, message: Message) -> None:
        """Keep a message alive that was taken and waits for its handler."""
        self._queued[id(message)] = message

    def hold(self, message: Message) -> None:
        """Keep a message alive while its handler runs."""
        self._running[id(message)] = message

    def release(self, message: Message) -> None:
        """Stop keeping a message alive."""
        self._queued.pop(id(message), None)
        self._running.pop(id(message), None)

    def deliveries(self, frames: Sequence[Frame], fresh: Delivery) -> Iterator[Delivery]:
        """Return the delivery of each frame. The frames leave the mailbox.

        `fresh` is the delivery of frames that came since the last look.
        """
        marks, self._marks = self._marks, []
        portions = _portions(marks, tuple(frames)) if marks else []
        known = sum([count for _, count in portions])
        portions.append((fresh, len(frames) - known))
        return chain.from_iterable([repeat(delivery, count) for delivery, count in portions])

    async def _keep_alive(self) -> None:
        """Report progress every third of ack_wait, until the end."""
        while True:
            ack_wait = self._ack_wait or 0.0
            if await self._woken.sleep(Deadline.after(ack_wait / 3)):
                self._woken.clear()
                ack_wait = self._ack_wait or 0.0
            if self._ended:
                return
            if self._transport.is_closed:
                # The iterator was not closed. Without this check the loop would run until exit.
                return
            self._look_into_mailbox()
            if not self._transport.is_connected:
                continue
            try:
                await self.report(ack_wait)
            except (TwinstreamError, OSError):
                # The connection was just lost; the next round follows after the reconnect.
                continue

    def _look_into_mailbox(self) -> None:
        """Mark the frames since the last call: the mailbox only knows when its newest one came."""
        # Appended to the list as it was before the look: if another thread takes frames out
        # meanwhile, it has replaced that list, and the mark is ignored.
        box, marks = self._box, self._marks
        if box is None:
            return
        frames = list(box.frames)
        if frames and (not marks or marks[-1][0] is not frames[-1]):
            delivery = Delivery(self._transport, box.heard_at, self._ack_wait, self._timeout)
            marks.append((frames[-1], delivery))

    async def report(self, ack_wait: float) -> None:
        """Report progress of all messages now, or give up if none was taken for long."""
        now = monotonic()
        for message in list(self._running.values()):
            await self._tell_of(message)
        if self._is_left_alone(now, ack_wait):
            await self.give_up()
            return
        for message in list(self._queued.values()):
            await self._tell_of(message)
        told: dict[int, Delivery] = {}
        for message in list(self._ready):
            delivery = message._delivery
            if not delivery.is_late(now):
                await self._transport.send(message._reply_bytes, b"", b"", IN_PROGRESS)
                told[id(delivery)] = delivery
        for delivery in told.values():
            delivery.told_at = now
        await self._tell_of_mailbox(now)

    def _is_left_alone(self, now: float, ack_wait: float) -> bool:
        if self.waiting:
            self.taken_at = now
        return not self.keep_all and now - self.taken_at > _PATIENCE * ack_wait

    async def give_up(self) -> None:
        """Close the mailbox; the next take opens another one."""
        box = self._box
        if box is None or self.gave_up:
            return
        self._settled.clear()
        try:
            if not self._ended:
                await self._transport.close_mailbox(box, settle=True)
        finally:
            # Set after the mailbox is closed, when everything in flight has arrived.
            self.gave_up = True
            self._settled.set()
            # Wakes up callers that began to wait meanwhile.
            box.signal.set()

    async def settled(self) -> None:
        """Wait until the mailbox is not being closed here, so that it contains all in flight."""
        await self._settled.sleep(Deadline.after(_CLOSE_TIME))

    async def _tell_of_mailbox(self, now: float) -> None:
        frames = list(self._box.frames) if self._box is not None else []
        rest = iter(frames)
        for delivery, count in _portions(tuple(self._marks), frames):
            mine = list(islice(rest, count))
            if delivery.is_late(now):
                continue
            for frame in mine:
                if frame[1] and not is_status(frame):
                    await self._transport.send(frame[1], b"", b"", IN_PROGRESS)
            delivery.told_at = now

    async def _tell_of(self, message: Message) -> None:
        try:
            if not (message.is_acknowledged or message._is_returned):
                await message.in_progress()
        except AlreadyAcknowledged:
            # The handler was faster. The other messages still need a report.
            return


def _portions(marks: Sequence[_Mark], frames: Sequence[Frame]) -> list[tuple[Delivery, int]]:
    """Return how many consecutive frames belong to the delivery of each mark."""
    found: list[tuple[Delivery, int]] = []
    places = {id(frame): place for place, frame in enumerate(frames, 1)}
    begin = 0
    for frame, delivery in marks:
        end = places.get(id(frame), 0)
        if end > begin:
            found.append((delivery, end - begin))
            begin = end
    return found
