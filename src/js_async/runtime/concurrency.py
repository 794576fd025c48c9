"""Waiting, tasks and locks of the asyncio twin: the first half of the seam between the twins.

`js_sync/runtime/concurrency.py` has the same names in the same order, on threads. The second half
is `socket_link.py`, the bytes of a connection. A diff of the two pairs is the complete list of
intended differences between the twins.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import threading
from asyncio import Lock
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
)
from contextlib import suppress
from contextvars import copy_context
from types import FrameType
from typing import Any, ClassVar, Final, Protocol, Self, TypeVar
from weakref import WeakSet

from js_async.runtime.waiter import Sleeper
from twinstream.core.base.check_callbacks import check_takes_one
from twinstream.core.base.hooks import HOOKS, reached
from twinstream.core.base.wrong_statement import AsyncBlock as BlockHint
from twinstream.core.base.wrong_statement import AsyncLoop as LoopHint
from twinstream.core.deadline import NEVER, Deadline
from twinstream.errors import BadArgument, WrongHandler

__all__ = [
    "BlockHint",
    "Forks",
    "Handler",
    "Home",
    "Interrupts",
    "Lock",
    "LoopHint",
    "Signal",
    "Stream",
    "Task",
    "TimedLock",
    "aside",
    "before_exit",
    "call",
    "check_handler",
    "here",
    "portions",
    "set_from_anywhere",
    "shielded",
    "sleep",
    "spawn",
    "whole",
]

T = TypeVar("T")

Handler = Callable[[T], Awaitable[object]]
"""A user function that takes one argument and returns an awaitable."""

Stream = AsyncGenerator[T]
"""Return type of the generator functions of the SDK."""


async def portions(items: Iterable[T] | AsyncIterable[T]) -> AsyncGenerator[Iterable[T]]:
    """Iterate over a plain or an asynchronous iterable in portions.

    A plain iterable is a single portion, so that its items do not pass through this generator.
    """
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield (item,)
    else:
        yield items


async def call(handler: Handler[T], item: T) -> object:
    """Call a user function and return its result; raises `WrongHandler` for a plain one."""
    result = handler(item)
    if not isinstance(result, Awaitable):
        raise WrongHandler(
            f"{handler!r} returned {result!r}, nothing to await: write `async def`, or use js_sync"
        )
    try:
        return await result
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # The task that runs the handler was not cancelled, so this is an ordinary failure.
        raise RuntimeError(f"{handler!r} awaited something that was cancelled") from error


def check_handler(handler: object, what: str = "handler") -> None:
    """Refuse what cannot be called with one argument. Awaitability is checked at the call."""
    if not callable(handler):
        raise BadArgument(f"{what} must be a coroutine function, got {handler!r}")
    check_takes_one(handler, what)


async def aside(work: Callable[[], T]) -> T:
    """Run a blocking function in a thread; return its result."""
    return await asyncio.to_thread(work)


async def whole(work: Callable[[], T]) -> T:
    """Run like `aside`, but a cancellation takes effect only after `work` has returned."""
    running = asyncio.get_running_loop().run_in_executor(None, copy_context().run, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        raise


_SHIELDED: Final[set[asyncio.Task[None]]] = set()
"""Work that may outlive its caller. The event loop alone keeps only weak references to tasks."""


async def shielded(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run work to its end: a cancelled caller leaves at once, and the work continues."""
    running = asyncio.get_running_loop().create_task(work())
    _SHIELDED.add(running)
    running.add_done_callback(_SHIELDED.discard)
    await asyncio.shield(running)


class Signal:
    """A flag to wait for, like `asyncio.Event`."""

    __slots__ = ("raised", "sleepers")

    def __init__(self) -> None:
        self.raised = False
        self.sleepers: Final[list[Sleeper]] = []

    def is_set(self) -> bool:
        """Return whether the flag is set."""
        return self.raised

    def set(self) -> None:
        """Set the flag and wake up the waiters."""
        self.raised = True
        for sleeper in self.sleepers:
            sleeper.wake()

    def clear(self) -> None:
        """Clear the flag."""
        self.raised = False

    async def sleep(self, deadline: Deadline) -> bool:
        """Wait for the flag or the deadline; return whether the flag is set."""
        if self.raised:
            return True
        loop = asyncio.get_running_loop()
        sleeper = Sleeper(loop)
        self.sleepers.append(sleeper)
        alarm = None
        if deadline is not NEVER:
            alarm = loop.call_later(deadline.remaining(), sleeper.wake)
        try:
            await sleeper
        finally:
            self.sleepers.remove(sleeper)
            if alarm is not None:
                alarm.cancel()
        return self.raised


class TimedLock:
    """A lock with a deadline. Waiters acquire it in order."""

    __slots__ = ("_held", "_waiting")

    def __init__(self) -> None:
        self._held = False
        self._waiting: Final[deque[Signal]] = deque()

    def try_acquire(self) -> bool:
        """Acquire the lock if it is free; return whether that was done."""
        if self._held:
            return False
        self._held = True
        return True

    async def acquire(self, deadline: Deadline) -> bool:
        """Wait for the lock until the deadline; return whether the caller holds it."""
        if self.try_acquire():
            return True
        granted = Signal()
        self._waiting.append(granted)
        try:
            await granted.sleep(deadline)
        except BaseException:
            self.release(self._is_granted(granted))
            raise
        return self._is_granted(granted)

    def _is_granted(self, granted: Signal) -> bool:
        if not granted.is_set():
            self._waiting.remove(granted)
        return granted.is_set()

    def release(self, held: bool) -> None:
        """Release the lock if `held` says that the caller holds it; it goes to the next waiter."""
        if not held:
            return
        if self._waiting:
            self._waiting.popleft().set()
        else:
            self._held = False


