# Generated from src/js_async/coordination/lock.py by codegen/twin.py. Edit that file instead.
"""Locks and semaphores: one holder at a time, or so many, over all programs of a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from twinstream.core.deadline import Deadline, Seconds
from twinstream.core.coordination.lease_engine import Terms
from twinstream.core.coordination.lease_record import SlotRecord
from twinstream.core.base.check_callbacks import check_told
from js_sync.coordination.acquire import Asking, NumberedAsking, SlotAsking
from js_sync.runtime.opening import opening
from js_sync.coordination.slot import Place, Slots
from js_sync.coordination.lease import Lease, OnLost

__all__ = ["Lock", "Semaphore"]


class Leasing(ABC):
    """What locks and semaphores have in common.

    It holds no state, so it may be shared: each `acquire` is a wish of its own, also within one
    program. There is no order among those who wait.
    """

    def __init__(
        self, place: Place, name: str, terms: Terms, note: str, on_lost: OnLost | None
    ) -> None:
        check_told(on_lost, "on_lost")
        self._place: Final = place
        self._name: Final = name
        self._terms: Final = terms
        self._note: Final = note
        self._on_lost: Final = on_lost

    @property
    def name(self) -> str:
        """The name that all who use it agree on."""
        return self._name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._place.stream} {self._name}>"

    def acquire(self, timeout: Seconds | None = None) -> Lease:
        """Get it within `timeout` seconds; None waits for ever. Use it in a `with` block.

        Raises `RequestTimeout`, which says who is in the way, and what `JetStream.publish` raises
        that waiting cannot mend.
        """
        return opening(self._acquire(Deadline.after(timeout)))

    def _acquire(self, deadline: Deadline) -> Lease:
        lease = Lease(self._asking().wait(deadline), self._on_lost)
        lease._start()
        return lease

    def try_acquire(self) -> Lease | None:
        """Get it if it is free, else None. Raises `RequestTimeout` when nobody answers."""
        slot = self._asking().attempt(self._place.api.deadline())
        if slot is None:
            return None
        lease = Lease(slot, self._on_lost)
        lease._start()
        return lease

    @abstractmethod
    def _asking(self) -> Asking:
        """Return a new wish."""


class Lock(Leasing):
    """A lock of a name; made by `Coordination.lock`. Sends nothing before it is asked for."""

    def _asking(self) -> Asking:
        return SlotAsking(self._place, "lock", self._name, self._terms, self._note)

    def holder(self) -> SlotRecord | None:
        """Return who has the lock, or None."""
        return Slots(self._place).look(self._place.subjects.slot("lock", self._name))


class Semaphore(Leasing):
    """So many places under a name, each for one holder; made by `Coordination.semaphore`.

    How many is not stored: those who name a greater number use more places.
    """

    def __init__(
        self,
        place: Place,
        name: str,
        count: int,
        terms: Terms,
        note: str,
        on_lost: OnLost | None,
    ) -> None:
        super().__init__(place, name, terms, note, on_lost)
        self._count: Final = count

    @property
    def count(self) -> int:
        """How many may hold it at a time."""
        return self._count

    def _asking(self) -> Asking:
        return NumberedAsking(
            self._place, "semaphore", self._name, self._count, self._terms, self._note
        )

    def holders(self) -> list[SlotRecord]:
        """Return who has the places, the oldest record first."""
        found = Slots(self._place).all(self._place.subjects.slots("semaphore", self._name))
        return [record for record in found]
