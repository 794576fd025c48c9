# Generated from src/js_async/coordination/rate_limiter.py by codegen/twin.py. Edit that file instead.
"""A rate limit: so many permits in a period, over all programs of a stream."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from twinstream.core.deadline import Deadline, Seconds
from twinstream.core.coordination.lease_engine import Terms
from js_sync.coordination.acquire import NumberedAsking
from js_sync.coordination.slot import Place, Slot

__all__ = ["Permit", "RateLimiter"]


@frozen
class Permit:
    """What a rate limiter gave; there is nothing to give back."""

    name: str
    number: int
    """Which of the limiter's slots it took, from 1."""
    token: int
    """The stream sequence of the permit: later ones are greater."""


class RateLimiter:
    """At most `count` permits in any `per` seconds; made by `Coordination.rate_limiter`.

    Counted by the server's clock, when it stores the permit, over a sliding window: each permit
    takes a slot that the server frees `per` seconds later.
    """

    def __init__(self, place: Place, name: str, count: int, terms: Terms) -> None:
        self._place: Final = place
        self._name: Final = name
        self._count: Final = count
        self._terms: Final = terms

    @property
    def name(self) -> str:
        """The name that all who use it agree on."""
        return self._name

    def __repr__(self) -> str:
        per = f"{self._count} per {self._terms.ttl:g} s"
        return f"<RateLimiter {self._place.stream} {self._name}: {per}>"

    def acquire(self, timeout: Seconds | None = None) -> Permit:
        """Get a permit within `timeout` seconds; None waits for ever.

        Raises `RequestTimeout`, and errors of `JetStream.publish` that waiting cannot mend. After a
        timeout a permit that nobody got may be used up; there are never too many permits.
        """
        return self._permit(self._asking().wait(Deadline.after(timeout)))

    def try_acquire(self) -> Permit | None:
        """Get a permit if there is one now, else None."""
        slot = self._asking().attempt(self._place.api.deadline())
        return None if slot is None else self._permit(slot)

    def _asking(self) -> NumberedAsking:
        return NumberedAsking(self._place, "rate", self._name, self._count, self._terms, "")

    def _permit(self, slot: Slot) -> Permit:
        return Permit(self._name, slot.number or 0, slot.engine.token)
