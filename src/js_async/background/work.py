"""`BackgroundWork`: the life cycle of all objects that work in the background.

`start` begins the work, and a task runs it until it has ended: by itself, by an error, or because
`stop` was called. The task also does what has to be done at the end. So the work ends completely,
even if no call waits for it.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, ClassVar, Final

from js_async.client.closable import Closable
from js_async.client.closing import failure_of
from js_async.runtime.concurrency import (
    BlockHint,
    Interrupts,
    Signal,
    Task,
    Work,
    spawn,
)
from twinstream.core.deadline import NEVER, Deadline, Seconds
from twinstream.core.on_failure import AsyncOnFailure
from twinstream.errors import BadArgument, ConnectionClosed, RequestTimeout

__all__ = ["BackgroundWork"]

_HOW_TO_START: Final = "use it in a `with` block, or call start() first"
_NEWS: Final = (Exception, SystemExit, KeyboardInterrupt)


class BackgroundWork(Closable, BlockHint, ABC):
    """The base class of objects that work in the background.

    A subclass defines `_label`, `_begin`, `_work` and `_request_stop`. It also defines the entry
    method of a `with` block itself, because some editors offer only the attributes of the class
    that defines this method.

    If no call raised the error that ended the work, or if work that does nothing else was never
    started, a `RuntimeWarning` is issued when the object is garbage-collected.
    """

    # `__del__` uses these defaults if `__init__` raised.
    _error: BaseException | None = None
    _is_raised = False
    # A subclass whose only use is to be started sets this at the end of `__init__`.
    _is_unstarted = False
    # The area of the log in which the error is reported.
    _area: ClassVar[str] = "consumer"
    # False if this object runs another one, which reports the same error.
    _reports_end: ClassVar[bool] = True

    def __init__(self, on_end: Callable[[Any], object] | None = None) -> None:
        super().__init__()
        # The program's `on_report`, which receives a `WorkEnded`.
        self._on_end: Final = on_end
        self._is_started = False
        self._tasks: Final[list[Task]] = []
        self._stopping: Final = Signal()
        self._ended: Final = Signal()
        # For `run`: set by a signal of the system, by `stop`, or at the end of the work.
        self._run_ended: Final = Signal()

    # ---- what subclasses define

    @property
    @abstractmethod
    def _label(self) -> str:
        """What the work is about, such as "packer of ORDERS"."""

    @abstractmethod
    async def _begin(self) -> None:
        """Check and request what the work needs. `start` raises the errors."""

    @abstractmethod
    async def _work(self) -> None:
        """Work until `_stopping` is set or the work is complete, and end. Raises its error."""

    async def _request_stop(self) -> None:
        """Let `_work` end soon, without waiting for its end."""

    def _is_within(self) -> bool:
        """Return whether the caller is a handler or a callback of this work."""
        return any(task.is_current() for task in self._tasks)

    # ---- life cycle

    @property
    def is_running(self) -> bool:
        """Whether the work was started and has not ended."""
        return bool(self._tasks) and not self._ended.is_set()

    @property
    def error(self) -> BaseException | None:
        """The error that ended the work, or None."""
        return self._error

    @property
    def _title(self) -> str:
        return f"{type(self).__name__} {self._label}"

    def __repr__(self) -> str:
        if self._error is not None:
            state = f"ended by {type(self._error).__name__}"
        elif self._ended.is_set():
            state = "stopped"
        else:
            state = "running" if self._tasks else "not started"
        return f"<{self._title}: {state}>"

    async def start(self) -> None:
        """Start to work in the background. Raises an error if the work cannot begin.

        After such an error, the work may be started again.

        Raises:
            BadArgument: The work was started before.
        """
        if self._is_started:
            raise BadArgument(f"{self._title} was started already")
        self._is_started, self._is_unstarted = True, False
        async with AsyncOnFailure(self._forget_start):
            await self._begin()
        # If this is interrupted, the caller cannot stop the work that may have begun.
        async with AsyncOnFailure(self._end_soon):
            kind = self._title.partition(" ")[0].lower()
            self._spawn(self._run_work, f"twinstream-{kind}")

    async def _forget_start(self) -> None:
        self._is_started = False
        self._stopping.clear()
        self._run_ended.clear()

    async def _run_work(self) -> None:
        error = await failure_of(self._work)
        if error is not None:
            self._keep_error(error)
        self._ended.set()
        self._run_ended.set()

    def _spawn(self, work: Work, name: str) -> Task:
        """Run `work` in a task or thread that belongs to this object."""
        known = Signal()

        async def run() -> None:
            # `_is_within` needs the task. Without it, a handler that calls `stop` would wait for
            # itself.
            await known.sleep(NEVER)
            await work()

        try:
            task = spawn(run, name)
            self._tasks.append(task)
        finally:
            known.set()
        return task

    async def stop(self, *, timeout: Seconds = 30.0) -> None:
        """End the work, and wait until the running handlers have ended.

        Does nothing if the work has ended, or was never started, which causes a `RuntimeWarning`.
        If a handler of this work calls `stop`, the call does not wait: the work ends after the
        handler.

        Args:
            timeout: The longest wait in seconds.

        Raises:
            RequestTimeout: A handler is still running after `timeout` seconds. The work ends after
                the handler.
            Exception: The error that ended the work, if no call has raised it before. If a handler
                is still running, too, this is its context.
        """
        if self._is_parents:
            return
        if not self._is_started:
            self._warn_if_unstarted()
            return
        await self._end_soon()
        await self._await_end(timeout)

    async def _end_soon(self) -> None:
        if not self._ended.is_set():
            self._stopping.set()
            self._run_ended.set()
            await self._request_stop()

    async def _ended_by(self, deadline: Deadline) -> None:
        """Wait for the end. `Connection.drain` calls this after it has begun the end."""
        await self._await_end(deadline.remaining())

    async def _await_end(self, timeout: Seconds) -> None:
        """Wait for the end, unless the caller is a handler. Raise an error that was not raised."""
        if self._is_within():
            return
        try:
            await self._join_tasks(Deadline.after(timeout), "a handler is still running")
        except RequestTimeout:
            # The error that ended the work says more. It may also be the reason: `SystemExit` of a
            # signal can leave a lock locked.
            self._raise_unseen()
            raise
        self._raise_unseen()

    async def wait(self, *, timeout: Seconds | None = None) -> None:
        """Wait until the work has ended, by itself, by `stop` or by an error.

        Args:
            timeout: The longest wait in seconds; None waits without limit.

        Raises:
            RequestTimeout: The work has not ended in time. It continues.
            BadArgument: The work was never started.
            Exception: The error that ended the work.
        """
        self._is_unstarted = False  # the error below is enough
        if not self._is_started:
            # Without this check, work that never ran would look like work that ended well.
            raise BadArgument(f"{self._title} was never started: {_HOW_TO_START}")
        if not self._is_within():
            await self._join_tasks(Deadline.after(timeout), "it is still running")
            self._raise_error()

    async def run(self, *, signals: bool = True, timeout: Seconds = 30.0) -> None:
        """Work until SIGINT or SIGTERM, until the end of the work, or until `stop` is called.

        Then do the same as `stop`, and raise the error that ended the work, if there was one. A
        second signal has its usual effect.

        Args:
            signals: Whether to end at SIGINT or SIGTERM. Only possible in the main thread.
            timeout: The longest wait for running handlers in seconds.
        """
        with Interrupts(self._run_ended) if signals else nullcontext():
            await self.start()
            # After a cancellation or an interrupt, do not leave work in the background.
            async with AsyncOnFailure(partial(self.stop, timeout=timeout)):
                await self._run_ended.sleep(NEVER)
        await self.stop(timeout=timeout)

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not self._is_parents:
            await self.stop()

    async def _join_tasks(self, deadline: Deadline, problem: str) -> None:
        # The first task runs `_work`. Then no more tasks are started, and the others end.
        for task in self._tasks:
            if not await task.join(deadline):
                raise RequestTimeout(f"{self._title}: {problem}")

    # ---- the error that ended the work

    def _keep_error(self, error: BaseException) -> None:
        """Keep, log and report the error that ended the work, unless an earlier error is kept."""
        if self._error is not None:
            return
        self._error = error
        if self._reports_end and _is_news(error):
            from twinstream.core.consume.reports import WorkEnded
            from twinstream.core.log.reporter import GuardedReporter

            # Guarded: the callback may also have raised this error.
            report = GuardedReporter[WorkEnded](self._on_end, "on_report", self._area)
            report(WorkEnded(self._title, error))

    def _raise_unseen(self) -> None:
        if not self._is_raised:
            self._raise_error()

    def _raise_error(self) -> None:
        if self._error is not None:
            self._is_raised = True
            raise self._error

    def __del__(self) -> None:
        error = self._error
        is_news = error is not None and not self._is_raised and _is_news(error)
        # In a forked child, do not warn: the parent process does.
        if not (self._is_unstarted or is_news) or self._is_parents:
            return
        self._warn_if_unstarted()
        if is_news:
            text = f"{self._title} ended with an error that no call raised: {error!r}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)

    def _warn_if_unstarted(self) -> None:
        if self._is_unstarted:
            self._is_unstarted = False
            text = f"{self._title} was never started: {_HOW_TO_START}"
            warnings.warn(text, RuntimeWarning, stacklevel=3)


def _is_news(error: BaseException) -> bool:
    """Return whether an error that ended the work should be reported to the user.

    Return False for a cancellation, and for `ConnectionClosed` after the user closed the
    connection.
    """
    if isinstance(error, ConnectionClosed) and error.__cause__ is None:
        return False
    return isinstance(error, _NEWS)
