"""Leader election: a candidate campaigns in the background, leads for a term and steps down."""

from __future__ import annotations

from typing import Final, Self

from js_async.coordination.campaign import Campaign
from js_async.coordination.lease import Lease
from js_async.coordination.slot import Place, Slots
from js_async.extension import BackgroundWork
from js_async.runtime.concurrency import Handler, check_handler
from twinstream.core.coordination.lease_engine import Terms
from twinstream.core.coordination.lease_record import SlotRecord
from twinstream.core.deadline import Seconds, seconds

__all__ = ["Leader"]


class Leader(BackgroundWork):
    """A candidate of an election, created by `Coordination.leader`.

    It campaigns in a `with` block, or between `start` and `stop`. If the stream is deleted, the
    candidate waits until the stream is re-created.

    Three kinds of error end the campaign: an error of a handler, unsuitable settings of a
    re-created stream, and an error that waiting cannot resolve. `wait` and `stop` raise the error.
    A `LeaseLost` that `on_elected` raises after its term, for example by `lease.check()`, only ends
    the handler: the candidate campaigns again.
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

    @property
    def _label(self) -> str:
        return f"{self._name} of {self._place.stream}"

    async def holder(self, *, timeout: Seconds | None = None) -> SlotRecord | None:
        """Return the record of the current leader, or None if there is no leader.

        Args:
            timeout: Seconds; the default is that of the API.
        """
        deadline = self._place.api.deadline(timeout)
        await self._place.ready(deadline)
        subject = self._place.subjects.slot("leader", self._name)
        return await Slots(self._place).look(subject, deadline)

    # ---- lifecycle

    async def _begin(self) -> None:
        await self._place.ready()

    async def _work(self) -> None:
        await self._campaign.run()

    async def _request_stop(self) -> None:
        await self._campaign.stop()

    def _is_within(self) -> bool:
        return super()._is_within() or self._campaign.is_handler()

    async def step_down(self, *, pause: Seconds = 0.0, timeout: Seconds = 5.0) -> bool:
        """Give up the current term. Return whether the server confirmed the release of the lease.

        If this candidate does not lead, do nothing and return False.

        Args:
            pause: Time in seconds after which the candidate campaigns again.
            timeout: How long to wait for the confirmation, in seconds.
        """
        return await self._campaign.step_down(seconds(pause, "pause"), timeout)

    async def __aenter__(self) -> Self:
        await self.start()
        return self
