"""Skip redelivered messages of a worker whose earlier delivery counts."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from js_async import Consumer, Message
from js_async.extension import MessageBuffer
from js_async.workers.job_outcome import Outcomes
from js_async.workers.job_queue import JobQueue
from js_async.workers.jobs import is_repeated
from twinstream.core.consume.ack_wait import ack_wait_of
from twinstream.core.deadline import NEVER, Deadline
from twinstream.errors import AlreadyAcknowledged, PermissionDenied
from twinstream.errors.transient import FAILED_REQUEST

__all__ = ["Redeliveries"]

# The consumer's settings are requested after a redelivery, but at most once in this time (seconds).
_REFRESH_INTERVAL: Final = 5.0


class Redeliveries:
    """Recognises redeliveries of messages that are in a worker, or that it has finished.

    The server delivers such a message again after a long disconnect, or if the consumer's
    `ack_wait` was shortened. So the consumer's settings are requested again, too.
    """

    def __init__(
        self, consumer: Consumer, buffer: MessageBuffer, jobs: JobQueue, outcomes: Outcomes
    ) -> None:
        self._consumer: Final = consumer
        self._buffer: Final = buffer
        self._jobs: Final = jobs
        self._outcomes: Final = outcomes
        self._next_refresh = Deadline.after(0)

    async def is_known(self, message: Message) -> bool:
        """Return whether an earlier delivery of the message is queued, being handled or done.

        If this is so, the caller must skip the message, because the outcome of the earlier delivery
        counts for both deliveries.
        """
        if not is_repeated(message):
            return False
        await self._refresh_settings()
        earlier, is_over = await self._jobs.earlier(message)
        with suppress(AlreadyAcknowledged, *FAILED_REQUEST, PermissionDenied):
            if is_over:
                await message.ack()
            elif earlier is not None:
                # The server now waits for another `ack_wait` before it redelivers the message. If
                # this fails, the job stays claimed, so that it is handled although it is late.
                await earlier.message.in_progress()
                earlier.is_claimed = False
        return is_over or earlier is not None

    async def _refresh_settings(self) -> None:
        """Request the consumer's settings, which may have been changed, at most every 5 seconds."""
        if not self._next_refresh.expired():
            return
        self._next_refresh = Deadline.after(_REFRESH_INTERVAL)
        try:
            info = await self._consumer.info()
        except PermissionDenied:
            self._next_refresh = NEVER
            return
        except FAILED_REQUEST:
            return
        ack_wait = ack_wait_of(info)
        if info.config is not None and ack_wait is not None:
            self._outcomes.config = info.config
            self._buffer.change_ack_wait(ack_wait)
