"""A lease: a slot that is held, renewed in the background until it is given up or lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Self

from js_async.runtime.concurrency import BlockHint, Forks, Signal, Task, spawn
from js_async.client.owned import Owned
from js_async.coordination.slot import Slot
from twinstream.core.deadline import Deadline, Seconds, unsleeping
from twinstream.errors import LeaseLost, TwinstreamError
from twinstream.core.coordination.lease_engine import Phase
from twinstream.core.log.events import LeaseWasLost
from twinstream.core.log.reporter import GuardedReporter

__all__ = ["Lease", "OnLost"]

OnLost = Callable[["Lease"], None]
"""Told when a lease is lost; must be quick, and may set an event or end a process."""


class Lease(Owned, BlockHint):
    """A lock, a place of a semaphore, or a leader's term, while it lasts.

    It is renewed beside the program. Leaving its `with` block gives it up, and raises `LeaseLost`
    when it was lost within. Whoever works for long asks `is_held` or calls `check` now and then.
    """

    def __init__(self, slot: Slot, on_lost: OnLost | None = None) -> None:
        super().__init__()
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

    def _start(self) -> None:
        """Begin to renew; what hands the lease out does it."""
        self._task = spawn(self._keep, f"twinstream-lease-{self.name}")

    def _abandon(self) -> None:
        """Give up what was asked for and may have been given, without waiting."""
        self._leaving = True
        self._start()

    # ---- what it says

    @property
    def name(self) -> str:
        """The name of the lock, semaphore or election."""
        return self._slot.name

    @property
    def number(self) -> int | None:
        """Which place of a semaphore it is, from 1; None elsewhere."""
        return self._slot.number

    @property
    def token(self) -> int:
        """The fencing token: greater than that of every earlier holder of this slot.

        A resource that remembers the greatest token it saw, and refuses smaller ones, is safe also
        from a holder that was paused and does not know yet that it lost.
        """
        return self._engine.token

    @property
    def seq(self) -> int:
        """The stream sequence of the record as it was confirmed last."""
        return self._engine.seq

    @property
    def is_held(self) -> bool:
        """Tell whether nobody else can have the slot at this moment, by this machine's clock."""
        return self.remaining > 0

    @property
    def remaining(self) -> float:
        """Seconds for which it is held even if nothing reaches the server from now on."""
        if self._leaving or self._forks != Forks.count:
            return 0.0
        now = unsleeping()
        return self._engine.until - now if self._engine.believes(now) else 0.0

    @property
    def lost(self) -> LeaseLost | None:
        """Why it was lost; None while it is held, and when it was given up."""
        if self._error is None and not self._leaving and not self.is_held:
            return self._why()
        return self._error

    def check(self) -> None:
        """Raise `LeaseLost` unless it is held; costs nothing."""
        if not self.is_held:
            raise self.lost or LeaseLost(f"{self.name}: it was given up")

    async def wait_lost(self, timeout: Seconds | None = None) -> LeaseLost | None:
        """Return when it is over, or after `timeout` seconds: why it was lost, if it was."""
        await self._over.sleep(Deadline.after(timeout))
        return self.lost

    def __repr__(self) -> str:
        state = "held" if self.is_held else "lost" if self.lost else "given up"
        return f"<Lease {self._slot.subject} token={self.token}: {state}>"

    # ---- giving it up

    async def release(self, timeout: Seconds = 5.0) -> bool:
        """Give it up, at once for this program; tell whether the server confirmed it in time.

        Where it did not, it is asked until the record's TTL is over, which frees the slot anyhow.
        Releasing again, or after a loss, does nothing.
        """
        self._leaving = True
        self._wake.set()
        await self._over.sleep(Deadline.after(timeout))
        return self._engine.phase is Phase.LEFT

    async def close(self) -> None:
        """Give it up; raises `LeaseLost` if it was lost before."""
        lost = self.lost
        await self.release()
        if lost is not None:
            raise lost

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._is_parents:
            await self.close()

    # ---- keeping it

    async def _keep(self) -> None:
        """Renew until the end; the engine decides when and what."""
        engine = self._engine
        try:
            while not engine.is_over:
                await self._step()
            if engine.phase is Phase.LEFT:
                await self._slot.slots.tell_freed(self._slot.kind, self._slot.name)
        except TwinstreamError as error:
            engine.fail(str(error))
        except BaseException:
            engine.fail("the task that renews it was ended")
            raise
        finally:
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
        was_held = not self._leaving
        if self._engine.phase is Phase.LOST:
            self._error = self._why()
        self._over.set()
        if self._error is not None and was_held:
            self._on_lost.log(LeaseWasLost(str(self._error)))
            self._on_lost.pass_on(self)

    def _why(self) -> LeaseLost:
        if self._forks != Forks.count:
            return LeaseLost(f"{self.name}: it belongs to the process that this one was forked off")
        reason = self._engine.reason or "its time ran out"
        return LeaseLost(f"{self.name} (token {self.token}): {reason}")
