"""Doing what the engine of an iteration decided: pulls, and what is mended, told or the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from js_async.consume.consumer_recovery import DELETION, Missing
from js_async.consume.pull_subscription import PullChannel
from twinstream.core.deadline import monotonic
from twinstream.core.consume.absence_timer import Doubt
from twinstream.errors import (
    ConnectionLost,
    ConsumerDeleted,
    JetStreamError,
    NoResponders,
    PermissionDenied,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.core.consume.pin import pin_of
from twinstream.core.wire.protocol import Frame
from twinstream.core.consume.pull_engine import Action, DropPin, Finish, PullEngine, SendPull
from twinstream.core.consume.pull_error import of_consumer
from twinstream.core.consume.pull_request import PullLimits
from twinstream.core.log.reporter import Reporter
from twinstream.core.consume.reports import Pinned, PullReport, PullWarning, Recreated, Unpinned
from twinstream.core.wire.status import Kind

__all__ = ["Decisions"]

# Refusals of a request, with which nothing can have been lost.
_HARMLESS: Final = {Kind.REFUSED, Kind.BUSY, Kind.TOO_BIG}


class Decisions:
    """Carries out what the engine of one iteration decides.

    A `fragile` iteration must know that something may be lost, instead of having it mended: an
    ordered read.
    """

    def __init__(
        self,
        missing: Missing,
        limits: PullLimits,
        on_report: Callable[[PullReport], None] | None,
        fragile: bool,
    ) -> None:
        self._missing: Final = missing
        self._pins: Final = missing.channels.pins
        self._report: Final[Reporter[PullReport]] = Reporter(
            on_report, stream=missing.stream, consumer=missing.name
        )
        self._fragile: Final = fragile
        self._remake_at: float | None = None
        self.limits = limits
        """What the next pulls ask for."""
        self.doubt: Final = Doubt()
        """Whether the consumer is there, where nobody may be asked."""
        self.error: TwinstreamError | None = None
        """What ended the iteration."""

    async def carry_out(self, channel: PullChannel, engine: PullEngine, waited: bool) -> None:
        """Ask the engine what is to be done now, and do it; `waited` is whether for a message."""
        if self._remake_at is not None:
            await self._remake(engine, self._remake_at)
        engine.heard(channel.box.heard_at)
        actions = deque(engine.poll(monotonic(), watch=waited))
        try:
            while actions:
                await self._do(channel, engine, actions.popleft())
        finally:
            # Cut short in the middle: the rest is done the next time.
            if actions:
                engine.put_back(actions)

    async def _do(self, channel: PullChannel, engine: PullEngine, action: Action) -> None:
        match action:
            case SendPull(token, batch, max_bytes):
                await self._pull(channel, token, batch, max_bytes)
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
                where = self._missing
                self._mend_or_end(engine, of_consumer(error, where.stream, where.name))

    async def _pull(
        self, channel: PullChannel, token: bytes, batch: int, max_bytes: int | None
    ) -> None:
        """Send a pull. Without a link there is no need: the next link voids it and pulls anew."""
        if not self._missing.api.transport.is_connected:
            return
        try:
            await channel.pull(token, batch, max_bytes, self.limits)
        except RequestTimeout:
            # The link broke just now, and no other came in time.
            return

    def note_break(self, reason: str) -> None:
        """Note that something may be lost."""
        if self._fragile:
            self.error = ConnectionLost(reason)

    async def _look_for_consumer(self, engine: PullEngine) -> None:
        """Find out whether nobody answered because the consumer is gone."""
        try:
            gone = None if self.doubt.is_known else await self._missing.is_gone()
        except PermissionDenied:
            # Never to be known: as good as gone when it has lasted, and no harm before.
            gone = None
            self.doubt.grow(monotonic())
        except (NoResponders, RequestTimeout, ConnectionLost, JetStreamError):
            # No leader now: the pulls go on trying.
            return
        error = self.doubt.grow(monotonic()) if self.doubt.is_known else gone
        if error is not None:
            self._mend_or_end(engine, error)

    def _mend_or_end(self, engine: PullEngine, error: TwinstreamError) -> None:
        is_gone = isinstance(error, ConsumerDeleted | NoResponders)
        if not is_gone or self._missing.policy == "raise":
            engine.stop()
            self.error = error
        elif self._missing.policy == "recreate":
            self._remake_at = engine.go_on(monotonic(), DELETION)
        else:
            engine.go_on(monotonic())

    async def _remake(self, engine: PullEngine, at: float) -> None:
        """Make the consumer anew once its deletion is over."""
        if monotonic() < at:
            return
        try:
            if await self._missing.recreate():
                self.report(Recreated(self._missing.name))
        except (NoResponders, RequestTimeout, ConnectionLost):
            # Nobody can make it now: later.
            self._remake_at = engine.go_on(monotonic(), DELETION)
        else:
            self._remake_at = None

    def note_pin(self, frame: Frame) -> None:
        """Note who the server has pinned, as a message says."""
        priority = self.limits.priority
        if priority is None or not priority.may_pin:
            return
        group = priority.group
        pin = pin_of(frame)
        if pin is not None and self._pins.note(group, pin):
            self.report(Pinned(group, pin))

    def report(self, report: PullReport) -> None:
        """Log a report and pass it to `on_report`, unless it repeats the previous one."""
        if isinstance(report, PullWarning) and report.again:
            self._report.log(report)
        else:
            self._report(report)
