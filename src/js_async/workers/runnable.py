"""The base class of workers, which run until a signal or within a `with` block."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import nullcontext
from functools import partial
from typing import Final

from js_async.client.closing import WorksBeside
from js_async.client.owned import Owned
from js_async.runtime.concurrency import Home, Interrupts, Signal, set_from_anywhere
from twinstream.core.deadline import NEVER, Seconds
from twinstream.core.on_failure import AsyncOnFailure

__all__ = ["Runnable"]


class Runnable(Owned, WorksBeside):
    """The base class of workers.

    `start` has to set `_home`, because `ask_to_stop` needs it. Each subclass defines the entry
    method of a `with` block itself, because some editors offer only the attributes of the class
    that defines this method.
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
        """Wait at most `timeout` seconds until the running handlers have ended, and stop.

        Does nothing in a forked child, whose parent goes on.
        """

    async def run(self, *, signals: bool = True, timeout: Seconds = 30.0) -> None:
        """Work until SIGINT or SIGTERM, a call of `ask_to_stop`, or an error that ends the work.

        Then do the same as `stop`, and raise the error that ended the work, if there was one. A
        second signal has its usual effect.

        Args:
            signals: Whether to end at SIGINT or SIGTERM. Only possible in the main thread.
            timeout: Maximum seconds until running handlers have ended.
        """
        with Interrupts(self._ended) if signals else nullcontext():
            await self.start()
            # After a cancellation or an interrupt, do not leave work in the background.
            async with AsyncOnFailure(partial(self.stop, timeout)):
                await self._ended.sleep(NEVER)
        await self.stop(timeout)

    def ask_to_stop(self) -> None:
        """Make `run` end, and return at once. May be called by handlers and in other threads."""
        set_from_anywhere(self._ended, self._home)

    async def __aexit__(self, *_: object) -> None:
        if not self._is_parents:
            await self.stop()
