"""Locks and semaphores, shared by all clients of a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextvars import ContextVar
from typing import Final

from js_async.coordination.acquire import Asking, NumberedAcquisition, SlotAcquisition
from js_async.coordination.lease import Lease, OnLost
from js_async.coordination.slot import Place, Slots
from js_async.runtime.concurrency import BlockHint
from js_async.runtime.opening import Opening, opening, opens
from twinstream.core.arguments.check_callbacks import check_callback
from twinstream.core.coordination.lease_engine import Terms
from twinstream.core.coordination.lease_record import SlotRecord
from twinstream.core.deadline import NEVER, Deadline, Seconds

__all__ = ["Lock", "Semaphore"]

# The leases of the blocks of locks that this task or thread is in.
_HERE: Final[ContextVar[tuple[Lease, ...]]] = ContextVar("twinstream-locks", default=())


class Leasing(ABC):
    """The base class of locks and semaphores.

    Several tasks or threads may share an object: each call of `acquire` is independent. Waiters are
    not served in order.
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

    @opens
    def acquire(self, *, timeout: Seconds | None = None) -> Opening[Lease]:
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
        await self._place.ready(self._place.patience(deadline))
        lease = Lease(await self._asking().wait(deadline), self._on_lost)
        lease._start()
        return lease

    async def try_acquire(self, *, timeout: Seconds | None = None) -> Lease | None:
        """Acquire the lock or semaphore if it is free, and return the lease, else None.

        Raises `RequestTimeout` if the server does not respond in time.

        Args:
            timeout: Seconds; the default is that of the API.
        """
        deadline = self._place.api.deadline(timeout)
        await self._place.ready(deadline)
        slot = await self._asking().attempt(deadline)
        if slot is None:
            return None
        lease = Lease(slot, self._on_lost)
        lease._start()
        return lease

    @abstractmethod
    def _asking(self) -> Asking:
        """Return a new acquisition of the lock or semaphore."""


class Lock(Leasing, BlockHint):
    """A named lock, created by `Coordination.lock`.

    A `with` block acquires the lock, which it waits for without a limit, and releases the lease at
    its end. It raises `LeaseLost` if the lease was lost in the block.
    """

    def __init__(
        self, place: Place, name: str, terms: Terms, note: str, on_lost: OnLost | None
    ) -> None:
        super().__init__(place, name, terms, note, on_lost)
        # The leases of all blocks of this lock: several, if the earlier ones are lost.
        self._leases: Final[list[Lease]] = []

    def _asking(self) -> Asking:
        return SlotAcquisition(self._place, "lock", self._name, self._terms, self._note)

    async def __aenter__(self) -> Lease:
        lease = await self._acquire(NEVER)
        self._leases.append(lease)
        _HERE.set((*_HERE.get(), lease))
        return lease

    async def __aexit__(self, *error: object) -> None:
        here = _HERE.get()
        # A block may be left by another task or thread than entered it.
        lease = ([each for each in self._leases if each in here] or self._leases)[-1]
        self._leases.remove(lease)
        _HERE.set(tuple(each for each in here if each is not lease))
        await lease.__aexit__(*error)

    async def holder(self, *, timeout: Seconds | None = None) -> SlotRecord | None:
        """Return the record of the lock's holder, or None if the lock is free.

        Args:
            timeout: Seconds; the default is that of the API.
        """
        deadline = self._place.api.deadline(timeout)
        await self._place.ready(deadline)
        return await Slots(self._place).look(
            self._place.subjects.slot("lock", self._name), deadline
        )


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

    async def holders(self, *, timeout: Seconds | None = None) -> list[SlotRecord]:
        """Return the records of the holders, the oldest first.

        Args:
            timeout: Seconds for the whole call; the default is that of the API.
        """
        deadline = self._place.api.deadline(timeout)
        await self._place.ready(deadline)
        filter_ = self._place.subjects.slots("semaphore", self._name)
        found = Slots(self._place).all(filter_, deadline)
        return [record async for record in found]
