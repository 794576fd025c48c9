"""Leader election: a candidate campaigns in the background, leads for a term and steps down."""

from __future__ import annotations

from typing import Final, Self

from js_async.client.closing import WorksBeside, failure_of
from js_async.client.owned import Owned
from js_async.coordination.campaign import Campaign
from js_async.coordination.lease import Lease
from js_async.coordination.slot import Place, Slots
from js_async.runtime.concurrency import Handler, Task, check_handler, spawn
from twinstream.core.coordination.lease_engine import Terms
from twinstream.core.coordination.lease_record import SlotRecord
from twinstream.core.deadline import Deadline, Seconds, seconds
from twinstream.errors import BadArgument, RequestTimeout

__all__ = ["Leader"]


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
        self._campaign: Final = Campaign(place, name, terms, note, on_elected, on_lost)
        self._task: Task | None = None

    # ---- state

    @property
    def name(self) -> str:
        """The name of the election, which all its candidates share."""
        return self._name

    @property
    def lease(self) -> Lease | None:
        """The lease of the current term; None while this candidate does not lead."""
        return self._campaign.lease

    @property
    def terms(self) -> int:
        """The number of times that this candidate was elected."""
        return self._campaign.elections

    @property
    def is_leader(self) -> bool:
        """Whether this candidate is certainly the only leader now, by the clock of this machine."""
        return self.lease is not None

    def __repr__(self) -> str:
        state = "leads" if self.is_leader else "does not lead"
        return f"<Leader {self._place.stream} {self._name}: {state}{self._ended_by}>"

    async def leader(self) -> SlotRecord | None:
        """Return the record of the current leader, or None if there is no leader."""
        return await Slots(self._place).look(self._place.subjects.slot("leader", self._name))

    # ---- lifecycle

    async def start(self) -> None:
        """Start the campaign. Raises `BadArgument` if the campaign was started already."""
        if self._task is not None:
            raise BadArgument(f"leader {self._name}: the campaign was started already")
        self._note_begun()
        self._task = spawn(self._run, f"twinstream-leader-{self._name}")

    async def step_down(self, pause: Seconds = 0.0) -> bool:
        """Give up the current term. Return whether the server confirmed the release of the lease.

        If this candidate does not lead, do nothing and return False.

        Args:
            pause: Time in seconds after which the candidate campaigns again.
        """
        return await self._campaign.step_down(seconds(pause, "pause"))

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
        await self._campaign.stop()
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
        task = self._task
        if task is None or task.is_current() or self._campaign.is_handler():
            return
        if not await task.join(Deadline.after(timeout)):
            raise RequestTimeout(f"leader {self._name}: the campaign or a handler is still running")
        self._raise_kept()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._is_parents:
            await self.stop()

    async def _run(self) -> None:
        error = await failure_of(self._campaign.run)
        if error is not None:
            self._keep_error(error, f"the campaign for leader {self._name}")
