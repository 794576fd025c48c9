"""What workers share: they run until a signal, or within a `with` block."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import nullcontext
from typing import Final

from js_async.client.closing import WorksBeside
from js_async.client.owned import Owned
from js_async.runtime.concurrency import Home, Interrupts, Signal, set_from_anywhere
from twinstream.core.deadline import NEVER, Seconds

__all__ = ["Runnable"]


class Runnable(Owned, WorksBeside):
    """Base of workers. `start` sets `_home`, which `ask_to_stop` needs to set the signal.

    Subclasses define the start of a `with` block themselves, because editors complete the class
    that defines it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._ended: Final = Signal()
        self._home: Home = None

    @abstractmethod
    async def start(self) -> None:
        """Start to work in the background."""

    @abstractmethod
    async def stop(self, timeout: Seconds = 30.0) -> None:
        """Stop gracefully, within `timeout` seconds."""

    async def run(self, *, signals: bool = True, timeout: Seconds = 30.0) -> None:
        """Work until SIGINT or SIGTERM, `ask_to_stop`, or the end of the work.

        Then it ends as `stop` does, with `timeout` in seconds, and raises the error that ended the
        work, if there was one. A second signal acts as it would without a worker. Signals reach the
        main thread only: elsewhere pass `signals=False`.
        """
        with Interrupts(self._ended) if signals else nullcontext():
            await self.start()
            try:
                await self._ended.sleep(NEVER)
            except BaseException:
                # After a cancellation or an interrupt, no work may continue in the background.
                await self.stop(timeout)
                raise
        await self.stop(timeout)

    def ask_to_stop(self) -> None:
        """Make `run` end, and return at once. For handlers and other threads."""
        set_from_anywhere(self._ended, self._home)

    async def __aexit__(self, *_: object) -> None:
        if not self._is_parents:
            await self.stop()
