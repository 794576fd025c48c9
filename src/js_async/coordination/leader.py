"""Leader election: a candidate campaigns, leads for a term and steps down."""

from __future__ import annotations

from functools import partial
from typing import Final, Self

from js_async.client.closing import WorksBeside, failure_of
from js_async.client.owned import Owned
from js_async.coordination.acquire import SlotAcquisition
from js_async.coordination.lease import Lease
from js_async.coordination.slot import Place, Slots, may_pass
from js_async.runtime.concurrency import Handler, Signal, Task, call, check_handler, spawn
from twinstream.core.coordination.coordination import check_coordination
from twinstream.core.coordination.lease_engine import Terms
from twinstream.core.coordination.lease_record import SlotRecord
from twinstream.core.deadline import NEVER, Deadline, Seconds, seconds
from twinstream.core.log.events import Elected, WillRetry
from twinstream.core.log.logger import Log
from twinstream.errors import (
    BadArgument,
    RequestTimeout,
    StreamNotFound,
    TwinstreamError,
)

__all__ = ["Leader"]

# The pause between two checks whether a deleted stream exists again (seconds).
_GONE: Final = 1.0


class Leader(Owned, WorksBeside):
    """A candidate of an election, created by `Coordination.leader`.

    It campaigns in a `with` block, or between `start` and `stop`. If the stream is deleted, the
    candidate waits until the stream is re-created.

    Three kinds of error end the campaign: an error of a handler, unsuitable settings of a
    re-created stream, and an error that waiting cannot resolve. `wait` and `stop` raise the error.
    """

    _area = "coordination"

    def __init__(
        self,
        place: Place,
        name: str,
        terms: Terms,
        note: str,
        on_elected: Handler[Lease] | None,
        on_lost: Handler[Lease] | None,
    ) -> None:
        super().__init__()
        for what, handler in {"on_elected": on_elected, "on_lost": on_lost}.items():
            if handler is not None:
                check_handler(handler, what)
        self._place: Final = place
        self._name: Final = name
        self._terms: Final = terms
        self._note: Final = note
        self._on_elected: Final = on_elected
        self._on_lost: Final = on_lost
        self._subject: Final = place.subjects.slot("leader", name)
        self._asking: SlotAcquisition | None = None
        self._lease: Lease | None = None
        self._campaign: Task | None = None
        self._term: _Term | None = None
        self._stopping: Final = Signal()
        self._pause = 0.0
        self._gone = False
        self._log: Final = Log("coordination")
        self.terms = 0
        """The number of times that this candidate was elected."""

    # ---- state

    @property
    def name(self) -> str:
        """The name of the election, which all its candidates share."""
        return self._name

    @property
    def lease(self) -> Lease | None:
        """The lease of the current term; None while this candidate does not lead."""
        lease = self._lease
        return lease if lease is not None and lease.is_held else None

    @property
    def is_leader(self) -> bool:
        """Whether this candidate is certainly the only leader now, by the clock of this machine."""
        return self.lease is not None

    def __repr__(self) -> str:
        state = "leads" if self.is_leader else "does not lead"
        return f"<Leader {self._place.stream} {self._name}: {state}{self._ended_by}>"

    async def leader(self) -> SlotRecord | None:
        """Return the record of the current leader, or None if there is no leader."""
        return await Slots(self._place).look(self._subject)

    # ---- lifecycle

    async def start(self) -> None:
        """Start the campaign. Raises `BadArgument` if the campaign was started already."""
        if self._campaign is not None:
            raise BadArgument(f"leader {self._name}: the campaign was started already")
        self._note_begun()
        self._campaign = spawn(self._run, f"twinstream-leader-{self._name}")

    async def step_down(self, pause: Seconds = 0.0) -> bool:
        """Give up the current term. Return whether the server confirmed the release of the lease.

        If this candidate does not lead, do nothing and return False.

        Args:
            pause: Time in seconds after which the candidate campaigns again.
        """
        checked = seconds(pause, "pause")
        # Without a term, leave `_pause` as it is: the pause of an earlier call may still apply.
        lease = self.lease
        if lease is None:
            return False
        self._pause = checked
        return await lease.release()

    async def stop(self, timeout: Seconds = 30.0) -> None:
        """End the term and the campaign, and wait until the handlers have ended.

        A handler may call `stop`. Then the call does not wait: the campaign ends after the handler.

        Args:
            timeout: The longest wait in seconds.

        Raises:
            RequestTimeout: A handler has not ended in time.
            NotStarted: The campaign was not started.
            Exception: The error that ended the campaign, if there was one.
        """
        if self._is_parents:
            return
        self._require_begun(f"the campaign for leader {self._name}")
        self._stopping.set()
        if self._asking is not None:
            self._asking.give_up()
        if self._lease is not None:
            await self._lease.release()
        await self.wait(timeout)

    async def wait(self, timeout: Seconds | None = None) -> None:
        """Wait until the campaign has ended, by `stop` or by an error.

        Args:
            timeout: The longest wait in seconds; None waits without limit.

        Raises:
            RequestTimeout: The campaign has not ended in time. It continues.
            NotStarted: The campaign was not started.
            Exception: The error that ended the campaign.
        """
        self._require_begun(f"the campaign for leader {self._name}")
        campaign, term = self._campaign, self._term
        if campaign is None or campaign.is_current() or (term is not None and term.is_current()):
            return
        if not await campaign.join(Deadline.after(timeout)):
            raise RequestTimeout(f"leader {self._name}: the campaign or a handler is still running")
        self._raise_kept()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._is_parents:
            await self.stop()

    # ---- the campaign

    async def _run(self) -> None:
        error = await failure_of(self._run_campaign)
        if error is not None:
            self._keep_error(error, f"the campaign for leader {self._name}")

    async def _run_campaign(self) -> None:
        while not self._stopping.is_set():
            await self._campaign_once()
            pause, self._pause = self._pause, 0.0
            await self._stopping.sleep(Deadline.after(pause))

    async def _campaign_once(self) -> None:
        asking = SlotAcquisition(self._place, "leader", self._name, self._terms, self._note)
        self._asking = asking
        # `stop` cannot cancel the acquisition if it ran before `_asking` was set.
        if self._stopping.is_set():
            return
        try:
            if self._gone:
                await self._check_stream()
            slot = await asking.wait(NEVER)
        except TwinstreamError as error:
            if self._stopping.is_set() and isinstance(error, RequestTimeout):
                return
            if not await self._waits_for_stream(error):
                raise
        else:
            await self._lead(Lease(slot))

    async def _check_stream(self) -> None:
        """Check that the stream exists again, with suitable settings.

        Raises `StreamNotFound` or `NotPromised`.
        """
        info = await self._place.api.stream_info(self._place.stream)
        check_coordination(info.config, self._place.subjects)
        self._gone = False

    async def _waits_for_stream(self, error: TwinstreamError) -> bool:
        """Return whether the campaign can continue after an error, and pause if so.

        The campaign continues after `StreamNotFound`, because the stream may be re-created. While
        the stream is missing, temporary errors of requests do not end the campaign either.
        """
        if isinstance(error, StreamNotFound):
            self._gone = True
        elif not self._gone or not may_pass(error):
            return False
        self._log(WillRetry(f"the campaign for leader {self._name}", error))
        await self._stopping.sleep(Deadline.after(_GONE))
        return True

    async def _lead(self, lease: Lease) -> None:
        self._lease = lease
        lease._start()
        self.terms += 1
        self._log(Elected(self._name, lease.token))
        self._term = term = _Term(self._on_elected, lease)
        term.start()
        if self._stopping.is_set():
            await lease.release()
        await lease.wait_lost()
        self._lease = None
        try:
            if self._on_lost is not None:
                await call(self._on_lost, lease)
        finally:
            await term.ended()


class _Term:
    """The run of the `on_elected` handler during one term, in the background."""

    def __init__(self, handler: Handler[Lease] | None, lease: Lease) -> None:
        self._handler: Final = handler
        self._lease: Final = lease
        self._task: Task | None = None
        self._is_known: Final = Signal()
        self._error: BaseException | None = None

    def start(self) -> None:
        if self._handler is not None:
            self._task = spawn(self._run, f"twinstream-term-{self._lease.name}")
            self._is_known.set()

    def is_current(self) -> bool:
        """Return whether the caller runs in the handler."""
        return self._task is not None and self._task.is_current()

    async def _run(self) -> None:
        # Wait until `_task` is set, which `is_current` needs. Otherwise a handler that stops the
        # campaign would wait for itself.
        await self._is_known.sleep(NEVER)
        if self._handler is not None:
            # `ended` raises the error.
            self._error = await failure_of(partial(call, self._handler, self._lease))
        if self._error is not None:
            await self._lease.release()

    async def ended(self) -> None:
        """Wait until the handler has ended; raise its error, if there was one."""
        if self._task is not None:
            await self._task.join(NEVER)
        if self._error is not None:
            raise self._error
