"""A lease: the tenure of a slot, renewed in the background until it is released or lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self

from js_async.coordination.slot import Slot
from js_async.runtime.concurrency import BlockHint, Forks, Signal, Task, spawn
from twinstream.core.coordination.lease_engine import Phase
from twinstream.core.deadline import Deadline, Seconds, unsleeping
from twinstream.core.log.events import LeaseWasLost
from twinstream.core.log.reporter import GuardedReporter
from twinstream.errors import LeaseLost, TwinstreamError

if TYPE_CHECKING:
    from twinstream.core.observe.operation import Operation

__all__ = ["Lease", "OnLost"]

OnLost = Callable[["Lease"], None]
"""A callback that receives a lost lease. It must be quick: set an event, or end the process."""


class Lease(BlockHint):
    """A held lock, a held slot of a semaphore, a leader's term, or a run of `Once`.

    The lease is renewed in the background. The end of its `with` block releases the lease, and
    raises `LeaseLost` if the lease was lost in the block. Long-running code should check `is_held`
    or call `check` regularly.
    """

    def __init__(self, slot: Slot, on_lost: OnLost | None = None) -> None:
        self._slot: Final = slot
        self._engine: Final = slot.engine
        self._on_lost: Final[GuardedReporter[Lease]] = GuardedReporter(
            on_lost, "on_lost", "coordination"
        )
        self._forks: Final = Forks.count
        self._leaving = False
        self._wake: Final = Signal()
        self._over: Final = Signal()
        self._error: LeaseLost | None = None
        self._task: Task | None = None
        self._operation: Operation | None = None

    def _start(self) -> None:
        """Start to renew the lease. The code that returns the lease to the user calls this."""
        observers = self._slot.observers
        if observers is not None and not self._leaving:
            self._operation = observers.begin("lock", self._slot.kind, self.name)
        self._task = spawn(self._renew_until_end, f"twinstream-lease-{self.name}")

    def _abandon(self) -> None:
        """Release a slot whose request has an unknown outcome, in the background."""
        self._leaving = True
        self._start()

    # ---- state

    @property
    def _is_parents(self) -> bool:
        """Whether this process was forked after the lease was acquired, and must not release it."""
        return self._forks != Forks.count

    @property
    def name(self) -> str:
        """The name of the lock, semaphore or election, or the key of the work that runs once."""
        return self._slot.name

    @property
    def number(self) -> int | None:
        """The number of the semaphore's slot, from 1; None for other leases."""
        return self._slot.number

    @property
    def token(self) -> int:
        """The fencing token, which is greater than that of every earlier holder of this slot.

        A resource can remember the greatest token so far and refuse smaller ones. This protects the
        resource from a holder that was suspended and has not noticed the loss of its lease.
        """
        return self._engine.token

    @property
    def seq(self) -> int:
        """The stream sequence of the last confirmed record."""
        return self._engine.seq

    @property
    def is_held(self) -> bool:
        """Whether certainly only this lease holds the slot now, by the clock of this machine."""
        return self.remaining > 0

    @property
    def remaining(self) -> float:
        """The number of seconds for which the lease is held even if it cannot be renewed."""
        if self._leaving or self._is_parents:
            return 0.0
        now = unsleeping()
        return self._engine.until - now if self._engine.believes(now) else 0.0

    @property
    def lost(self) -> LeaseLost | None:
        """The reason why the lease was lost; None while it is held, and after a release."""
        # Read `_leaving` last: another thread may begin the release meanwhile.
        if self._error is None and not self.is_held and not self._leaving:
            return self._why()
        return self._error

    def check(self) -> None:
        """Raise `LeaseLost` unless the lease is held. This sends no request."""
        if not self.is_held:
            raise self.lost or LeaseLost(f"{self.name}: it was released")

    async def wait_lost(self, *, timeout: Seconds | None = None) -> LeaseLost | None:
        """Wait until the lease has ended; return the reason if it was lost, else None.

        Args:
            timeout: The longest wait in seconds; None waits without limit. After this time, the
                call returns None.
        """
        await self._over.sleep(Deadline.after(timeout))
        return self.lost

    def __repr__(self) -> str:
        state = "held" if self.is_held else "lost" if self.lost else "released"
        return f"<Lease {self._slot.subject} token={self.token}: {state}>"

    # ---- releasing

    async def release(self, *, timeout: Seconds = 5.0) -> bool:
        """Release the lease. Return whether the server confirmed the release in time.

        The lease is no longer held from the start of the call. Without a confirmation, requests
        continue in the background until the record's TTL has passed, after which the server frees
        the slot anyway. A second call, or a call after a loss, sends nothing. In a forked child the
        call does nothing and returns False: the lease belongs to the parent.

        Args:
            timeout: How long to wait for the confirmation, in seconds.
        """
        if self._is_parents:
            return False
        self._leaving = True
        self._wake.set()
        await self._over.sleep(Deadline.after(timeout))
        return self._engine.phase is Phase.LEFT

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._is_parents:
            return
        lost = self.lost
        await self.release()
        if lost is not None:
            raise lost

    # ---- renewing

    async def _renew_until_end(self) -> None:
        """Carry out the actions of the engine, which renews the slot, until the lease has ended."""
        engine = self._engine
        try:
            while not engine.is_over:
                await self._step()
            if engine.phase is Phase.LEFT:
                await self._slot.slots.tell_freed(self._slot.kind, self._slot.name)
        except TwinstreamError as error:
            engine.fail(str(error))
        finally:
            # This has no effect if the lease has ended.
            engine.fail("the task that renews it was ended")
            self._end()

    async def _step(self) -> None:
        engine = self._engine
        self._wake.clear()
        if self._leaving and engine.phase in {Phase.HELD, Phase.ASKING}:
            engine.leave(unsleeping(), final=self._slot.final is not None)
        now = unsleeping()
        action = engine.poll(now)
        if action is not None:
            await self._slot.carry_out(action, self._slot.deadline(engine.patience(now)))
        elif not engine.is_over:
            await self._wake.sleep(Deadline.after(max(0.0, engine.wake_at() - now)))

    def _end(self) -> None:
        """Record the end of the lease: wake waiting callers, and report it if the lease was lost.

        A lease that was being released is not reported, because the holder gave it up.
        """
        is_released = self._leaving
        if self._engine.phase is Phase.LOST:
            self._error = self._why()
        self._over.set()
        if self._operation is not None:
            self._operation.end(self._error)
        if self._error is not None and not is_released:
            event = LeaseWasLost(str(self._error))
            if self._slot.observers is not None:
                self._slot.observers.note(event)
            self._on_lost.log(event)
            self._on_lost.pass_on(self)

    def _why(self) -> LeaseLost:
        if self._is_parents:
            return LeaseLost(f"{self.name}: it belongs to the process that forked this one")
        reason = self._engine.reason or "its time ran out"
        return LeaseLost(f"{self.name} (token {self.token}): {reason}")
