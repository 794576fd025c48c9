"""The sender of an outbox, which stores the pending events of an outbox in a stream."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from js_async.exactly_once.idempotent_writer import ByIdentity, IdempotentWriter, Written
from js_async.outbox.store_calls import StoreCalls, StoreTrouble
from js_async.outbox.window import OutboxWindow
from js_async.runtime.concurrency import Signal
from twinstream.core.deadline import Deadline, Failures
from twinstream.core.exactly_once.conditional_write import Stored
from twinstream.core.exactly_once.outbox import (
    Lanes,
    OutboxEvent,
    OutboxReport,
    graver,
    is_fault_of_event,
    is_of_event_alone,
    request_of,
)
from twinstream.core.log.reporter import Reporter
from twinstream.errors import (
    BadArgument,
    ConnectionClosed,
    OutcomeUnknown,
    PublishFailure,
    RequestTimeout,
    TwinstreamError,
    UnsuitableSettings,
)
from twinstream.errors.publish_failures import UnreadFailures

__all__ = ["OutboxSender"]

# The number of events to read from the outbox at once, and the maximum number in flight.
_PAGE: Final = 500
# The number of stored events that are removed from the outbox together. Each removal waits for the
# disk.
_TOGETHER: Final = 100


class OutboxSender:
    """Sends the pending events of an outbox in rounds, while it has the claim of the outbox.

    It ends a round early after `stopping` was set. `failures` counts failed rounds: it is cleared
    whenever an event is stored. `timeout` is the limit of an attempt (seconds).
    """

    def __init__(
        self,
        store: StoreCalls,
        writer: IdempotentWriter,
        stopping: Signal,
        failures: Failures,
        timeout: float,
        on_report: Callable[[OutboxReport], None] | None,
    ) -> None:
        self._store: Final = store
        self._writer: Final = writer
        self._stream: Final = writer.stream.name
        self._stopping: Final = stopping
        self._failures: Final = failures
        self._timeout: Final = timeout
        self._report: Final[Reporter[OutboxReport]] = Reporter(on_report, stream=self._stream)
        self._window: OutboxWindow | None = None
        # With `on_report`, each failure is reported when it happens, so no call raises it later.
        self._unseen: Final = UnreadFailures(on_report is None)
        self.stored = 0
        """The number of events that were stored, or found in the stream."""
        self.refused = 0
        """The number of events that were marked as refused: they can never be stored."""

    async def check_stream(self) -> None:
        """Check the settings of the stream. Raises `UnsuitableSettings` or `StreamNotFound`."""
        await self._writer.check()

    async def round(self, deadline: Deadline) -> TwinstreamError | None:
        """Claim the outbox, send each pending event once, and return an error of a failed round.

        A round has failed if the claim failed, or if an event must be sent again. Returns None if
        all events were stored or refused. Raises errors that end the relay.
        """
        return await self._claim() or await self._send(deadline)

    async def release(self) -> None:
        """Release the claim of the outbox, so that another relay can work."""
        self._window = None
        await self._store.release()

    def raise_refused(self) -> None:
        """Raise `PublishFailures` if events were refused without a report."""
        failures = self._unseen.take()
        if failures is not None:
            raise failures

    def report_end(self, error: Exception) -> None:
        """Report the error that ended the relay."""
        if not isinstance(error, TwinstreamError):
            error = TwinstreamError(repr(error))
        # Ignore an error of the callback. The callback may also have raised `error`, which is
        # already logged.
        with suppress(Exception):
            self._report.pass_on(OutboxReport(error=error, ended=True))

    async def _claim(self) -> TwinstreamError | None:
        """Claim the outbox for this relay. Return the error if the claim failed, else None."""
        try:
            free = await self._store.claim()
        except StoreTrouble as trouble:
            return self._report_error(trouble)
        if not free:
            return self._report_error(TwinstreamError("another relay works on this outbox"))
        return None

    async def _send(self, deadline: Deadline) -> TwinstreamError | None:
        """Send each pending event once, and return an error if one of them must be sent again.

        Returns None if all events were stored or refused. Raises errors that end the relay.
        """
        try:
            await self._check()
            return await self._send_pages(deadline)
        except (UnsuitableSettings, OutcomeUnknown, BadArgument, ConnectionClosed):
            raise
        except TwinstreamError as error:
            return self._report_error(error)

    async def _check(self) -> None:
        info = await self._writer.check()
        if isinstance(self._writer, ByIdentity) and self._window is None:
            window = OutboxWindow(self._store, self._writer.stream, info, self._timeout)
            await window.look()
            self._window = window
            self.stored += window.found

    async def _send_pages(self, deadline: Deadline) -> TwinstreamError | None:
        """Send the pending events page by page. Return an error if one of them must be sent again.

        Returns None if all events were stored or refused. If an error concerns only its event, the
        next page is still sent. After any other error, the method returns.
        """
        last_error: TwinstreamError | None = None
        after = 0
        failed_keys: set[str] = set()
        is_first = True
        while events := await self._next_events(after):
            # Send the first page even after the deadline, so that short timeouts allow progress.
            if self._stopping.is_set() or (not is_first and deadline.expired()):
                return last_error or self._cut_short()
            is_first = False
            is_finished, error = await self._send_page(events, failed_keys, deadline)
            concerns_event_only = is_finished and error is not None and is_of_event_alone(error)
            if error is not None and not concerns_event_only:
                return error
            last_error = error or last_error
            if last_error is not None and is_finished:
                # Failed events stay pending, so read the next page from behind this one.
                after = events[-1].number
        return last_error

    async def _next_events(self, after: int) -> list[OutboxEvent]:
        return await self._store.call(lambda store: store.pending(_PAGE, after))

    async def _send_page(
        self, events: list[OutboxEvent], failed_keys: set[str], deadline: Deadline
    ) -> tuple[bool, TwinstreamError | None]:
        """Send the events of a page. Return whether the page is finished, and the gravest error.

        The page is not finished if `stop` was called, if the deadline has passed, or if the stream
        had to be scanned first. The error is None if no event must be sent again.

        `failed_keys` contains the keys of events that failed. Other events of these keys are not
        sent.
        """
        lanes = Lanes(events, failed_keys)
        done: list[int] = []
        gravest: TwinstreamError | None = None
        is_first = True
        while batch := lanes.next_wave():
            # Send the first batch even after the deadline, so that short timeouts allow progress.
            if not is_first and (self._stopping.is_set() or deadline.expired()):
                await self._finish(done)
                return False, gravest or self._cut_short()
            is_first = False
            batch = await self._refuse_damaged(batch, lanes)
            if self._window is not None and not self._window.may_send(batch):
                await self._finish(done)
                await self._scan_again(self._window)
                return False, gravest
            requests = [request_of(event, self._stream) for event in batch]
            results = await self._writer.write(requests)
            for event, result in zip(batch, results, strict=True):
                if isinstance(result, Stored):
                    done.append(event.number)
                    self._failures.clear()
                else:
                    lanes.hold(event)
                    gravest = graver(gravest, await self._report_failed(event, result))
            if len(done) >= _TOGETHER:
                await self._finish(done)
                done = []
        await self._finish(done)
        return True, gravest

    async def _refuse_damaged(self, batch: list[OutboxEvent], lanes: Lanes) -> list[OutboxEvent]:
        """Refuse the events of a batch that could not be read, and return the others."""
        for event in batch:
            if event.damage:
                lanes.hold(event)
                await self._report_failed(
                    event, BadArgument(f"damaged in the outbox: {event.damage}")
                )
        return [event for event in batch if not event.damage]

    async def _scan_again(self, window: OutboxWindow) -> None:
        before = window.found
        await window.look()
        self.stored += window.found - before

    async def _finish(self, done: list[int]) -> None:
        if done:
            await self._store.call(lambda store: store.done(done))
            self.stored += len(done)
            if self._window is not None:
                self._window.forget(done)

    async def _report_failed(self, event: OutboxEvent, error: Written) -> TwinstreamError | None:
        """Report a failed event. Mark it as refused if it can never be stored.

        Return the error if the event should be sent again, else None.
        """
        if isinstance(error, Stored):
            return None
        if isinstance(error, ConnectionClosed):
            raise error
        refused = is_fault_of_event(error)
        if refused:
            await self._store.call(lambda store: store.refuse(event.number, str(error)))
            self.refused += 1
            self._unseen.add(PublishFailure(request_of(event, self._stream), error))
        self._report_error(error, event, refused)
        return None if refused else error

    def _report_error(
        self, error: TwinstreamError, event: OutboxEvent | None = None, refused: bool = False
    ) -> TwinstreamError:
        self._report(OutboxReport(error=error, event=event, refused=refused))
        return error

    def _cut_short(self) -> TwinstreamError:
        if self._stopping.is_set():
            return TwinstreamError("the relay was stopped before all events were tried")
        return RequestTimeout("the deadline passed before all events were tried")