Home = asyncio.AbstractEventLoop | None
"""Where work runs: its event loop."""


def here() -> Home:
    """Return the event loop of the caller."""
    return asyncio.get_running_loop()


def set_from_anywhere(flag: Signal, home: Home) -> None:
    """Set a flag of work that runs in `home`, from any thread; None if it has not begun."""
    if home is None:
        flag.set()
    else:
        home.call_soon_threadsafe(flag.set)


class Interrupts:
    """SIGINT and SIGTERM set a flag while this context is active; a second one acts as before.

    One signal sets the flags of all active contexts. Signal handlers that the program has set in
    its loop stay and are called, too. Only for the main thread; otherwise raises `BadArgument`.
    """

    _entered: ClassVar[list[Interrupts]] = []
    _before: ClassVar[dict[int, Any]] = {}

    def __init__(self, flag: Signal) -> None:
        self._flag = flag
        self._home: Home = None

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            raise BadArgument("signals reach the main thread only: pass signals=False")
        self._home = here()
        if not self._entered:
            for number in (signal.SIGINT, signal.SIGTERM):
                # Not `loop.add_signal_handler`: it replaces the handler that the loop had before.
                self._before[number] = signal.signal(number, self._note)
        self._entered.append(self)
        return self

    @classmethod
    def _note(cls, number: int, frame: FrameType | None) -> None:
        for each in cls._entered:
            set_from_anywhere(each._flag, each._home)
        cls._entered.clear()
        cls._restore()

    @classmethod
    def _restore(cls) -> None:
        while cls._before:
            number, handler = cls._before.popitem()
            signal.signal(number, handler)

    def __exit__(self, *_: object) -> None:
        if self in self._entered:
            self._entered.remove(self)
            if not self._entered:
                self._restore()


class Inheritable(Protocol):
    """An object with file descriptors, of which a forked child gets copies."""

    def let_go(self) -> None:
        """Close the copies. Called in the child."""
        ...


class Forks:
    """Counts the forks that led to this process, and closes descriptors in forked children.

    The count lets a connection detect without a system call that it belongs to a parent process.
    """

    count = 0
    _owners: ClassVar[WeakSet[Inheritable]] = WeakSet()

    @classmethod
    def watch(cls, owner: Inheritable) -> None:
        """Call `let_go` of the owner in forked children."""
        cls._owners.add(owner)

    @classmethod
    def note(cls) -> None:
        """Handle a fork, in the child.

        The child's copy of a socket would keep the connection open after its owner's end.
        """
        cls.count += 1
        owners = list(cls._owners)
        cls._owners.clear()
        for owner in owners:
            owner.let_go()


os.register_at_fork(after_in_child=Forks.note)


class Closable(Protocol):
    """An object that should be closed before the program ends."""

    async def flush_at_exit(self, deadline: Deadline) -> None:
        """Flush what was written, until the deadline."""
        ...

    def warn_unclosed(self) -> None:
        """Warn if the object was not closed."""
        ...


class _Exit:
    """Warns of the unclosed connections of this process before the interpreter ends.

    Data was flushed before that: at the end of an event loop its tasks are cancelled, and then the
    keeper of a connection flushes.
    """

    # The `Forks.count` of the process to which the owners belong.
    _forks = -1
    _owners: ClassVar[WeakSet[Closable]] = WeakSet()

    @classmethod
    def add(cls, owner: Closable) -> None:
        if cls._forks != Forks.count:
            cls._forks = Forks.count
            cls._owners.clear()
        cls._owners.add(owner)

    @classmethod
    def warn(cls) -> None:
        if cls._forks == Forks.count:
            for owner in list(cls._owners):
                owner.warn_unclosed()


# Registered at import: exit callbacks run in reverse order, so those of the program, which may
# close connections, run first.
atexit.register(_Exit.warn)


def before_exit(owner: Closable) -> None:
    """Register `owner` for a warning at interpreter exit if it is still open."""
    _Exit.add(owner)


class Task:
    """A background task."""

    def __init__(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._task = asyncio.get_running_loop().create_task(work, name=name)

    def is_current(self) -> bool:
        """Return whether the caller is this task itself."""
        return asyncio.current_task() is self._task

    async def join(self, deadline: Deadline) -> bool:
        """Wait for the task or the deadline; return whether the task is done."""
        timeout = None if deadline is NEVER else deadline.remaining()
        done, _ = await asyncio.wait([self._task], timeout=timeout)
        return bool(done)


def spawn(work: Callable[[], Coroutine[Any, Any, None]], name: str) -> Task:
    """Start a background task."""
    task = Task(work(), name)
    if HOOKS:
        reached("task: started", (name, task))
    return task


async def sleep(delay: float) -> None:
    """Sleep for `delay` seconds."""
    await asyncio.sleep(delay)
