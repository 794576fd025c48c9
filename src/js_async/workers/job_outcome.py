"""What happens to a message after its handler has run: it is acknowledged, retried or rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from js_async.runtime.concurrency import Lock
from js_async.workers.jobs import Job
from js_async.workers.settings import WorkSettings
from twinstream.core.consume.reports import PullWarning
from twinstream.core.exactly_once.processing import Reject
from twinstream.core.log.reporter import Reporter
from twinstream.core.wire.header_text import visible
from twinstream.core.workers.dead_letter import stored_reason
from twinstream.core.workers.reports import HandlerFailed, WorkReport
from twinstream.core.workers.retry import TryLater, is_last, nak_delay, pause_after
from twinstream.errors import (
    TwinstreamError,
)
from twinstream.errors.transient import FAILED_REQUEST
from twinstream.models import ConsumerConfig

if TYPE_CHECKING:
    from twinstream.core.observe.observers import Observers
    from twinstream.errors.payload import PayloadError

__all__ = ["Outcomes"]

# If a message could not be rejected, for example because its dead letter could not be stored, it is
# redelivered after this time (seconds).
_AGAIN: Final = 1.0
# Maximum length of the reason of a rejection in characters.
_LINE: Final = 400


class Outcomes:
    """The outcomes of a worker's messages, which are counted and sent to the server."""

    def __init__(
        self,
        settings: WorkSettings,
        config: ConsumerConfig,
        stream: str | None = None,
        consumer: str | None = None,
        observers: Observers | None = None,
    ) -> None:
        self._observers: Final = observers
        self._settings: Final = settings
        self.report: Final[Reporter[WorkReport]] = Reporter(
            settings.on_report, area="worker", stream=stream, consumer=consumer
        )
        self.config = config
        self.handled = 0
        self.retried = 0
        self.rejected = 0
        self._counting: Final = Lock()

    async def succeeded(self, job: Job) -> None:
        """Count a message whose handler has returned, and acknowledge it unless the handler did."""
        async with self._counting:
            self.handled += 1
        if not job.message.is_acknowledged:
            try:
                await job.message.ack()
            except FAILED_REQUEST as error:
                # The message is redelivered after the `ack_wait` of its consumer.
                self._warn(job, "acknowledged", error)

    async def failed(self, job: Job, error: Exception) -> float | None:
        """Process a handler's failure.

        If messages are handled in order, return the seconds after which this worker retries: later
        messages have to wait for this message. Otherwise return None, and the server redelivers the
        message. Also return None if the message is acknowledged, or if there are no more attempts:
        the message is then rejected.
        """
        delay = None if self._is_hopeless(job, error) else self._delay(job, error)
        if self._observers is not None:
            self._observers.note_failure(job.message, error)
        about = job.message.metadata
        self.report(HandlerFailed(job.message.subject, about.stream_seq, job.attempt, error, delay))
        if job.message.is_acknowledged:
            # The handler has acknowledged the message itself.
            return None
        if delay is None:
            await self._give_up(job, error)
            return None
        async with self._counting:
            self.retried += 1
        if self._settings.is_ordered:
            return delay
        deliveries = max(about.num_delivered, job.deliveries)
        await self._nak(job, nak_delay(delay, deliveries, self.config.backoff))
        return None

    async def misfit(self, job: Job, error: PayloadError) -> None:
        """Give up a message whose payload does not fit. A retry cannot help."""
        message = job.message
        if self._observers is not None:
            self._observers.note_failure(message, error)
        report = HandlerFailed(
            message.subject, message.metadata.stream_seq, job.attempt, error, None
        )
        self.report(report)
        await self._give_up(job, error, by_letter=self._settings.on_bad != "terminate")

    def _is_hopeless(self, job: Job, error: Exception) -> bool:
        if error is job.message.payload_error:
            # The handler has used the payload of a message that does not fit.
            return True
        if isinstance(error, Reject) or is_last(self._settings.retry, job.attempt):
            return True
        most = self.config.max_deliver or -1
        # After `max_deliver` deliveries, the server will not deliver the message again. A retry is
        # then only possible if the worker itself retries.
        spent = 0 < most <= max(job.message.metadata.num_delivered, job.deliveries)
        return spent and not self._settings.is_ordered

    def _delay(self, job: Job, error: Exception) -> float:
        if isinstance(error, TryLater):
            return error.delay
        return pause_after(self._settings.retry, job.attempt)

    async def _give_up(self, job: Job, error: Exception, *, by_letter: bool = True) -> None:
        """Terminate a message. If dead letters are enabled, first store it as a dead letter."""
        reason = _reason(error)
        letters = self._settings.dead_letters if by_letter else None
        try:
            if letters is not None:
                await letters.store(job.message, reason)
                reason = stored_reason(reason)
            await job.message.term(reason)
            async with self._counting:
                self.rejected += 1
        except FAILED_REQUEST as trouble:
            self._warn(job, "rejected", trouble)
            await self._nak(job, _AGAIN)

    async def _nak(self, job: Job, delay: float | None) -> None:
        try:
            await job.message.nak(delay)
        except FAILED_REQUEST as error:
            self._warn(job, "returned", error)

    async def give_back(self, job: Job) -> None:
        """Return an unhandled message to the server, unless the server may have redelivered it."""
        if not (job.message.is_acknowledged or job.message.is_late):
            await self._nak(job, None)

    def _warn(self, job: Job, what: str, error: TwinstreamError) -> None:
        warning = PullWarning(f"{visible(job.message.subject)}: could not be {what}: {error}")
        self.report(warning, kind=(what, type(error).__name__))


def _reason(error: Exception) -> str:
    text = str(error) or "no reason given"
    if not isinstance(error, TwinstreamError | Reject):
        text = f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:_LINE]
