# Generated from src/js_async/exactly_once/outbox_relay.py by codegen/twin.py. Edit that file instead.
"""The relay: takes events out of an outbox and stores each once, until the outbox is empty."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from twinstream.core.deadline import NEVER, Deadline, Seconds, seconds
from twinstream.errors import (
    BadArgument,
    ConnectionClosed,
    NotPromised,
    OutcomeUnknown,
    PublishFailures,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.core.exactly_once.outbox import (
    Lanes,
    OutboxEvent,
    OutboxReport,
    graver,
    is_fault_of_event,
    is_of_event_alone,
)
from twinstream.core.publish.request import PublishFailure, UnreadFailures
from twinstream.core.log.reporter import Reporter
from twinstream.core.exactly_once.conditional_write import Stored
from twinstream.core.wire.subjects import check_name
from js_sync.runtime.concurrency import Signal, Task, spawn
from js_sync.client.closing import WorksBeside
from js_sync.exactly_once.idempotent_writer import By, ByIdentity, OnceWriter, Written, once_writer
from js_sync.exactly_once.outbox_window import OutboxWindow
from js_sync.client.owned import Owned
from js_sync.exactly_once.outbox_store_calls import StoreCalls, StoreTrouble
from js_sync.exactly_once.outbox_store import OutboxStore

if TYPE_CHECKING:
    from js_sync.exactly_once.stream_guarantees import PromisedStreams
    from js_sync.jetstream import JetStream

__all__ = ["OutboxRelay"]

# Events that are read from the outbox at once; as many acknowledgements may be under way.
_PAGE: Final = 500
# Stored events are taken out of the outbox so many at once: each time costs a write to disk.
_TOGETHER: Final = 100
_LONGEST_PAUSE: Final = 5.0


class OutboxRelay(Owned, WorksBeside):
    """Stores the events of an outbox; made by `JetStream.outbox`.

    Used in a `with` block it works beside the program until the end of the block; `drain` works
    until nothing waits. What it met is logged, and passed to `on_report`. Without that, events
    that were refused raise `PublishFailures` at the end of `drain`, `stop`, `wait` or the block.
    """

    _area = "outbox"

    def __init__(
        self,
        jet: JetStream,
        streams: PromisedStreams,
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
        self._jet: Final = jet
        self._store: Final = StoreCalls(store)
        self._stream: Final = check_name(stream, "stream")
        self._timeout: Final = seconds(timeout)
        self._poll: Final = max(seconds(poll, "poll"), 0.001)
        self._report: Final[Reporter[OutboxReport]] = Reporter(on_report, stream=stream)
        self._writer: Final[OnceWriter] = once_writer(jet, streams, stream, by, self._timeout)
        self._window: OutboxWindow | None = None
        self._stop: Final = Signal()
        self._awake: Final = Signal()
        self._task: Task | None = None
        self._pause = self._poll
        # With `on_report` the program gets each failure when it happens.
        self._unseen: Final = UnreadFailures(on_report is None)
        self.stored = 0
        """Events that were stored, by this relay or found stored."""
        self.refused = 0
        """Events that were set aside because they cannot be stored."""

    def __repr__(self) -> str:
        return f"<OutboxRelay to {self._stream}: {self.stored} stored, {self.refused} refused>"

    # ---- life

    def start(self) -> None:
        """Start to work beside the program; raises `NotPromised`, `StreamNotFound`."""
        if self._task is not None:
            raise BadArgument("the relay was started already")
        self._note_begun()
        self._writer.check()
        self._task = spawn(self._run, "twinstream-outbox")

    def stop(self, timeout: Seconds = 30.0) -> None:
        """End; what waits stays in the outbox. Raises the error that ended the work, if one did.

        Raises `RequestTimeout` when that takes longer than `timeout` seconds. A `drain` that is
        under way ends by itself, with an error if events still wait.
        """
        self._stop.set()
        self._awake.set()
        self._join(timeout)
        if self._task is not None:
            # Whoever drains lets go of the outbox when he is done with it.
            self._release()

    def wait(self, timeout: Seconds | None = None) -> None:
        """Return when the relay has ended: by `stop`, or by an error, which is raised here.

        Raises `RequestTimeout` after `timeout` seconds, and `NotStarted`.
        """
        self._require_begun(f"the relay of an outbox to {self._stream}")
        self._join(timeout)

    def _join(self, timeout: Seconds | None) -> None:
        if self._task is not None and not self._task.join(Deadline.after(timeout)):
            raise RequestTimeout("the relay is still working")
        self._raise_kept()
        self._raise_refused()

    def _raise_refused(self) -> None:
        failures = self._unseen.take()
        if failures is not None:
            raise failures

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._is_parents:
            return
        try:
            self.stop()
        except PublishFailures as failures:
            if error is None:
                raise
            error.add_note(str(failures))

    def wake(self) -> None:
        """Look into the outbox now instead of at the next poll."""
        self._awake.set()

    def drain(self, timeout: Seconds | None = None) -> int:
        """Store what waits, and return how many events were stored, when no more do.

        Events that are refused, and those of their keys, stay. Not for a relay that was started.
        Raises `PublishFailures` if events were refused and there is no `on_report`;
        `RequestTimeout` after `timeout` seconds, and what is in flight then, with the last trouble;
        `TwinstreamError` after a `stop` while events are waiting.
        """
        if self._task is not None:
            raise BadArgument("the relay works by itself: it was started")
        deadline = Deadline.after(timeout)
        before = self.stored
        try:
            while True:
                trouble = self._claim() or self._round(deadline)
                if trouble is None:
                    self._raise_refused()
                    return self.stored - before
                if self._stop.is_set():
                    raise TwinstreamError(f"events are still waiting; {trouble}") from trouble
                if deadline.remaining() < self._pause:
                    raise RequestTimeout(f"events are still waiting; {trouble}") from trouble
                self._rest()
        finally:
            self._release()

    # ---- work

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._awake.clear()
                if self._stop.is_set():
                    # Whoever ends it may have raised the flag already.
                    break
                trouble = self._claim() or self._round(NEVER)
                if trouble is None:
                    self._pause = self._poll
                    self._awake.sleep(Deadline.after(self._poll))
                elif not self._stop.is_set():
                    self._rest()
        except Exception as error:
            self._keep_error(error, f"the relay of an outbox to {self._stream}")
            self._tell_end(error)
        finally:
            self._release()

    def _rest(self) -> None:
        """Pause after trouble, longer each time."""
        self._stop.sleep(Deadline.after(self._pause))
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _claim(self) -> TwinstreamError | None:
        """Become the only relay of the outbox; return why that is not so yet."""
        try:
            free = self._store.claim()
        except StoreTrouble as trouble:
            return self._tell(trouble)
        if not free:
            return self._tell(TwinstreamError("another relay works on this outbox"))
        return None

    def _release(self) -> None:
        self._window = None
        self._store.release()

    def _round(self, deadline: Deadline) -> TwinstreamError | None:
        """Send what waits, once; return the last trouble, None when nothing waits any more."""
        try:
            self._check()
            return self._pages(deadline)
        except (NotPromised, OutcomeUnknown, BadArgument, ConnectionClosed):
            raise
        except TwinstreamError as error:
            return self._tell(error)

    def _check(self) -> None:
        stream = self._writer.check()
        if isinstance(self._writer, ByIdentity) and self._window is None:
            window = OutboxWindow(self._jet, self._store, stream, self._timeout)
            window.look()
            self._window = window
            self.stored += window.found

    def _pages(self, deadline: Deadline) -> TwinstreamError | None:
        """Send page by page; an event that fails by its own fault does not hold up later ones."""
        passed: TwinstreamError | None = None
        after = 0
        held: set[str] = set()
        began = False
        while events := self._pending(after):
            # Once in any case: the shortest time is enough for what is stored at once.
            if self._stop.is_set() or (began and deadline.expired()):
                return passed or self._cut_short()
            began = True
            all_went, trouble = self._page(events, held, deadline)
            if trouble is not None and not (all_went and is_of_event_alone(trouble)):
                return trouble
            passed = trouble or passed
            if passed is not None and all_went:
                after = events[-1].number
        return passed

    def _pending(self, after: int) -> list[OutboxEvent]:
        return self._store.call(lambda store: store.pending(_PAGE, after))

    def _page(
        self, events: list[OutboxEvent], held: set[str], deadline: Deadline
    ) -> tuple[bool, TwinstreamError | None]:
        """Send events; tell whether all had their turn, and the gravest trouble."""
        lanes = Lanes(events, held)
        done: list[int] = []
        trouble: TwinstreamError | None = None
        began = False
        while wave := lanes.next_wave():
            if began and (self._stop.is_set() or deadline.expired()):
                self._finish(done)
                return False, trouble or self._cut_short()
            began = True
            if self._window is not None and not self._window.may_send(wave):
                self._finish(done)
                self._look_again(self._window)
                return False, trouble
            requests = [event.request(self._stream) for event in wave]
            results = self._writer.write(requests)
            for event, result in zip(wave, results, strict=True):
                if isinstance(result, Stored):
                    done.append(event.number)
                    self._pause = self._poll
                else:
                    lanes.hold(event)
                    trouble = graver(trouble, self._failed(event, result))
            if len(done) >= _TOGETHER:
                self._finish(done)
                done = []
        self._finish(done)
        return True, trouble

    def _look_again(self, window: OutboxWindow) -> None:
        before = window.found
        window.look()
        self.stored += window.found - before

    def _finish(self, done: list[int]) -> None:
        if done:
            self._store.call(lambda store: store.done(done))
            self.stored += len(done)
            if self._window is not None:
                self._window.forget(done)

    def _failed(self, event: OutboxEvent, error: Written) -> TwinstreamError | None:
        """Set an event aside if it can never be stored, else return its trouble."""
        if isinstance(error, Stored):
            return None
        if isinstance(error, ConnectionClosed):
            raise error
        refused = is_fault_of_event(error)
        if refused:
            self._store.call(lambda store: store.refuse(event.number, str(error)))
            self.refused += 1
            self._unseen.add(PublishFailure(event.request(self._stream), error))
        self._tell(error, event, refused)
        return None if refused else error

    def _tell_end(self, error: Exception) -> None:
        if not isinstance(error, TwinstreamError):
            error = TwinstreamError(repr(error))
        # The report itself may have raised what ended the relay.
        with suppress(Exception):
            # Logged already, with the error as it was.
            self._report.pass_on(OutboxReport(error=error, ended=True))

    def _tell(
        self, error: TwinstreamError, event: OutboxEvent | None = None, refused: bool = False
    ) -> TwinstreamError:
        self._report(OutboxReport(error=error, event=event, refused=refused))
        return error

    def _cut_short(self) -> TwinstreamError:
        if self._stop.is_set():
            return TwinstreamError("the relay was stopped before all had their turn")
        return RequestTimeout("the time was over before all had their turn")
