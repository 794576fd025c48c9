# Generated from src/js_async/consume/ack_progress.py by codegen/twin.py. Edit that file instead.
"""Keeping alive what a consumer's iteration holds: the server is told that work goes on.

A program that takes nothing for long may hang, so others are to have what is buffered for it. The
mailbox is closed then: the server would go on delivering the same messages into it, until their
`max_deliver` is used up. Whoever takes again opens another one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, islice, repeat
from typing import Final

from twinstream.core.consume.acks import IN_PROGRESS
from twinstream.core.deadline import Deadline, monotonic
from twinstream.errors import AlreadyAcknowledged, TwinstreamError
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.status import is_status
from js_sync.consume.delivery import Delivery
from js_sync.runtime.concurrency import Signal, Task, spawn
from js_sync.client.transport import Box, Transport
from js_sync.consume.message import Message

__all__ = ["Held"]

# Buffered messages are kept alive for a user who took one within so many ack_waits; then the
# server may give them to somebody who works.
_PATIENCE: Final = 5
# Longer than a mailbox takes to be closed (seconds); in a forked process nobody does it.
_GOODBYE: Final = 2.0


_Mark = tuple[Frame, Delivery]
"""Up to which frame of the mailbox, from the mark before, messages have a delivery in common."""


class Held:
    """Messages of one iteration: buffered (in the mailbox or `ready`), queued or worked on.

    Where `ack_wait` (seconds) is not known nobody is told anything.
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
        # In the order of the mailbox; frames that were taken out since are passed over.
        self._marks: list[_Mark] = []
        self._keeper: Task | None = None
        self._woken: Final = Signal()
        self._ended = False
        # Down while the mailbox is being closed. No lock: a signal's handler may close, too.
        self._settled: Final = Signal()
        self._settled.set()
        self.taken_at = 0.0
        """When the user took a message last, or stopped waiting for one (monotonic)."""
        self.waiting: Final[list[None]] = []
        """One for each who waits for a message now. Not a number: threads wait, too."""
        self.gave_up = False
        """Whether the mailbox was closed because nobody took anything for so long."""
        self.keep_all = False
        """Keep alive what is buffered however long nobody took one: it is in order, somebody is
        known to work on what comes before it, or nobody else would get it."""

    def start(self, box: Box) -> None:
        """Begin to tell the server, also of what is in the mailbox."""
        self._box = box
        if self._ack_wait is not None:
            self._keeper = spawn(self._keep_alive, "twinstream-progress")

    def resume(self, box: Box) -> None:
        """Go on with another mailbox, after the end of the one before."""
        self._box = box
        self._marks = []
        self.gave_up = False

    def learn(self, ack_wait: float) -> None:
        """Note how long the server waits, in seconds, before the start."""
        self._ack_wait = ack_wait

    def end(self) -> None:
        """Tell it no more."""
        self._ended = True
        self._woken.set()

    def abandon(self) -> None:
        """Tell it no more, from the next time on; for the garbage collector, in any thread."""
        self._ended = True

    def hurry(self, ack_wait: float) -> None:
        """Tell it at once, and from now on as a consumer with this `ack_wait` wants it."""
        if self._ack_wait is not None:
            self._ack_wait = ack_wait
            self._woken.set()

    def queue(self, message: Message) -> None:
        """Keep a message alive that was taken and waits for its handler."""
        self._queued[id(message)] = message

    def hold(self, message: Message) -> None:
        """Keep a message alive while it is worked on."""
        self._running[id(message)] = message

    def release(self, message: Message) -> None:
        """Keep a message alive no longer."""
        self._queued.pop(id(message), None)
        self._running.pop(id(message), None)

    def deliveries(self, frames: Sequence[Frame], fresh: Delivery) -> Iterator[Delivery]:
        """Return the delivery of each frame; all of them are taken out of the mailbox.

        `fresh` is that of frames which came since the last look.
        """
        marks, self._marks = self._marks, []
        portions = _portions(marks, tuple(frames)) if marks else []
        known = sum([count for _, count in portions])
        portions.append((fresh, len(frames) - known))
        return chain.from_iterable([repeat(delivery, count) for delivery, count in portions])

    def _keep_alive(self) -> None:
        """Tell the server of what is held here, at a third of its patience, until the end."""
        while True:
            ack_wait = self._ack_wait or 0.0
            if self._woken.sleep(Deadline.after(ack_wait / 3)):
                self._woken.clear()
                ack_wait = self._ack_wait or 0.0
            if self._ended:
                return
            if self._transport.is_closed:
                # Nobody closed the iteration: this would go on as long as the program.
                return
            self._look_into_mailbox()
            if not self._transport.is_connected:
                continue
            try:
                self._tell_of_held(ack_wait)
            except (TwinstreamError, OSError):
                # The link broke just now: the next look comes after it is mended.
                continue

    def _look_into_mailbox(self) -> None:
        """Note what came since the last look: the mailbox knows only when the newest did."""
        # Noted in the list that was there before the look: if another thread takes frames out
        # meanwhile, that list is done with.
        box, marks = self._box, self._marks
        if box is None:
            return
        frames = list(box.frames)
        if frames and (not marks or marks[-1][0] is not frames[-1]):
            delivery = Delivery(self._transport, box.heard_at, self._ack_wait, self._timeout)
            marks.append((frames[-1], delivery))

    def _tell_of_held(self, ack_wait: float) -> None:
        now = monotonic()
        for message in list(self._running.values()):
            self._tell_of(message)
        if self._is_left_alone(now, ack_wait):
            self._give_up()
            return
        for message in list(self._queued.values()):
            self._tell_of(message)
        told: dict[int, Delivery] = {}
        for message in list(self._ready):
            delivery = message._delivery
            if not delivery.is_late(now):
                self._transport.send(message._reply_bytes, b"", b"", IN_PROGRESS)
                told[id(delivery)] = delivery
        for delivery in told.values():
            delivery.told_at = now
        self._tell_of_mailbox(now)

    def _is_left_alone(self, now: float, ack_wait: float) -> bool:
        if self.waiting:
            self.taken_at = now
        return not self.keep_all and now - self.taken_at > _PATIENCE * ack_wait

    def _give_up(self) -> None:
        """Close the mailbox, for whoever takes next to open another one."""
        box = self._box
        if box is None or self.gave_up:
            return
        self._settled.clear()
        try:
            if not self._ended:
                self._transport.close_mailbox(box, settle=True)
        finally:
            # Not before: what was on its way is here now.
            self.gave_up = True
            self._settled.set()
            # For who came to wait meanwhile.
            box.signal.set()

    def settled(self) -> None:
        """Return when the mailbox is not being closed here: all that was on its way is in it."""
        self._settled.sleep(Deadline.after(_GOODBYE))

    def _tell_of_mailbox(self, now: float) -> None:
        frames = list(self._box.frames) if self._box is not None else []
        rest = iter(frames)
        for delivery, count in _portions(tuple(self._marks), frames):
            mine = list(islice(rest, count))
            if delivery.is_late(now):
                continue
            for frame in mine:
                if frame[1] and not is_status(frame):
                    self._transport.send(frame[1], b"", b"", IN_PROGRESS)
            delivery.told_at = now

    def _tell_of(self, message: Message) -> None:
        try:
            if not (message.is_acknowledged or message._is_returned):
                message.in_progress()
        except AlreadyAcknowledged:
            # Its handler was quicker, which is no reason to leave the others out.
            return


def _portions(marks: Sequence[_Mark], frames: Sequence[Frame]) -> list[tuple[Delivery, int]]:
    """Return how many frames, one after the other, are of the delivery of each mark."""
    found: list[tuple[Delivery, int]] = []
    places = {id(frame): place for place, frame in enumerate(frames, 1)}
    begin = 0
    for frame, delivery in marks:
        end = places.get(id(frame), 0)
        if end > begin:
            found.append((delivery, end - begin))
            begin = end
    return found
