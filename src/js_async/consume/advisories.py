"""Typed iterators over server events: advisories and metrics."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final
from weakref import ref

from js_async.client.transport import Box, Transport
from js_async.consume.item_source import ItemSource, NothingInTime
from js_async.consume.iterator import Iteration
from js_async.runtime.concurrency import Signal
from twinstream.core.arguments.check_arguments import check_whole
from twinstream.core.client.connection_events import MessagesDropped
from twinstream.core.consume.advisories import Event, read_event
from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.log.reporter import GuardedReporter
from twinstream.core.on_failure import AsyncOnFailure
from twinstream.core.wire.protocol import Frame, Sink

__all__ = ["Events", "listen"]

# The interval at which to check for refused subscriptions (seconds). A refusal sets the signal of
# its own mailbox, while the caller waits for the signal of the first mailbox.
_LOOK: Final = 1.0


class _EventBuffer(ItemSource[Event]):
    """The events that have arrived, and their subscriptions."""

    def __init__(
        self,
        transport: Transport,
        subjects: Sequence[str],
        max_buffered: int,
        on_drop: Callable[[MessagesDropped], None] | None,
    ) -> None:
        check_whole(max_buffered, "max_buffered")
        super().__init__(", ".join(subjects))
        self._transport: Final = transport
        self._max_buffered: Final = max_buffered
        self._report: Final[GuardedReporter[MessagesDropped]] = GuardedReporter(on_drop, "on_drop")
        self._frames: Final[deque[tuple[Frame, int]]] = deque()
        self._boxes: Final[list[Box]] = []
        self._signal = Signal()
        self._missed = 0
        self._epoch = 0
        self._closed = False
        self.subjects: Final = tuple(subjects)
        """The subscribed subjects."""
        self.dropped = 0
        """The number of events that were dropped because the buffer was full."""

    async def open(self) -> None:
        """Subscribe."""
        self._epoch = self._transport.epoch
        async with AsyncOnFailure(self.close):
            for subject in self.subjects:
                box = await self._transport.open_mailbox(subject.encode(), sink=self._sink)
                if not self._boxes:
                    # One warning is enough for all subjects.
                    box.owner = f"the iterator over the events on {self.label}"
                self._boxes.append(box)

    def _sink(self, box: Box) -> Sink:
        """Return the function that adds the frames of a mailbox to these events.

        The function holds only a weak reference, so that dropped events can be collected.
        """
        if not self._boxes:
            # All sinks set the signal of the first mailbox. The connection sets this signal, too,
            # when the connection state changes.
            self._signal = box.signal

        weak = ref(self)

        def take(frame: Frame) -> None:
            events = weak()
            if events is not None:
                events.add(frame)

        return take

    def add(self, frame: Frame) -> None:
        """Buffer an event, or drop it if the buffer is full."""
        if len(self._frames) < self._max_buffered:
            missed, self._missed = self._missed, 0
            self._frames.append((frame, missed))
        else:
            self._count_dropped(frame)
        self._signal.set()

    def _count_dropped(self, frame: Frame) -> None:
        self._missed += 1
        self.dropped += 1
        # Report at counts 1, 2, 4, 8 …: a flood of events must not cause a flood of reports.
        if not self.dropped & (self.dropped - 1):
            subject = frame[0].decode("utf-8", "surrogateescape")
            self._report(MessagesDropped(subject, self.dropped))

    @property
    def is_ended(self) -> bool:
        """Whether the buffer is closed and empty."""
        return self._closed and not self._frames

    @property
    def buffered(self) -> int:
        """The number of events that have arrived and were not taken."""
        return len(self._frames)

    async def _take_next(self, deadline: Deadline) -> Event | None:
        """Return the next event, or None if the events are closed.

        Raises `NothingInTime` at the deadline. Each wait is limited, because a
        refused subscription sets the signal of its own mailbox only.
        """
        while True:
            # Clear the signal before reading the queue, so that no arrival is missed.
            self._signal.clear()
            # Read this before the queue: `close` sets it after the last event has arrived.
            is_last = self._closed
            try:
                frame, missed = self._frames.popleft()
            except IndexError:
                pass
            else:
                return read_event(frame, missed, self._reconnected())
            if HOOKS:
                reached("source: found empty", self)
            if is_last:
                return None
            self._check()
            slice_ = deadline.earlier(monotonic() + _LOOK)
            if not await self._transport.wait(self._signal, slice_) and deadline.expired():
                raise NothingInTime("no event in time")

    def _reconnected(self) -> bool:
        before, self._epoch = self._epoch, self._transport.epoch
        return before != self._epoch

    def _check(self) -> None:
        for box in self._boxes:
            box.check()
        if self._transport.is_closed:
            raise self._transport.closed_error()

    async def close(self) -> None:
        """Unsubscribe. `take` still returns the buffered events."""
        try:
            while self._boxes:
                await self._transport.close_mailbox(self._boxes.pop())
        finally:
            self._closed = True
            self._signal.set()


class Events(Iteration[Event]):
    """An iterator over the events from now on, until it is closed. `JetStream.events` creates it.

    Events are core NATS messages: events that are sent while the client is not subscribed are lost.
    Each `Event` shows whether events were dropped before it. `next` and the iteration raise
    `PermissionDenied` if the user may not subscribe.
    """

    def __init__(self, buffer: _EventBuffer) -> None:
        super().__init__(buffer)
        self._buffer: Final = buffer
        self.subjects: Final = buffer.subjects
        """The subscribed subjects."""

    @property
    def dropped(self) -> int:
        """The number of events that were dropped because the buffer was full."""
        return self._buffer.dropped

    @property
    def is_ended(self) -> bool:
        """Whether the iterator is closed and no events are buffered."""
        return self._buffer.is_ended

    async def close(self) -> None:
        """Unsubscribe. The iteration ends after the buffered events."""
        if self._is_parents:
            return
        await self._buffer.close()


async def listen(
    transport: Transport,
    subjects: Sequence[str],
    max_buffered: int,
    on_drop: Callable[[MessagesDropped], None] | None = None,
) -> Events:
    """Subscribe to the event subjects and return the iterator over their events."""
    buffer = _EventBuffer(transport, subjects, max_buffered, on_drop)
    await buffer.open()
    return Events(buffer)
