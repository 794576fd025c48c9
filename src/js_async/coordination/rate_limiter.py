"""A rate limit: a number of permits in a period, across all clients of a stream."""

from __future__ import annotations

from typing import Final

from js_async.coordination.acquire import NumberedAsking
from js_async.coordination.slot import Place, Slot
from twinstream.core.coordination.lease_engine import Terms
from twinstream.core.deadline import Deadline, Seconds
from twinstream.models.records import frozen

__all__ = ["Permit", "RateLimiter"]


@frozen
class Permit:
    """A permit of a rate limiter. It need not be released."""

    name: str
    number: int
    """Number of the limiter's slot, from 1."""
    token: int
    """The stream sequence of the permit, which increases."""


class RateLimiter:
    """At most `count` permits in any `per` seconds. Created by `Coordination.rate_limiter`.

    The time is that of the server's clock when it stores the permit, and the window slides: each
    permit takes a slot that the server frees `per` seconds later.
    """

    def __init__(self, place: Place, name: str, count: int, terms: Terms) -> None:
        self._place: Final = place
        self._name: Final = name
        self._count: Final = count
        self._terms: Final = terms

    @property
    def name(self) -> str:
        """The name of the limit, the same for all its users."""
        return self._name

    def __repr__(self) -> str:
        per = f"{self._count} per {self._terms.ttl:g} s"
        return f"<RateLimiter {self._place.stream} {self._name}: {per}>"

    async def acquire(self, timeout: Seconds | None = None) -> Permit:
        """Get a permit within `timeout` seconds; None waits without limit.

        Raises `RequestTimeout`, and errors of `JetStream.publish` that waiting cannot resolve.
        After a timeout a permit may be used up that no caller got; there are never too many.
        """
        return self._permit(await self._asking().wait(Deadline.after(timeout)))

    async def try_acquire(self) -> Permit | None:
        """Get a permit if one is available now, else return None."""
        slot = await self._asking().attempt(self._place.api.deadline())
        return None if slot is None else self._permit(slot)

    def _asking(self) -> NumberedAsking:
        return NumberedAsking(self._place, "rate", self._name, self._count, self._terms, "")

    def _permit(self, slot: Slot) -> Permit:
        return Permit(self._name, slot.number or 0, slot.engine.token)
