"""The campaign of a candidate: it asks for the lease of the leader, leads for a term, and repeats.

If the stream is deleted, the campaign waits until the stream is re-created.
"""

from __future__ import annotations

from typing import Final

from js_async.coordination.acquire import SlotAcquisition
from js_async.coordination.lease import Lease
from js_async.coordination.slot import Place, may_pass
from js_async.runtime.concurrency import Handler, Signal, Task, call, spawn
from twinstream.core.coordination.lease_engine import Terms
from twinstream.core.deadline import NEVER, Deadline, Seconds
from twinstream.core.log.events import Elected, WillRetry
from twinstream.core.log.logger import Log
from twinstream.errors import LeaseLost, RequestTimeout, StreamNotFound, TwinstreamError

__all__ = ["Campaign"]

# The pause between two checks whether a deleted stream exists again (seconds).
_GONE: Final = 1.0


class Campaign:
    """The terms of a candidate, one after the other, until `stop` was called or an error occurs."""

    def __init__(
        self,
        place: Place,
        name: str,
        terms: Terms,
        note: str,
        on_elected: Handler[Lease] | None,
        on_lost: Handler[Lease] | None,
    ) -> None:
        self._place: Final = place
        self._name: Final = name
        self._terms: Final = terms
        self._note: Final = note
        self._on_elected: Final = on_elected
        self._on_lost: Final = on_lost
        self._asking: SlotAcquisition | None = None
        self._lease: Lease | None = None
        self._term: _Term | None = None
        self._stopping: Final = Signal()
        self._pause = 0.0
        self._gone = False
        self._log: Final = Log("coordination")
        self.elections = 0
        """The number of times that the candidate was elected."""

    @property
    def lease(self) -> Lease | None:
        """The lease of the current term; None while the candidate does not lead."""
        lease = self._lease
        return lease if lease is not None and lease.is_held else None

    def is_handler(self) -> bool:
        """Return whether the caller runs in `on_elected`."""
        term = self._term
        return term is not None and term.is_current()

    async def step_down(self, pause: float, timeout: Seconds) -> bool:
        """Release the lease; campaign again after `pause` seconds. Return whether it is released.

        Without a lease, do nothing and return False.
        """
        # Without a term, leave `_pause` as it is: the pause of an earlier call may still apply.
        lease = self.lease
        if lease is None:
            return False
        self._pause = pause
        return await lease.release(timeout=timeout)

    async def stop(self) -> None:
        """End the term, and let `run` return after the handlers have ended. This does not wait."""
        self._stopping.set()
        if self._asking is not None:
            self._asking.give_up()
        if self._lease is not None:
            await self._lease.release(timeout=0.0)

    async def run(self) -> None:
        """Campaign until `stop`. Raises an error of a handler, or one that waiting cannot solve."""
        while not self._stopping.is_set():
            await self._campaign_once()
            pause, self._pause = self._pause, 0.0
            await self._stopping.sleep(Deadline.after(pause))

    async def _campaign_once(self) -> None:
        """Wait for the leadership, and lead until it is lost.

        Returns early after `stop`, and after an error that allows another campaign.
        """
        asking = SlotAcquisition(self._place, "leader", self._name, self._terms, self._note)
        self._asking = asking
        # `stop` cannot cancel the acquisition if it ran before `_asking` was set.
        if self._stopping.is_set():
            return
        try:
            if self._gone:
                await self._check_stream()
            slot = await asking.wait(NEVER)
        except TwinstreamError as error:
            if self._stopping.is_set() and isinstance(error, RequestTimeout):
                return
            if not await self._waits_for_stream(error):
                raise
        else:
            await self._lead(Lease(slot))

    async def _check_stream(self) -> None:
        """Check that the stream exists again, with suitable settings.

        Raises `StreamNotFound` or `UnsuitableSettings`.
        """
        await self._place.check()
        self._gone = False

    async def _waits_for_stream(self, error: TwinstreamError) -> bool:
        """Return whether the campaign can continue after an error, and pause if so.

        The campaign continues after `StreamNotFound`, because the stream may be re-created. While
        the stream is missing, temporary errors of requests do not end the campaign either.
        """
        if isinstance(error, StreamNotFound):
            self._gone = True
        elif not self._gone or not may_pass(error):
            return False
        self._log(WillRetry(f"the campaign for leader {self._name}", error))
        await self._stopping.sleep(Deadline.after(_GONE))
        return True

    async def _lead(self, lease: Lease) -> None:
        """Run one term: call `on_elected`, wait until the lease is lost, call `on_lost`.

        The term ends only after the callback of the election has ended.
        """
        self._lease = lease
        lease._start()
        self.elections += 1
        self._log(Elected(self._name, lease.token))
        self._term = term = _Term(self._on_elected, lease)
        term.start()
        if self._stopping.is_set():
            await lease.release()
        await lease.wait_lost()
        self._lease = None
        try:
            if self._on_lost is not None:
                await call(self._on_lost, lease)
        finally:
            await term.ended()


class _Term:
    """The run of the `on_elected` handler during one term, in the background."""

    def __init__(self, handler: Handler[Lease] | None, lease: Lease) -> None:
        self._handler: Final = handler
        self._lease: Final = lease
        self._task: Task | None = None
        self._is_known: Final = Signal()
        self._error: BaseException | None = None

    def start(self) -> None:
        if self._handler is not None:
            self._task = spawn(self._run, f"twinstream-term-{self._lease.name}")
            self._is_known.set()

    def is_current(self) -> bool:
        """Return whether the caller runs in the handler."""
        return self._task is not None and self._task.is_current()

    async def _run(self) -> None:
        # Wait until `_task` is set, which `is_current` needs. Otherwise a handler that stops the
        # campaign would wait for itself.
        await self._is_known.sleep(NEVER)
        if self._handler is not None:
            try:
                await call(self._handler, self._lease)
            except BaseException as error:
                # A handler that calls `lease.check()` ends in this way when its term has ended.
                if not isinstance(error, LeaseLost) or self._lease.is_held:
                    # `ended` raises the error.
                    self._error = error
        if self._error is not None:
            await self._lease.release()

    async def ended(self) -> None:
        """Wait until the handler has ended; raise its error, if there was one."""
        if self._task is not None:
            await self._task.join(NEVER)
        if self._error is not None:
            raise self._error
