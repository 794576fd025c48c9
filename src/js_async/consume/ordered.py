"""The ordered read of a stream: without gaps, across disconnects and failures of servers."""

from __future__ import annotations

from typing import Any, Final, Self

from js_async.consume.iterator import Iteration
from js_async.consume.message import Message
from js_async.consume.ordered_buffer import OrderedBuffer
from twinstream.core.arguments.nats_py_names import hint_attributes
from twinstream.core.consume.batch import Batch
from twinstream.core.consume.pull_request import Wait
from twinstream.core.deadline import Seconds
from twinstream.core.wire.payload import P
from twinstream.models import ConsumerInfo

__all__ = ["OrderedMessages", "buffer_of"]


@hint_attributes
class OrderedMessages(Iteration[Message[P]]):
    """An iterator over a stream in order, until it is closed. `Stream.ordered` creates it.

    It begins with the first message that is requested or, with `deliver_policy="new"`, at the
    beginning of its `with` block. It yields every message exactly once, even if the connection, the
    consumer or its leader is lost. Several tasks or threads may share the iterator; only one at a
    time takes a message.

    It raises `StreamNotFound` if the stream is deleted, and `ConnectionClosed` if the connection is
    closed. If `max_reset_attempts` attempts in a row fail to create a consumer, it raises the last
    error.
    """

    def __init__(self, buffer: OrderedBuffer) -> None:
        super().__init__(buffer)
        self._buffer: Final = buffer

    @property
    def position(self) -> int:
        """The stream sequence of the last message taken.

        To resume after this message, use a `start_seq` one above. Before the first message,
        `position` is 0, or the sequence after which the first consumer starts.
        """
        return self._buffer.position

    @property
    def scanned(self) -> int:
        """The stream sequence up to which all matching messages were taken.

        It is above `position` if heartbeats have shown that no matching message lies in between.
        The server has less to scan if a read resumes after `scanned` instead of `position`.
        """
        return self._buffer.scanned

    @property
    def is_current(self) -> bool:
        """Whether the caller took all matching messages that were stored when the read began."""
        return self._buffer.is_current

    @property
    def resets(self) -> int:
        """The number of times that a lost consumer was replaced."""
        return self._buffer.resets

    @property
    def is_ended(self) -> bool:
        """Whether the read has ended.

        It ends when it is closed or has returned `stop_after` messages. After `drain`, it ends when
        the buffered messages were taken.
        """
        return self._buffer.is_ended

    @property
    def consumer_name(self) -> str | None:
        """The name of the current consumer, or None if there is none."""
        return self._buffer.name

    async def info(self, *, timeout: Seconds | None = None) -> ConsumerInfo:
        """Request the configuration and state of the current consumer.

        Args:
            timeout: Seconds; the default is that of the JetStream context.

        Raises:
            BadArgument: The read has no consumer now, for example before the first message is
                requested.
            ConsumerNotFound: The consumer was lost. The read will replace it.
        """
        return await self._buffer.info(timeout)

    async def fetch(
        self,
        max_messages: int | None = None,
        *,
        timeout: Seconds = 5.0,
        max_bytes: int | None = None,
        wait: Wait = "full",
    ) -> Batch[Message[P]]:
        """Fetch a batch of messages. `fetch` and iteration may alternate: they share a buffer.

        The batch's `reason` states why it ended. After `NO_MESSAGES` the caller has all messages
        that were stored before the call, unless the read was drained or closed.

        Args:
            max_messages: Maximum number of messages.
            timeout: Seconds to wait for messages. With `wait="none"`, the default timeout of a
                request applies to each message instead.
            max_bytes: Maximum number of bytes, as the server counts them. May be combined with
                `max_messages`.
            wait: When to end before the maximum is reached: "full" waits `timeout` seconds for the
                whole batch, "first" waits for at least one message, "none" returns the messages
                that are stored now.

        Raises:
            PullError: The first message alone is larger than `max_bytes`.
            TwinstreamError: Any error of `next`, unless there are messages to return.
        """
        return await self._buffer.fetch(
            max_messages, timeout=timeout, max_bytes=max_bytes, wait=wait
        )

    async def __aenter__(self) -> Self:
        await self._buffer.enter()
        return self

    async def drain(self) -> None:
        """Stop pulling. The read ends after the buffered messages; `close` ends it at once."""
        if self._is_parents:
            return
        await self._buffer.drain()

    async def close(self) -> None:
        """End the read and delete its consumer."""
        if self._is_parents:
            return
        await self._buffer.close()


def buffer_of(messages: OrderedMessages[Any]) -> OrderedBuffer:
    """Return the buffer of an iterator, for the watches, which take from it directly."""
    return messages._buffer
