"""The creation of dead letters in the background, which several objects share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from js_async import Message, Messages
from js_async.extension import BackgroundWork
from js_async.runtime.concurrency import Handler, Lock, Signal
from twinstream.core.consume.reports import PullReport

__all__ = ["LetterCollection"]


class Opener(Protocol):
    """A function that returns an iterator of captured advisories."""

    async def __call__(self) -> Messages:
        """Return the iterator. It creates missing streams."""
        ...


class LetterCollection:
    """The work of a `DeadLetters` object, which begins when it is used and ends with the last user.

    A user is a `DeadLetters` object that was started, or a worker.
    """

    def __init__(
        self,
        stream: str,
        open: Opener,
        process: Handler[Message],
        on_report: Callable[[PullReport], None] | None,
    ) -> None:
        self._stream: Final = stream
        self._open: Final = open
        self._process: Final = process
        self._on_report: Final = on_report
        self._turns: Final = Lock()
        self._users: Final[list[Signal]] = []
        self._work: _Collecting | None = None

    async def join(self, ended: Signal) -> None:
        """Begin to work for a user. `ended` is set if an error ends the work."""
        async with self._turns:
            if self._work is None or not self._work.is_running:
                work = _Collecting(
                    self._stream, self._open, self._process, self._users, self._on_report
                )
                await work.start()
                self._work = work
            self._users.append(ended)
            if not self._work.is_running:
                ended.set()

    async def leave(self, ended: Signal) -> None:
        """End the work if there is no other user. Raises the error that ended it."""
        async with self._turns:
            self._users.remove(ended)
            work = self._work
            if work is None or (self._users and work.is_running):
                return
            await work.stop()

    def is_handler(self) -> bool:
        """Return whether the caller is a callback of the work."""
        return self._work is not None and self._work.is_handler()


class _Collecting(BackgroundWork):
    """Reads the captured advisories and creates a dead letter for each, until it is stopped."""

    _area = "dead_letters"

    def __init__(
        self,
        stream: str,
        open: Opener,
        process: Handler[Message],
        users: list[Signal],
        on_report: Callable[[PullReport], None] | None,
    ) -> None:
        super().__init__(on_report)
        self._stream: Final = stream
        self._open: Final = open
        self._process: Final = process
        self._users: Final = users
        self._messages: Messages | None = None

    @property
    def _label(self) -> str:
        return f"of {self._stream}"

    @property
    def _title(self) -> str:
        return f"DeadLetters {self._label}"

    def is_handler(self) -> bool:
        """Return whether the caller is a callback of this work."""
        return self._is_within()

    async def _begin(self) -> None:
        self._messages = await self._open()

    async def _work(self) -> None:
        if self._messages is not None:
            async for advisory in self._messages:
                await self._process(advisory)

    async def _run_work(self) -> None:
        await super()._run_work()
        # A user may leave meanwhile.
        for ended in list(self._users):
            ended.set()

    async def _request_stop(self) -> None:
        if self._messages is not None:
            await self._messages.close()
