"""A core NATS subscription, and the buffer of its messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Self
from weakref import ref

from js_async.client.closable import Closable
from js_async.client.core_message import CoreMessage
from js_async.client.transport import Box, Transport
from js_async.runtime.concurrency import BlockHint, LoopHint, Signal
from twinstream.core.arguments.check_arguments import check_whole
from twinstream.core.arguments.nats_py_names import hint_attributes
from twinstream.core.client.connection_events import MessagesDropped
from twinstream.core.deadline import NEVER, Deadline, Seconds
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.wire.protocol import Frame, Sink
from twinstream.errors import IterationEnded

__all__ = ["Subscription", "SubscriptionBuffer"]


class SubscriptionBuffer:
    """The messages of a core NATS subscription that have arrived and were not taken."""

    def __init__(
        self,
        transport: Transport,
        subject: bytes,
        queue: bytes,
        max_buffered: int,
        tell: Callable[[MessagesDropped], None],
    ) -> None:
        check_whole(max_buffered, "max_buffered")
        self._transport: Final = transport
        self._subject: Final = subject
        self._queue: Final = queue
        self._max_buffered: Final = max_buffered
        self._notify: Final = tell
        self.box: Box | None = None
        """The mailbox of the subscription, or None before `open`."""
        self._emptied: Final = Signal()
        self._closed = False
        self.dropped = 0
        """The number of messages that were dropped because the buffer was full."""

    async def open(self) -> None:
        """Subscribe."""
        self.box = await self._transport.open_mailbox(self._subject, self._queue, self._sink)
        self.box.owner = f"the subscription to {self.subject}"

    def _sink(self, box: Box) -> Sink:
        frames, signal, limit, weak = box.frames, box.signal, self._max_buffered, ref(self)

        def take(frame: Frame) -> None:
            if len(frames) < limit:
                frames.append(frame)
                if not signal.raised:
                    signal.set()
            elif (buffer := weak()) is not None:
                buffer._count_dropped()

        return take

    def _count_dropped(self) -> None:
        self.dropped += 1
        # Report at counts 1, 2, 4, 8 …: a flood of messages must not cause a flood of events.
        if self.dropped & (self.dropped - 1) == 0:
            self._notify(MessagesDropped(self.subject, self.dropped))

    @property
    def subject(self) -> str:
        """The subject of the subscription, which may contain wildcards."""
        return self._subject.decode()

    @property
    def is_closed(self) -> bool:
        """Whether the subscription was closed or drained: no more messages arrive."""
        return self._closed

    @property
    def buffered(self) -> int:
        """The number of messages that have arrived and were not taken."""
        return len(self.box.frames) if self.box is not None else 0

    async def take(self, deadline: Deadline) -> CoreMessage | None:
        """Return the next message, or None at the deadline and after the end.

        Raises the error that ended the subscription.
        """
        box = self.box
        while box is not None:
            # Clear the signal before reading the mailbox, so that no arrival is missed.
            box.signal.clear()
            # Read this before the mailbox: `end` sets it after the last message has arrived.
            is_last = self._closed
            try:
                frame = box.frames.popleft()
            except IndexError:
                pass
            else:
                if box.frames:
                    box.signal.set()
                return CoreMessage(frame)
            if HOOKS:
                reached("source: found empty", self)
            self._emptied.set()
            self._check(box)
            if is_last:
                return None
            # If the wait ends early without a signal, another caller has cleared the signal and
            # taken the message. Then wait again.
            if not await self._transport.wait(box.signal, deadline) and deadline.expired():
                return None
        return None

    def _check(self, box: Box) -> None:
        """Raise the error that ended the subscription, if any, unless it was closed."""
        closed, error = self._closed, box.error
        if error is None and self._transport.is_closed:
            error = self._transport.closed_error()
        if closed or error is not None:
            # Set the signal again to wake up the other waiting callers, because this caller has
            # cleared it.
            box.signal.set()
        if error is not None and not closed:
            raise error

    def end(self) -> None:
        """End iterations after the buffered messages. Called when the mailbox is closed."""
        self._closed = True
        if self.box is not None:
            self.box.signal.set()

    async def wait_emptied(self, deadline: Deadline) -> None:
        """Wait until the buffer is empty, or until the deadline."""
        while self.buffered and not deadline.expired():
            self._emptied.clear()
            if self.buffered:
                await self._transport.wait(self._emptied, deadline)

    async def drain(self) -> None:
        """Unsubscribe. Iterations end after the last message that the server has sent."""
        if self.box is not None and not self._closed:
            try:
                await self._transport.close_mailbox(self.box, settle=True)
            finally:
                self.end()

    async def close(self) -> None:
        """Unsubscribe. Iterations end after the buffered messages."""
        self._closed = True
        if self.box is not None:
            await self._transport.close_mailbox(self.box)


@hint_attributes
class Subscription(Closable, BlockHint, LoopHint):
    """A core NATS subscription. Iterate over it, or call `next`. Close it when done."""

    def __init__(self, buffer: SubscriptionBuffer) -> None:
        super().__init__()
        self._buffer: Final = buffer

    @property
    def subject(self) -> str:
        """The subject of the subscription, which may contain wildcards."""
        return self._buffer.subject

    @property
    def is_closed(self) -> bool:
        """Whether the subscription was closed or drained: no more messages arrive."""
        return self._buffer.is_closed

    @property
    def is_ended(self) -> bool:
        """Whether the subscription is closed and no messages are buffered.

        `next` would raise `IterationEnded`.
        """
        return self.is_closed and not self.buffered

    @property
    def buffered(self) -> int:
        """The number of messages that have arrived and were not taken."""
        return self._buffer.buffered

    @property
    def dropped(self) -> int:
        """The number of messages that were dropped because the buffer was full."""
        return self._buffer.dropped

    def __repr__(self) -> str:
        state = "ended" if self.is_ended else f"{self.buffered} buffered"
        return f"<Subscription {self.subject}: {state}>"

    async def next(self, *, timeout: Seconds | None = None) -> CoreMessage | None:
        """Return the next message, or None if none arrived in time.

        Args:
            timeout: The longest wait in seconds; None waits without limit.

        Raises:
            PermissionDenied: The user may not subscribe to the subject.
            ServerError: The client has too many subscriptions.
            ConnectionClosed: The connection is closed.
            IterationEnded: The subscription has ended (check `is_ended` first).
        """
        message = await self._buffer.take(Deadline.after(timeout))
        if message is None and self.is_ended:
            raise IterationEnded(f"the subscription to {self.subject} was drained or closed")
        return message

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> CoreMessage:
        """Return the next message; the iteration ends when the subscription is closed."""
        message = await self._buffer.take(NEVER)
        if message is None:
            raise StopAsyncIteration
        return message

    async def drain(self) -> None:
        """Unsubscribe. Iterations end after the last message that the server has sent."""
        if not self._is_parents:
            await self._buffer.drain()

    async def close(self) -> None:
        """Unsubscribe. Iterations end after the buffered messages."""
        if not self._is_parents:
            await self._buffer.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._is_parents:
            await self.close()
