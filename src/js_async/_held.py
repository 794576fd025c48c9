"""Keeping alive what a consumer's iteration holds: the server is told that work goes on."""

from __future__ import annotations

from collections import deque
from typing import Final

from js_async._delivery import Delivery
from js_async._io import Signal, Task, spawn
from js_async._transport import Transport
from js_async.message import Message
from js_core.acks import IN_PROGRESS
from js_core.deadline import Deadline, monotonic
from js_core.errors import AlreadyAcknowledged, TwinstreamError

__all__ = ["Held"]

# Buffered messages are kept alive for a user who took one within so many ack_waits; then the
# server may give them to somebody who works.
_PATIENCE: Final = 5


class Held:
    """Messages that are buffered (`ready`), queued or worked on, of one iteration.

    Where `ack_wait` (seconds) is not known nobody is told anything.
    """

    def __init__(self, transport: Transport, ready: deque[Message], ack_wait: float | None) -> None:
        self._transport: Final = transport
        self._ready: Final = ready
        self._ack_wait = ack_wait
        self._queued: dict[int, Message] = {}
        self._running: dict[int, Message] = {}
        self._keeper: Task | None = None
        self._woken: Final = Signal()
        self._ended = False
        self.taken_at = 0.0
        """When the user took a message last (monotonic)."""
        self.keep_all = False
        """Keep alive what is buffered however long nobody took one: a worker has them in order."""

    def start(self) -> None:
        """Begin to tell the server."""
        if self._ack_wait is not None:
            self._keeper = spawn(self._keep_alive, "twinstream-progress")

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

    async def _keep_alive(self) -> None:
        """Tell the server of what is held here, at a third of its patience, until the end."""
        while True:
            ack_wait = self._ack_wait or 0.0
            if await self._woken.sleep(Deadline.after(ack_wait / 3)):
                self._woken.clear()
                ack_wait = self._ack_wait or 0.0
            if self._ended:
                return
            if self._transport.is_closed:
                # Nobody closed the iteration: this would go on as long as the program.
                return
            if not self._transport.is_connected:
                continue
            try:
                await self._tell_of_held(ack_wait)
            except (TwinstreamError, OSError):
                # The link broke just now: the next look comes after it is mended.
                continue

    async def _tell_of_held(self, ack_wait: float) -> None:
        now = monotonic()
        for message in list(self._running.values()):
            await self._tell_of(message)
        if not self.keep_all and now - self.taken_at > _PATIENCE * ack_wait:
            return
        for message in list(self._queued.values()):
            await self._tell_of(message)
        told: dict[int, Delivery] = {}
        for message in list(self._ready):
            delivery = message.delivery
            if not delivery.is_late(now):
                await self._transport.send(message.reply_bytes, b"", b"", IN_PROGRESS)
                told[id(delivery)] = delivery
        for delivery in told.values():
            delivery.told_at = now

    async def _tell_of(self, message: Message) -> None:
        try:
            if not (message.is_acknowledged or message.is_returned):
                await message.in_progress()
        except AlreadyAcknowledged:
            # Its handler was quicker, which is no reason to leave the others out.
            return
