"""The relay of an outbox, which stores each event in a stream once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, Self

from js_async.api.api import Api
from js_async.client.closing import WorksBeside
from js_async.client.owned import Owned
from js_async.exactly_once.conditional_writes import SubjectWrites
from js_async.exactly_once.idempotent_writer import (
    By,
    ByIdentity,
    IdempotentWriter,
    Written,
    once_writer,
)
from js_async.exactly_once.outbox_store import OutboxStore
from js_async.exactly_once.outbox_store_calls import StoreCalls, StoreTrouble
from js_async.exactly_once.outbox_window import OutboxWindow
from js_async.runtime.concurrency import Signal, Task, spawn
from twinstream.core.deadline import NEVER, Backoff, Deadline, Seconds, seconds
from twinstream.core.exactly_once.conditional_write import Stored
from twinstream.core.exactly_once.outbox import (
    Lanes,
    OutboxEvent,
    OutboxReport,
    graver,
    is_fault_of_event,
    is_of_event_alone,
)
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.log.reporter import Reporter
from twinstream.core.wire.subjects import check_name
from twinstream.errors import (
    BadArgument,
    ConnectionClosed,
    NotPromised,
    OutcomeUnknown,
    PublishFailure,
    PublishFailures,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.errors.publish_failures import UnreadFailures

__all__ = ["OutboxRelay"]

# The number of events to read from the outbox at once, and the maximum number in flight.
_PAGE: Final = 500
# The number of stored events that are removed from the outbox together. Each removal waits for the
# disk.
_TOGETHER: Final = 100
_LONGEST_PAUSE: Final = 5.0


class OutboxRelay(Owned, WorksBeside):
    """A relay, which stores the events of an outbox in a stream. `JetStream.outbox` creates it.

    In a `with` block, it works in the background until the end of the block. `drain` instead works
    until no events are pending. Failures are logged and reported to `on_report`. Without
    `on_report`, refused events raise `PublishFailures` at the end of `drain`, `stop`, `wait` or the
    block.
    """

    _area = "outbox"

    def __init__(
        self,
        api: Api,
        writes: SubjectWrites,
        store: OutboxStore,
        stream: str,
        by: By,
        *,
        poll: Seconds,
        timeout: Seconds,
        on_report: Callable[[OutboxReport], None] | None,
    ) -> None:
        super().__init__()
        if not callable(getattr(store, "claim", None)):
            raise BadArgument(f"an outbox is expected, such as a SqliteOutbox, got {store!r}")
        self._api: Final = api
        self._store: Final = StoreCalls(store)
        self._stream: Final = check_name(stream, "stream")
        self._timeout: Final = seconds(timeout)
        self._poll: Final = max(seconds(poll, "poll"), 0.001)
        self._report: Final[Reporter[OutboxReport]] = Reporter(on_report, stream=stream)
        self._writer: Final[IdempotentWriter] = once_writer(api, writes, stream, by, self._timeout)
        self._window: OutboxWindow | None = None
        self._stop: Final = Signal()
        self._awake: Final = Signal()
        self._task: Task | None = None
        self._backoff: Final = Backoff(self._poll, max(self._poll, _LONGEST_PAUSE))
        self._pauses = 0
        # With `on_report`, each failure is reported when it happens, so no call raises it later.
        self._unseen: Final = UnreadFailures(on_report is None)
        self.stored = 0
        """The number of events that this relay stored, or found in the stream."""
        self.refused = 0
        """The number of events that this relay marked as refused: they can never be stored."""

    def __repr__(self) -> str:
        counts = f"{self.stored} stored, {self.refused} refused"
        return f"<OutboxRelay to {self._stream}: {counts}{self._ended_by}>"

    # ---- lifecycle

    async def start(self) -> None:
        """Start to work in the background.

        Raises:
            NotPromised: The settings of the stream allow duplicates.
            StreamNotFound: The stream does not exist.
            BadArgument: The relay was started already.
        """
        if self._task is not None:
            raise BadArgument("the relay was started already")
        self._note_begun()
        await self._writer.check()
        self._task = spawn(self._run, "twinstream-outbox")

    async def stop(self, timeout: Seconds = 30.0) -> None:
        """Stop the relay. Pending events stay in the outbox.

        A `drain` that runs in another task or thread ends, too. It raises `TwinstreamError` if
        events are still pending.

        Args:
            timeout: How long to wait for the end of the relay, in seconds.

        Raises:
            RequestTimeout: The relay has not ended in time.
            PublishFailures: Events were refused, and there is no `on_report`.
            Exception: The error that ended the work, if there was one.
        """
        if self._is_parents:
            return
        self._stop.set()
        self._awake.set()
        if HOOKS:
            reached("relay: stopping", self)
        await self._join(timeout)
        if self._task is not None:
            # Without `_task`, `drain` may be running. It releases the outbox when it ends.
            await self._release()

    async def wait(self, timeout: Seconds | None = None) -> None:
        """Wait until the relay has ended, by `stop` or by an error.

        Args:
            timeout: The longest wait in seconds; None waits without limit.

        Raises:
            RequestTimeout: The relay has not ended in time. It continues.
            NotStarted: The relay was not started.
            PublishFailures: Events were refused, and there is no `on_report`.
            Exception: The error that ended the relay.
        """
        self._require_begun(f"the relay of an outbox to {self._stream}")
        await self._join(timeout)

    async def _join(self, timeout: Seconds | None) -> None:
        if self._task is not None and not await self._task.join(Deadline.after(timeout)):
            raise RequestTimeout("the relay is still working")
        self._raise_kept()
        self._raise_refused()

    def _raise_refused(self) -> None:
        failures = self._unseen.take()
        if failures is not None:
            raise failures

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._is_parents:
            return
        try:
            await self.stop()
        except PublishFailures as failures:
            if error is None:
                raise
            error.add_note(str(failures))

    def wake(self) -> None:
        """Let the relay check the outbox now instead of at the next poll."""
        self._awake.set()

    async def drain(self, timeout: Seconds | None = None) -> int:
        """Store all pending events; return how many were stored.

        Refused events, and other events of their keys, stay in the outbox.

        Args:
            timeout: The time limit in seconds; None waits without limit. The call may take longer,
                until the messages in flight are acknowledged.

        Raises:
            PublishFailures: Events were refused, and there is no `on_report`.
            RequestTimeout: Events were still pending at the timeout. The error names the last
                failure.
            TwinstreamError: `stop` was called while events were pending.
            BadArgument: The relay was started, and works in the background.
        """
        if self._task is not None:
            raise BadArgument("the relay was started and works in the background")
        deadline = Deadline.after(timeout)
        before = self.stored
        try:
            while True:
                trouble = await self._claim() or await self._round(deadline)
                if trouble is None:
                    self._raise_refused()
                    return self.stored - before
                if self._stop.is_set():
                    raise TwinstreamError(f"events are still pending; {trouble}") from trouble
                if deadline.remaining() < self._backoff.pause(self._pauses + 1):
                    raise RequestTimeout(f"events are still pending; {trouble}") from trouble
                await self._pause()
        finally:
            await self._release()

    # ---- work

    async def _run(self) -> None:
        try:
            while not self._stop.is_set():
                if HOOKS:
                    reached("relay: before clear", self)
                self._awake.clear()
                if self._stop.is_set():
                    # `stop` may have set `_awake` just before it was cleared.
                    break
                trouble = await self._claim() or await self._round(NEVER)
                if trouble is None:
                    self._pauses = 0
                    await self._awake.sleep(Deadline.after(self._poll))
                elif not self._stop.is_set():
                    await self._pause()
        except Exception as error:
            self._keep_error(error, f"the relay of an outbox to {self._stream}")
            self._report_end(error)
        finally:
            await self._release()

    async def _pause(self) -> None:
        """Pause after a failure. The pauses grow until a round succeeds."""
        self._pauses += 1
        await self._stop.sleep(Deadline.after(self._backoff.pause(self._pauses)))

    async def _claim(self) -> TwinstreamError | None:
        """Claim the outbox for this relay. Return the error if the claim failed, else None."""
        try:
            free = await self._store.claim()
        except StoreTrouble as trouble:
            return self._report_error(trouble)
        if not free:
            return self._report_error(TwinstreamError("another relay works on this outbox"))
        return None

    async def _release(self) -> None:
        self._window = None
        await self._store.release()

    async def _round(self, deadline: Deadline) -> TwinstreamError | None:
        """Send each pending event once, and return an error if one of them must be sent again.

        Returns None if all events were stored or refused. Raises errors that end the relay.
        """
        try:
            await self._check()
            return await self._pages(deadline)
        except (NotPromised, OutcomeUnknown, BadArgument, ConnectionClosed):
            raise
        except TwinstreamError as error:
            return self._report_error(error)

    async def _check(self) -> None:
        stream = await self._writer.check()
        if isinstance(self._writer, ByIdentity) and self._window is None:
            window = OutboxWindow(self._api, self._store, stream, self._timeout)
            await window.look()
            self._window = window
            self.stored += window.found

    async def _pages(self, deadline: Deadline) -> TwinstreamError | None:
        """Send the pending events page by page. Return an error if one of them must be sent again.

        Returns None if all events were stored or refused. If an error concerns only its event, the
        next page is still sent. After any other error, the method returns.
        """
        passed: TwinstreamError | None = None
        after = 0
        held: set[str] = set()
        began = False
        while events := await self._pending(after):
            # Send the first page even after the deadline, so that short timeouts allow progress.
            if self._stop.is_set() or (began and deadline.expired()):
                return passed or self._cut_short()
            began = True
            all_went, trouble = await self._page(events, held, deadline)
            if trouble is not None and not (all_went and is_of_event_alone(trouble)):
                return trouble
            passed = trouble or passed
            if passed is not None and all_went:
                after = events[-1].number
        return passed

    async def _pending(self, after: int) -> list[OutboxEvent]:
        return await self._store.call(lambda store: store.pending(_PAGE, after))

    async def _page(
        self, events: list[OutboxEvent], held: set[str], deadline: Deadline
    ) -> tuple[bool, TwinstreamError | None]:
        """Send the events of a page. Return whether the page is finished, and the gravest error.

        The page is not finished if `stop` was called, if the deadline has passed, or if the stream
        had to be scanned first. The error is None if no event must be sent again.

        `held` contains the keys of events that failed. Other events of these keys are not sent.
        """
        lanes = Lanes(events, held)
        done: list[int] = []
        trouble: TwinstreamError | None = None
        began = False
        while wave := lanes.next_wave():
            if began and (self._stop.is_set() or deadline.expired()):
                await self._finish(done)
                return False, trouble or self._cut_short()
            began = True
            wave = await self._sound(wave, lanes)
            if self._window is not None and not self._window.may_send(wave):
                await self._finish(done)
                await self._look_again(self._window)
                return False, trouble
            requests = [event.request(self._stream) for event in wave]
            results = await self._writer.write(requests)
            for event, result in zip(wave, results, strict=True):
                if isinstance(result, Stored):
                    done.append(event.number)
                    self._pauses = 0
                else:
                    lanes.hold(event)
                    trouble = graver(trouble, await self._failed(event, result))
            if len(done) >= _TOGETHER:
                await self._finish(done)
                done = []
        await self._finish(done)
        return True, trouble

    async def _sound(self, wave: list[OutboxEvent], lanes: Lanes) -> list[OutboxEvent]:
        """Refuse the events of a wave that could not be read, and return the others."""
        for event in wave:
            if event.damage:
                lanes.hold(event)
                await self._failed(event, BadArgument(f"damaged in the outbox: {event.damage}"))
        return [event for event in wave if not event.damage]

    async def _look_again(self, window: OutboxWindow) -> None:
        before = window.found
        await window.look()
        self.stored += window.found - before

    async def _finish(self, done: list[int]) -> None:
        if done:
            await self._store.call(lambda store: store.done(done))
            self.stored += len(done)
            if self._window is not None:
                self._window.forget(done)

    async def _failed(self, event: OutboxEvent, error: Written) -> TwinstreamError | None:
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
            self._unseen.add(PublishFailure(event.request(self._stream), error))
        self._report_error(error, event, refused)
        return None if refused else error

    def _report_end(self, error: Exception) -> None:
        if not isinstance(error, TwinstreamError):
            error = TwinstreamError(repr(error))
        # Ignore an error of the callback. The callback may also have raised `error`, which is
        # already logged.
        with suppress(Exception):
            self._report.pass_on(OutboxReport(error=error, ended=True))

    def _report_error(
        self, error: TwinstreamError, event: OutboxEvent | None = None, refused: bool = False
    ) -> TwinstreamError:
        self._report(OutboxReport(error=error, event=event, refused=refused))
        return error

    def _cut_short(self) -> TwinstreamError:
        if self._stop.is_set():
            return TwinstreamError("the relay was stopped before all events were tried")
        return RequestTimeout("the deadline passed before all events were tried")
