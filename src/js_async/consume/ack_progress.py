"""Progress reports (+WPI), which restart the ack_wait of messages that are not processed yet.

They cover the messages that an iterator buffers or that its handlers process.

If no caller takes a message for a long time, the program may hang. The progress reports of buffered
messages are then stopped, so that the server redelivers these messages to another client. The
mailbox is closed, too, because the server could otherwise redeliver the messages into this mailbox
until `max_deliver` is reached. When a caller takes a message again, the iterator opens a new
mailbox.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice, repeat
from typing import Final

from js_async.client.transport import Transport
from js_async.consume.delivery import Delivery
from js_async.consume.message import Message, delivery_of, frame_of, is_returned
from js_async.consume.pull_subscription import PullChannel
from js_async.consume.ready_messages import ReadyMessages
from js_async.runtime.concurrency import Signal, Task, spawn
from twinstream.core.consume.acks import IN_PROGRESS
from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.status import is_status
from twinstream.errors import AlreadyAcknowledged, TwinstreamError

__all__ = ["AckProgress"]

# How many times in an ack_wait progress is reported.
_REPORTS: Final = 3
# A multiple of ack_wait. If no caller takes or waits for a message for this time, the progress of
# buffered messages is no longer reported, so that the server redelivers them.
_PATIENCE: Final = 5
# The limit of the wait for a mailbox that is being closed (seconds). It is needed in a forked
# child, where the loop that closes the mailbox does not run.
_CLOSE_TIME: Final = 2.0


# A frame in the mailbox and its `Delivery`.
# The frames between the previous mark and this one belong to the same `Delivery`.
_Mark = tuple[Frame, Delivery]


class AckProgress:
    """The messages of one iterator whose progress is reported.

    They are buffered (in the mailbox or in `ready`), queued for a handler, or being processed. If
    `ready.ack_wait` is None, no progress is reported.
    """

    def __init__(
        self,
        transport: Transport,
        ready: ReadyMessages,
    ) -> None:
        self._transport: Final = transport
        self._ready: Final = ready
        self._queued: dict[int, Message] = {}
        self._running: dict[int, Message] = {}
        self._channel: PullChannel | None = None
        # The marks in the order of the mailbox. A mark counts only while its frame is there.
        self._marks: list[_Mark] = []
        self._keeper: Task | None = None
        self._woken: Final = Signal()
        self._ended = False
        # Cleared while `give_up` closes the mailbox. This is not a lock: a signal handler that
        # interrupts `give_up` may close the iterator, and would wait for the lock forever.
        self._settled: Final = Signal()
        self._settled.set()
        self.waiting: Final[list[None]] = []
        """One entry for each caller that waits for a message. Appending to a list is atomic."""
        self.gave_up = False
        """Whether the mailbox was closed because no message was taken for too long."""
        self.keep_all = False
        """Whether to report progress of buffered messages even if no caller takes one for long.

        This is set for one of three reasons: the messages must be handled in order, handlers may
        run for longer than ack_wait, or the server would not redeliver to another client.
        """

    def start(self, channel: PullChannel) -> None:
        """Start the loop that reports progress, unless there is no ack_wait.

        `channel` is that of the iterator.
        """
        self._channel = channel
        if self._ready.ack_wait is not None:
            self._keeper = spawn(self._keep_alive, "twinstream-progress")

    def resume(self, channel: PullChannel) -> None:
        """Continue with a new channel after the previous one was closed."""
        self._channel = channel
        self._marks = []
        self.gave_up = False

    def end(self) -> None:
        """Stop reporting progress at once."""
        self._ended = True
        self._woken.set()

    def abandon(self) -> None:
        """Stop reporting progress when the loop next wakes up.

        For `__del__`: the garbage collector may run in any thread, so it must not set a signal.
        """
        self._ended = True

    def report_soon(self) -> None:
        """Report progress now, and then every third of the ack_wait, which was changed."""
        self._woken.set()

    @property
    def pending(self) -> int:
        """The number of messages that wait for their handler, or whose handler runs."""
        return len(self._queued) + len(self._running)

    def queue(self, message: Message) -> None:
        """Add a message that waits for its handler."""
        self._queued[id(message)] = message

    def hold(self, message: Message) -> None:
        """Add a message whose handler runs."""
        self._running[id(message)] = message

    def release(self, message: Message) -> None:
        """Stop reporting the progress of a message that is queued or whose handler runs."""
        self._queued.pop(id(message), None)
        self._running.pop(id(message), None)

    def deliveries(self, frames: Sequence[Frame], fresh: Delivery) -> Iterator[Delivery]:
        """Return the `Delivery` of each of the frames, and remove the marks.

        The caller is about to take `frames` out of the mailbox. Frames after the last mark get
        `fresh`.
        """
        marks, self._marks = self._marks, []
        portions = _portions(marks, tuple(frames)) if marks else []
        known = sum([count for _, count in portions])
        portions.append((fresh, len(frames) - known))
        return chain.from_iterable([repeat(delivery, count) for delivery, count in portions])

    async def _keep_alive(self) -> None:
        """Report progress every third of ack_wait, until the iterator or connection is closed."""
        while True:
            ack_wait = self._ready.ack_wait or 0.0
            if await self._woken.sleep(Deadline.after(ack_wait / _REPORTS)):
                self._woken.clear()
                ack_wait = self._ready.ack_wait or 0.0
            if self._ended:
                return
            if self._transport.is_closed:
                # The program closed the connection but not the iterator. Without this check the
                # loop would run until the program exits.
                return
            self._mark_arrivals()
            if not self._transport.is_connected:
                continue
            try:
                await self.report(ack_wait)
            except (TwinstreamError, OSError):
                # The connection was just lost. Report again after the reconnect.
                continue

    def _mark_arrivals(self) -> None:
        """Add a mark for the frames that arrived since the last call.

        A mark records their time of arrival. The mailbox has only the time of its newest frame.
        """
        # Read `_marks` before the frames. A thread that takes the frames out meanwhile replaces
        # `_marks` by another list, so this mark is ignored.
        channel, marks = self._channel, self._marks
        if channel is None:
            return
        frames = list(channel.box.frames)
        if frames and (not marks or marks[-1][0] is not frames[-1]):
            marks.append((frames[-1], self._ready.delivery(channel.box)))

    async def report(self, ack_wait: float) -> None:
        """Report progress of all messages now, except buffered messages that are late.

        If no message was taken for a long time, report only the messages whose handler runs, and
        close the mailbox.
        """
        now = monotonic()
        for message in list(self._running.values()):
            await self._report_message(message)
        if self._is_unused(now, ack_wait):
            await self.give_up()
            return
        for message in list(self._queued.values()):
            await self._report_message(message)
        reported: dict[int, Delivery] = {}
        for message in list(self._ready.messages):
            delivery = delivery_of(message)
            if now < delivery.late_at:
                await self._transport.send(frame_of(message)[1], b"", b"", IN_PROGRESS)
                reported[id(delivery)] = delivery
        for delivery in reported.values():
            delivery.note_report(now)
        await self._report_mailbox(now)

    def _is_unused(self, now: float, ack_wait: float) -> bool:
        if self.waiting:
            self._ready.taken_at = now
        return not self.keep_all and now - self._ready.taken_at > _PATIENCE * ack_wait

    async def give_up(self) -> None:
        """Close the mailbox. The iterator opens a new one when the caller takes a message again."""
        channel = self._channel
        if channel is None or self.gave_up:
            return
        self._settled.clear()
        try:
            if not self._ended:
                await channel.close()
        finally:
            # Set this after the mailbox is closed. The mailbox then contains all messages that were
            # in flight, and the iterator takes them out before it changes to a new mailbox.
            self.gave_up = True
            self._settled.set()
            # Wake up callers that began to wait meanwhile.
            channel.box.signal.set()

    async def settled(self) -> None:
        """Wait until no `give_up` is in progress, at most 2 s.

        The mailbox then contains all messages that were in flight.
        """
        await self._settled.sleep(Deadline.after(_CLOSE_TIME))

    async def _report_mailbox(self, now: float) -> None:
        frames = list(self._channel.box.frames) if self._channel is not None else []
        rest = iter(frames)
        for delivery, count in _portions(tuple(self._marks), frames):
            mine = list(islice(rest, count))
            if now >= delivery.late_at:
                continue
            for frame in mine:
                if frame[1] and not is_status(frame):
                    await self._transport.send(frame[1], b"", b"", IN_PROGRESS)
            delivery.note_report(now)

    async def _report_message(self, message: Message) -> None:
        try:
            if not (message.is_acknowledged or is_returned(message)):
                await message.in_progress()
        except AlreadyAcknowledged:
            # The handler acknowledged the message meanwhile.
            return


def _portions(marks: Sequence[_Mark], frames: Sequence[Frame]) -> list[tuple[Delivery, int]]:
    """Return the `Delivery` of each mark and the number of frames that belong to it.

    Marks whose frame is not in `frames` are left out.
    """
    found: list[tuple[Delivery, int]] = []
    places = {id(frame): place for place, frame in enumerate(frames, 1)}
    begin = 0
    for frame, delivery in marks:
        end = places.get(id(frame), 0)
        if end > begin:
            found.append((delivery, end - begin))
            begin = end
    return found
