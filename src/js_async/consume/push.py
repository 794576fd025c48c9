"""The iterator over the messages of a push consumer."""

from __future__ import annotations

from typing import Final

from js_async.consume.iterator import Iteration
from js_async.consume.message import Message
from js_async.consume.push_buffer import PushBuffer
from twinstream.core.wire.payload import P

__all__ = ["PushMessages"]


class PushMessages(Iteration[Message[P]]):
    """An iterator over the messages of a push consumer, until it is closed.

    `Stream.push_messages` creates it, together with a new consumer or for an existing one. It
    answers the server's flow control requests when all earlier messages were taken. So a slow
    caller slows the server down and loses no messages.

    If the consumer's heartbeats stop, the iterator requests the consumer's info. If the consumer
    sends none, the iterator requests the info after every ten seconds of silence. It raises
    `ConsumerDeleted` if the consumer no longer exists. If the user may not request the info, it
    raises `NoResponders` after a minute of missing heartbeats.
    """

    def __init__(self, buffer: PushBuffer) -> None:
        super().__init__(buffer)
        self._buffer: Final = buffer

    @property
    def consumer_name(self) -> str:
        """The consumer's name; empty before the consumer is created."""
        return self._buffer.name

    @property
    def is_ended(self) -> bool:
        """Whether the iterator is closed, or drained and its buffer is empty."""
        return self._buffer.is_ended

    async def drain(self) -> None:
        """Unsubscribe. The iterator ends after the last message that the server has sent."""
        if self._is_parents:
            return
        await self._buffer.drain()

    async def close(self) -> None:
        """Unsubscribe. After ack_wait, the server redelivers messages that are not acknowledged."""
        if self._is_parents:
            return
        await self._buffer.close()
