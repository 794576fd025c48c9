"""Locks and semaphores, shared by all clients of a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from js_async.coordination.acquire import Asking, NumberedAcquisition, SlotAcquisition
from js_async.coordination.lease import Lease, OnLost
from js_async.coordination.slot import Place, Slots
from js_async.runtime.opening import Opening, opening
from twinstream.core.arguments.check_callbacks import check_callback
from twinstream.core.coordination.lease_engine import Terms
from twinstream.core.coordination.lease_record import SlotRecord
from twinstream.core.deadline import Deadline, Seconds

__all__ = ["Lock", "Semaphore"]


class Leasing(ABC):
    """The base class of locks and semaphores.

    These objects have no state, so several tasks or threads may share one: each call of `acquire`
    is independent. Waiters are not served in order.
    """

    def __init__(
        self, place: Place, name: str, terms: Terms, note: str, on_lost: OnLost | None
    ) -> None:
        check_callback(on_lost, "on_lost")
        self._place: Final = place
        self._name: Final = name
        self._terms: Final = terms
        self._note: Final = note
        self._on_lost: Final = on_lost

    @property
    def name(self) -> str:
        """The name of the lock or semaphore, which is the same for all its users."""
        return self._name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._place.stream} {self._name}>"

    def acquire(self, timeout: Seconds | None = None) -> Opening[Lease]:
        """Acquire the lock or semaphore, and return the lease. Use it in a `with` block.

        Args:
            timeout: The longest wait in seconds; None waits without limit.

        Raises:
            RequestTimeout: The lock or semaphore was not free in time. The error names the current
                holder.
            TwinstreamError: An error of `JetStream.publish` that waiting cannot resolve.
        """
        return opening(self._acquire(Deadline.after(timeout)))

    async def _acquire(self, deadline: Deadline) -> Lease:
        lease = Lease(await self._asking().wait(deadline), self._on_lost)
        lease._start()
        return lease

    async def try_acquire(self) -> Lease | None:
        """Acquire the lock or semaphore if it is free, and return the lease, else None.

        Raises `RequestTimeout` if the server does not respond in time.
        """
        slot = await self._asking().attempt(self._place.api.deadline())
        if slot is None:
            return None
        lease = Lease(slot, self._on_lost)
        lease._start()
        return lease

    @abstractmethod
    def _asking(self) -> Asking:
        """Return a new acquisition of the lock or semaphore."""


class Lock(Leasing):
    """A named lock, created by `Coordination.lock`. It sends nothing before `acquire`."""

    def _asking(self) -> Asking:
        return SlotAcquisition(self._place, "lock", self._name, self._terms, self._note)

    async def holder(self) -> SlotRecord | None:
        """Return the record of the lock's holder, or None if the lock is free."""
        return await Slots(self._place).look(self._place.subjects.slot("lock", self._name))


class Semaphore(Leasing):
    """A named semaphore, created by `Coordination.semaphore`.

    The count is not stored in the stream. If clients use different counts, the client with the
    highest count allows the most holders.
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
        """The maximum number of holders at a time."""
        return self._count

    def _asking(self) -> Asking:
        return NumberedAcquisition(
            self._place, "semaphore", self._name, self._count, self._terms, self._note
        )

    async def holders(self) -> list[SlotRecord]:
        """Return the records of the holders, the oldest first."""
        found = Slots(self._place).all(self._place.subjects.slots("semaphore", self._name))
        return [record async for record in found]
