"""The iterator over a consumer's messages, which it pulls into a buffer (ADR-37)."""

from __future__ import annotations

from typing import Any, Final, Self

from js_async.consume.buffer import MessageBuffer
from js_async.consume.iterator import Iteration
from js_async.consume.message import Message
from twinstream.core.arguments.nats_py_names import hint_attributes
from twinstream.core.deadline import NEVER
from twinstream.core.wire.payload import P

__all__ = ["Messages", "buffer_of"]


@hint_attributes
class Messages(Iteration[Message[P]]):
    """An iterator over a consumer's messages until it is closed. `Consumer.messages` creates it.

    Without `stop_after` it never ends by itself. It raises errors from which it cannot recover:
    `ConsumerDeleted`, `ConsumerIsPush`, `InvalidPullRequest`, `PermissionDenied` and
    `ConnectionClosed`. It recovers from all other errors and reports them to `on_report`.

    If the user may not request consumer info, a minute without responders counts as a deletion.
    The iterator then raises `NoResponders`, or reacts as `on_deleted` defines.
    """

    def __init__(self, buffer: MessageBuffer) -> None:
        super().__init__(buffer)
        self._buffer: Final = buffer
        self._ready: Final = buffer.ready
        buffer.ends_by(buffer.drain, buffer.drained)

    @property
    def is_ended(self) -> bool:
        """Whether the iterator has ended.

        It ends when it is closed or has returned `stop_after` messages. After a failure or `drain`,
        it ends when the buffered messages were taken. `next` of an ended iterator raises
        `IterationEnded`, or the error with which the iterator failed.
        """
        return self._buffer.is_ended

    @property
    def late(self) -> int:
        """The number of messages that were skipped because they were late (`Message.is_late`)."""
        return self._ready.late

    async def __anext__(self) -> Message[P]:
        """Return the next message; the iteration ends after `drain` or `close`."""
        # The fast path of `take_nowait` without a call, which would add a tenth to the time of a
        # message.
        ready = self._ready
        if ready.ack_wait is None and len(ready.messages) > ready.reserved:
            try:
                return ready.messages.popleft()
            except IndexError:
                # Another thread took the message, or closes the buffer.
                pass
        message = ready.take_nowait() or await self._buffer.take(NEVER)
        if message is None:
            raise StopAsyncIteration
        return message

    async def drain(self) -> None:
        """Stop pulling. The iterator ends after the buffered messages; `close` ends it at once.

        Messages that the server is about to send at this moment may be redelivered after the
        consumer's `ack_wait`.
        """
        if self._is_parents:
            return
        await self._buffer.drain()

    async def close(self) -> None:
        """End the iterator, and return the buffered messages to the server with a NAK.

        While the client is disconnected, it sends no NAK. The server redelivers the messages after
        ack_wait.
        """
        if self._is_parents:
            return
        await self._buffer.close()

    async def __aenter__(self) -> Self:
        await self._buffer.open()
        return self


def buffer_of(messages: Messages[Any]) -> MessageBuffer:
    """Return the buffer of an iterator, for workers and handlers, which take from it directly."""
    return messages._buffer
