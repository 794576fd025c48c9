"""`RedeliveryOrder`: keep the order when deliveries of a member's consumer are repeated.

The server may redeliver a message after later ones in two cases: another instance of the member
became active, or a delivery was lost with a connection or between the nodes of a cluster.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from js_async import Consumer, Message
from js_async.extension import MessageBuffer
from js_async.groups.message import group_message
from js_async.runtime.concurrency import sleep
from twinstream.core.consume.reports import PullWarning
from twinstream.core.deadline import NEVER, Deadline
from twinstream.core.groups.redelivery_order import has_all, patience
from twinstream.errors import ConsumerNotFound, RequestTimeout
from twinstream.errors.transient import FAILED_REQUEST

if TYPE_CHECKING:
    from twinstream.core.log.reporter import Reporter
    from twinstream.core.workers.reports import WorkReport
    from twinstream.models import ConsumerConfig

__all__ = ["RedeliveryOrder"]

# Interval between requests for the consumer info (seconds).
_PAUSE: Final = 0.05
# `take` remembers at least twice this number of returned messages before it removes those that are
# acknowledged.
_LEAST: Final = 100


class RedeliveryOrder:
    """The messages of a consumer in the order of the stream.

    At first, and after each lost delivery, `take` buffers messages until the server has redelivered
    all unacknowledged ones. Then it returns the buffered messages sorted by stream sequence.

    All deliveries go to the pinned instance, and the consumer sequence counts them. So a delivery
    was lost if the consumer sequence of a message does not follow that of the previous message.
    """

    def __init__(
        self,
        buffer: MessageBuffer,
        consumer: Consumer,
        config: ConsumerConfig,
        report: Reporter[WorkReport],
    ) -> None:
        self._buffer: Final = buffer
        self._consumer: Final = consumer
        self._patience: Final = patience(config)
        self._report: Final = report
        self._buffered: Final[dict[int, Message]] = {}
        self._sorted: Final[deque[Message]] = deque()
        # Messages that `take` returned, by stream sequence. If there are more than `_most`, those
        # that are acknowledged are removed.
        self._returned: dict[int, Message] = {}
        self._most: Final = 2 * max(config.max_ack_pending or 0, _LEAST)
        self._has_taken_over = False
        # The consumer sequence of the last received message. Consumer sequences start with 1, so
        # with -1 the first message counts as a message after a gap.
        self._last_seq = -1
        # The consumer sequence before which a delivery is missing; None if all deliveries arrived.
        self._gap_at: int | None = None
        # When the server has certainly redelivered the messages of a lost delivery.
        self._until = NEVER

    async def take(self, deadline: Deadline) -> Message | None:
        """Return the next message, or None at the end."""
        if not self._sorted:
            message = await self._receive(deadline)
            if message is None:
                return None
            if self._gap_at is None:
                return self._remember(message)
            if not await self._sort_redelivered(message):
                return None
        message = self._sorted.popleft()
        self._buffer.progress.release(message)
        return self._remember(message)

    def _remember(self, message: Message) -> Message:
        if len(self._returned) > self._most:
            self._returned = {
                seq: each for seq, each in self._returned.items() if not each.is_acknowledged
            }
        self._returned[message.metadata.stream_seq] = message
        return message

    async def _receive(self, deadline: Deadline) -> Message | None:
        """Return the next message as it arrives, and note if a delivery before it is missing."""
        message = await self._buffer.take(deadline)
        if message is not None:
            # Keep the object that the handler acknowledges, so that `_remember` can drop it then.
            message = group_message(message)
            seq = message.metadata.consumer_seq
            if seq != self._last_seq + 1:
                self._gap_at = seq
                self._until = Deadline.after(self._patience)
            self._last_seq = seq
        return message

    async def _sort_redelivered(self, first: Message) -> bool:
        """Buffer messages until all unacknowledged ones were redelivered, then sort them.

        Does not wait longer than `patience` after the last gap. Returns False at the end of the
        messages.
        """
        self._add(first)
        while not await self._has_all_unacknowledged():
            if self._until.expired():
                # By now, the server has repeated all lost deliveries. A message can only be missing
                # if an earlier instance still works on it and has extended its ack_wait.
                if not self._has_taken_over:
                    text = "messages that an earlier instance has not acknowledged may come late"
                    self._report(PullWarning(text))
                break
            if not await self._take_more(Deadline.after(_PAUSE)):
                return False
        self._sorted.extend(self._buffered[seq] for seq in sorted(self._buffered))
        self._buffered.clear()
        self._gap_at = None
        self._has_taken_over = True
        return True

    def _add(self, message: Message) -> None:
        progress, seq = self._buffer.progress, message.metadata.stream_seq
        earlier = self._buffered.get(seq)
        if earlier is not None:
            progress.release(earlier)
        progress.hold(message)
        self._buffered[seq] = message

    async def _has_all_unacknowledged(self) -> bool:
        """Return whether all unacknowledged messages of the consumer have arrived, by its info.

        Also returns True if the consumer was deleted. Returns False if the info is not available
        now, and at the end of the messages.
        """
        try:
            info = await self._consumer.info()
        except ConsumerNotFound:
            # The consumer was deleted, so the server redelivers nothing.
            return True
        except FAILED_REQUEST:
            await sleep(_PAUSE)
            return False
        # All messages that the server sent before the info have arrived, so buffer them.
        if not await self._take_more(Deadline.after(0)):
            return False
        # Do not count copies of messages that `take` has returned. Their handlers may acknowledge
        # them at any time. Then the count would be too high, and a missing message not be noticed.
        sequences = {
            seq: each.metadata.consumer_seq
            for seq, each in self._buffered.items()
            if seq not in self._returned
        }
        return has_all(info, sequences, self._gap_at or 0)

    async def _take_more(self, deadline: Deadline) -> bool:
        """Buffer the messages that have arrived or arrive before the deadline.

        Returns False at the end of the messages.
        """
        try:
            while True:
                message = await self._receive(deadline)
                if message is None:
                    return False
                self._add(message)
        except RequestTimeout:
            return True

    async def give_back(self) -> None:
        """Return the buffered messages to the server (nak), in the order of the stream."""
        rest = [*(self._buffered[seq] for seq in sorted(self._buffered)), *self._sorted]
        self._buffered.clear()
        self._sorted.clear()
        with suppress(*FAILED_REQUEST):
            for message in rest:
                if not message.is_late:
                    await message.nak()
