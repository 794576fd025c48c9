"""The driver of a pull engine: it carries out the actions that the engine requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from js_async.consume.consumer_recovery import ConsumerRecovery
from js_async.consume.pull_subscription import PullChannel
from twinstream.core.consume.absence_timer import AbsenceTimer
from twinstream.core.consume.pin import pin_of
from twinstream.core.consume.pull_engine import (
    Action,
    DropPin,
    Finish,
    Probed,
    PullEngine,
    SendProbe,
    SendPull,
)
from twinstream.core.consume.pull_error import of_consumer
from twinstream.core.consume.pull_request import PullLimits
from twinstream.core.consume.reports import (
    ConsumerRecreated,
    Pinned,
    PullReport,
    PullWarning,
    Unpinned,
)
from twinstream.core.deadline import monotonic
from twinstream.core.log.reporter import Reporter
from twinstream.core.server_faults.delays import DELETION
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.single_answers import Verdict
from twinstream.core.wire.status import Kind, Status
from twinstream.errors import (
    ConnectionLost,
    ConsumerDeleted,
    NoResponders,
    PermissionDenied,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.errors.transient import FAILED_REQUEST, NO_RESPONSE

__all__ = ["PullDriver"]

# Statuses with which the server refuses a pull request. They do not show a loss of messages.
_HARMLESS: Final = {Kind.REFUSED, Kind.BUSY, Kind.TOO_BIG}


class PullDriver:
    """The driver of one iterator's pull engine: it sends pulls, handles errors and reports.

    A `fragile` iterator does not recover: it ends when messages may have been lost. Ordered reads
    use such iterators.
    """

    def __init__(
        self,
        recovery: ConsumerRecovery,
        limits: PullLimits,
        on_report: Callable[[PullReport], None] | None,
        fragile: bool,
    ) -> None:
        self._recovery: Final = recovery
        self._pins: Final = recovery.channels.pins
        self._report: Final[Reporter[PullReport]] = Reporter(
            on_report, stream=recovery.stream, consumer=recovery.name
        )
        self._fragile: Final = fragile
        self._recreate_at: float | None = None
        # The `epoch` of the transport that the engine knows of.
        self._epoch = 0
        # The token of the last pull that the engine does not count, or None.
        self._uncounted: bytes | None = None
        self.limits: Final = limits
        """The limits of the pulls."""
        self.doubt: Final = AbsenceTimer()
        """A timer of the time without responders, used if the user may not request the info."""
        self.error: TwinstreamError | None = None
        """The error that ended the iterator, or None."""

    def begin(self, channel: PullChannel, now: float) -> PullEngine:
        """Return a new engine, with the current limits and connection."""
        self._epoch = self._recovery.api.transport.epoch
        return PullEngine(self.limits, channel.token, now)

    def has_same_connection(self) -> bool:
        """Return whether the connection is the one that the engine knows of, and is not lost."""
        transport = self._recovery.api.transport
        return transport.epoch == self._epoch and transport.is_connected

    def note_connection(self, engine: PullEngine) -> None:
        """Report to the engine whether the connection was lost or restored."""
        transport = self._recovery.api.transport
        if transport.epoch != self._epoch:
            self._epoch = transport.epoch
            engine.restored(monotonic())
            self.doubt.clear()
            self.note_break("the client reconnected")
        elif not transport.is_connected:
            engine.lost()

    def note_status(self, engine: PullEngine, status: Status) -> None:
        """Report a status to the engine."""
        if status.kind is not Kind.NO_RESPONDERS:
            self.doubt.clear()
        elif status.token == self._uncounted:
            engine.probe_failed(monotonic())
        engine.status(status, monotonic())

    async def pull_uncounted(
        self, channel: PullChannel, engine: PullEngine, limits: PullLimits
    ) -> bytes:
        """Send a pull request that the engine does not count. Return the token of the request."""
        engine.probing()
        token = self._uncounted = channel.token()
        await channel.pull(token, limits.max_messages, None, limits)
        return token

    async def carry_out(self, channel: PullChannel, engine: PullEngine, waited: bool) -> None:
        """Poll the engine and carry out its actions.

        `waited` is true if a caller has waited for a message since the last message was taken.
        """
        if self._recreate_at is not None:
            await self._recreate(engine, self._recreate_at)
        engine.note_response(channel.box.heard_at)
        actions = deque(engine.poll(monotonic(), watch=waited))
        try:
            while actions:
                await self._carry_out_one(channel, engine, actions.popleft())
        finally:
            # The call was interrupted. The next call carries out the remaining actions.
            if actions:
                engine.put_back(actions)

    async def _carry_out_one(
        self, channel: PullChannel, engine: PullEngine, action: Action
    ) -> None:
        """Carry out one action of the pull engine."""
        match action:
            case SendPull(token, batch, max_bytes):
                # An earlier action of the same poll may have stopped the engine.
                if not engine.is_stopped:
                    await self._pull(channel, token, batch, max_bytes)
            case SendProbe(token):
                if channel.gets_several:
                    engine.lone.give_up()
                else:
                    await self._probe(channel, token)
            case Probed(verdict):
                if verdict is Verdict.SEVERAL:
                    channel.note_several()
                elif verdict is Verdict.SINGLE:
                    where = self._recovery
                    error = of_consumer(channel.single_answers(), where.stream, where.name)
                    self._recover_or_end(engine, error)
            case PullWarning(text, status):
                self.report(action)
                if status is None or status.kind not in _HARMLESS:
                    self.note_break(text)
                if status is not None and status.kind is Kind.NO_RESPONDERS:
                    await self._look_for_consumer(engine)
            case DropPin():
                priority = self.limits.priority
                if priority is not None and self._pins.drop(priority.group):
                    self.report(Unpinned(priority.group))
            case Finish(error):
                where = self._recovery
                self._recover_or_end(engine, of_consumer(error, where.stream, where.name))

    async def _pull(
        self, channel: PullChannel, token: bytes, batch: int, max_bytes: int | None
    ) -> None:
        """Send a pull request, unless the client is disconnected.

        After a reconnect, the engine discards all requests and pulls again.
        """
        if not self._recovery.api.transport.is_connected:
            return
        try:
            await channel.pull(token, batch, max_bytes, self.limits)
        except RequestTimeout:
            # The connection was lost and not restored in time.
            return

    async def _probe(self, channel: PullChannel, token: bytes) -> None:
        """Send a probe, unless the client is disconnected."""
        if self._recovery.api.transport.is_connected:
            try:
                await channel.probe(token, self.limits)
            except RequestTimeout:
                return

    def note_break(self, reason: str) -> None:
        """Record that messages may have been lost. This ends a `fragile` iterator."""
        if self._fragile:
            self.error = ConnectionLost(reason)

    async def _look_for_consumer(self, engine: PullEngine) -> None:
        """Check whether a pull had no responders because the consumer was deleted.

        If it was deleted, apply the `on_deleted` policy. If the user may not request the consumer's
        info, apply the policy after a minute without responders.
        """
        try:
            deletion = None if self.doubt.is_known else await self._recovery.is_gone()
        except PermissionDenied:
            # The user may not request the consumer's info. Start the timer `doubt`. It returns an
            # error after a minute without responders.
            deletion = None
            self.doubt.grow(monotonic())
        except FAILED_REQUEST:
            # The consumer or the API has no leader now: keep pulling.
            return
        error = self.doubt.grow(monotonic()) if self.doubt.is_known else deletion
        if error is not None:
            self._recover_or_end(engine, error)

    def _recover_or_end(self, engine: PullEngine, error: TwinstreamError) -> None:
        is_gone = isinstance(error, ConsumerDeleted | NoResponders)
        if not is_gone or self._recovery.policy == "raise":
            engine.stop()
            self.error = error
        elif self._recovery.policy == "recreate":
            self._recreate_at = engine.go_on(monotonic(), DELETION)
        else:
            engine.go_on(monotonic())

    async def _recreate(self, engine: PullEngine, at: float) -> None:
        """Re-create the consumer. Do nothing before the monotonic time `at`."""
        if monotonic() < at:
            return
        try:
            if await self._recovery.recreate():
                self.report(ConsumerRecreated(self._recovery.name))
        except NO_RESPONSE:
            # No server can create the consumer now: try again later.
            self._recreate_at = engine.go_on(monotonic(), DELETION)
        else:
            self._recreate_at = None

    def note_pin(self, frame: Frame, *, quietly: bool = False) -> None:
        """Record the pin in the headers of a message, and report a new pin unless `quietly`."""
        priority = self.limits.priority
        if priority is None or not priority.may_pin:
            return
        group = priority.group
        pin = pin_of(frame)
        if pin is not None and self._pins.note(group, pin) and not quietly:
            self.report(Pinned(group, pin))

    def report(self, report: PullReport) -> None:
        """Log a report, and pass it to `on_report` unless it repeats the previous one."""
        if isinstance(report, PullWarning) and report.again:
            self._report.log(report)
        else:
            self._report(report)
