"""A rate limiter: all clients of a stream share a number of permits in a period."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from js_async.coordination.acquire import NumberedAcquisition
from js_async.coordination.slot import Place, Slot
from twinstream.core.coordination.lease_engine import Terms
from twinstream.core.deadline import Deadline, Seconds

__all__ = ["Permit", "RateLimiter"]


@frozen
class Permit:
    """A permit of a rate limiter. The caller need not release it."""

    name: str
    """Name of the semaphore or limit."""
    number: int
    """The number of the slot that this permit takes, from 1."""
    token: int
    """The stream sequence of the permit. A later permit has a greater token."""


class RateLimiter:
    """A limiter of at most `count` permits in any `per` seconds.

    `Coordination.rate_limiter` creates it. Each permit takes one of `count` slots. The server frees
    the slot `per` seconds after it stored the permit, by the server's clock. So the limit holds for
    every period of `per` seconds.
    """

    def __init__(self, place: Place, name: str, count: int, terms: Terms) -> None:
        self._place: Final = place
        self._name: Final = name
        self._count: Final = count
        self._terms: Final = terms

    @property
    def name(self) -> str:
        """The name of the limiter, which is the same for all its users."""
        return self._name

    def __repr__(self) -> str:
        per = f"{self._count} per {self._terms.ttl:g} s"
        return f"<RateLimiter {self._place.stream} {self._name}: {per}>"

    async def acquire(self, *, timeout: Seconds | None = None) -> Permit:
        """Wait for a permit and return it.

        Args:
            timeout: The longest wait in seconds; None waits without limit.

        Raises:
            RequestTimeout: No permit was available in time, or the response was lost. In the second
                case, a permit may be used up.
            TwinstreamError: An error of `JetStream.publish` that waiting cannot resolve.
        """
        deadline = Deadline.after(timeout)
        await self._place.ready(self._place.patience(deadline))
        return self._permit(await self._asking().wait(deadline))

    async def try_acquire(self, *, timeout: Seconds | None = None) -> Permit | None:
        """Return a permit if one is available now, else None.

        Raises `RequestTimeout` if the server does not respond in time.

        Args:
            timeout: Seconds; the default is that of the API.
        """
        deadline = self._place.api.deadline(timeout)
        await self._place.ready(deadline)
        slot = await self._asking().attempt(deadline)
        return None if slot is None else self._permit(slot)

    def _asking(self) -> NumberedAcquisition:
        return NumberedAcquisition(self._place, "rate", self._name, self._count, self._terms, "")

    def _permit(self, slot: Slot) -> Permit:
        return Permit(self._name, slot.number or 0, slot.engine.token)
