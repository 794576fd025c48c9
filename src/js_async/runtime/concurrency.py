"""Waiting, tasks and locks of the asyncio twin.

The seam is the code that differs between the twins. This module is one half of the seam:
`js_sync/runtime/concurrency.py` defines the same names in the same order, based on threads. The
other half is `socket_link.py`, which sends and receives bytes. All intended differences between the
twins are in these two pairs of files and in their helpers.
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
from weakref import WeakSet, ref

from js_async.runtime.waiter import Waiter, Wakeable
from twinstream.core.arguments.check_callbacks import check_takes_one, is_of_kind, is_of_program
from twinstream.core.arguments.wrong_statement import AsyncBlock as BlockHint
from twinstream.core.arguments.wrong_statement import AsyncLoop as LoopHint
from twinstream.core.deadline import NEVER, Deadline
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.on_failure import OnFailure
from twinstream.errors import BadArgument, WrongHandler

__all__ = [
    "BlockHint",
    "Caller",
    "Forks",
    "Handler",
    "Home",
    "Interrupts",
    "Items",
    "Lock",
    "LoopHint",
    "Signal",
    "Task",
    "TimedLock",
    "Wait",
    "Work",
    "aside",
    "before_exit",
    "call",
    "check_handler",
    "here",
    "portions",
    "set_from_anywhere",
    "shielded",
    "sleep",
    "soon",
    "spawn",
    "whole",
]

T = TypeVar("T")

Handler = Callable[[T], Awaitable[object]]
"""A user function that takes one argument and returns an awaitable."""

Work = Callable[[], Awaitable[object]]
"""A function without arguments that returns an awaitable."""

Wait = Callable[[Deadline], Awaitable[None]]
"""A function that waits for something until a deadline."""

Items = AsyncGenerator[T]
"""The return type of the SDK's generator functions."""


async def portions(items: Iterable[T] | AsyncIterable[T]) -> AsyncGenerator[Iterable[T]]:
    """Iterate over the items of a plain or an asynchronous iterable in portions.

    Each item of an asynchronous iterable is a portion. A plain iterable is a single portion, so its
    items need not pass through this generator.
    """
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield (item,)
    else:
        yield items


async def call(handler: Handler[T], item: T, *, may_yield: bool = False) -> object:
    """Call a user function and return its awaited result.

    Raises `WrongHandler` if the function returns no awaitable, and `RuntimeError` if the function
    awaits something that was cancelled. `may_yield` has no effect in this twin.
    """
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
        # The task that runs the handler was not cancelled, so the handler has failed.
        raise RuntimeError(f"{handler!r} awaited something that was cancelled") from error


def check_handler(handler: object, what: str = "handler", *, may_yield: bool = False) -> None:
    """Raise `BadArgument` if `handler` cannot be called with one argument.

    Raises `WrongHandler` if it is not a coroutine function. Functions that wrap a coroutine
    function are accepted; `call` checks later that they return an awaitable. `may_yield` has no
    effect in this twin, in which a generator function returns nothing to await.
    """
    if not callable(handler):
        raise BadArgument(f"{what} must be a coroutine function, got {handler!r}")
    check_takes_one(handler, what)
    # Importing `inspect` takes milliseconds. Programs without a handler do not import it.
    from inspect import iscoroutinefunction, unwrap

    # Compilers such as Cython mark their coroutine functions, and so do mocks.
    is_marked = hasattr(handler, "_is_coroutine")
    if not (is_marked or is_of_kind(unwrap(handler), iscoroutinefunction)):
        raise WrongHandler(
            f"{what} {handler!r} is not a coroutine function: write `async def`, or use js_sync"
        )


async def aside(work: Callable[[], T]) -> T:
    """Run a blocking function in a thread and return its result.

    If the caller is cancelled, it does not wait for the function, which continues in its thread.
    """
    return await asyncio.to_thread(work)


async def whole(work: Callable[[], T]) -> T:
    """Run a blocking function in a thread; return its result.

    A cancellation of the caller takes effect only after the function has returned.
    """
    running = asyncio.get_running_loop().run_in_executor(None, copy_context().run, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        raise


# The running tasks of `shielded`. The event loop keeps only weak references to tasks.
_SHIELDED: Final[set[asyncio.Task[None]]] = set()


async def shielded(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run `work` to its end, even if the caller is cancelled.

    A cancelled caller does not wait for the end of the work, which continues in a task.
    """
    running = asyncio.get_running_loop().create_task(work())
    _SHIELDED.add(running)
    running.add_done_callback(_SHIELDED.discard)
    await asyncio.shield(running)


class Signal:
    """A flag that tasks wait for, like `asyncio.Event`."""

    __slots__ = ("raised", "sleepers")

    def __init__(self) -> None:
        self.raised = False
        self.sleepers: Final[list[Wakeable]] = []

    def is_set(self) -> bool:
        """Return whether the flag is set."""
        return self.raised

    def set(self) -> None:
        """Set the flag and wake up all tasks that wait for it."""
        self.raised = True
        for sleeper in self.sleepers:
            sleeper.wake()

    def clear(self) -> None:
        """Clear the flag."""
        self.raised = False

    async def sleep(self, deadline: Deadline) -> bool:
        """Wait until the flag is set or the deadline has passed; return whether it is set."""
        if self.raised:
            return True
        loop = asyncio.get_running_loop()
        sleeper = Waiter(loop)
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
    """A lock whose `acquire` has a deadline. Waiting tasks acquire it in order."""

    __slots__ = ("_held", "_waiting")

    def __init__(self) -> None:
        self._held = False
        self._waiting: Final[deque[Signal]] = deque()

    def try_acquire(self) -> bool:
        """Acquire the lock if it is free; return whether the caller has acquired it."""
        if self._held:
            return False
        self._held = True
        return True

    async def acquire(self, deadline: Deadline) -> bool:
        """Wait for the lock until the deadline; return whether the caller has acquired it."""
        if self.try_acquire():
            return True
        granted = Signal()
        self._waiting.append(granted)
        # After a cancellation, the lock may have been passed to this task already.
        with OnFailure(lambda: self.release(self._is_granted(granted))):
            await granted.sleep(deadline)
        return self._is_granted(granted)

    def _is_granted(self, granted: Signal) -> bool:
        if not granted.is_set():
            self._waiting.remove(granted)
        return granted.is_set()

    def release(self, held: bool) -> None:
        """Pass the lock to the next waiting task, or free it.

        `held` is the result of `acquire`. If it is False, the call does nothing.
        """
        if not held:
            return
        if self._waiting:
            self._waiting.popleft().set()
        else:
            self._held = False


Home = asyncio.AbstractEventLoop | None
"""The event loop in which work runs, or None if the work has not started."""


def here() -> Home:
    """Return the event loop of the caller."""
    return asyncio.get_running_loop()


def set_from_anywhere(flag: Signal, home: Home) -> None:
    """Set a flag from any thread. Tasks in the event loop `home` wait for the flag.

    If `home` is None, no task waits for it yet.
    """
    if home is None:
        flag.set()
    else:
        home.call_soon_threadsafe(flag.set)


def soon(work: Callable[[], object], home: Home) -> None:
    """Call `work` in the event loop `home` soon. The garbage collector may call this anywhere.

    Does nothing if the loop is closed.
    """
    if home is not None:
        with suppress(RuntimeError):
            home.call_soon_threadsafe(work)


class Interrupts:
    """A context in which SIGINT and SIGTERM set a flag instead of ending the program.

    The first signal sets the flags of all active contexts and restores the previous handlers. So a
    second signal has its usual effect. Handlers that the program has set with
    `loop.add_signal_handler` or `signal.signal` are called as well.

    Raises `BadArgument` if it is not entered in the main thread.
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
                # Not `loop.add_signal_handler`, because it would replace the handler that the
                # program has set in the loop.
                self._before[number] = signal.signal(number, self._note)
        self._entered.append(self)
        return self

    @classmethod
    def _note(cls, number: int, frame: FrameType | None) -> None:
        replaced = cls._before.get(number)
        for each in cls._entered:
            set_from_anywhere(each._flag, each._home)
        cls._entered.clear()
        cls._restore()
        if is_of_program(replaced):
            replaced(number, frame)

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
    """An object with file descriptors, which a forked child process inherits."""

    def let_go(self) -> None:
        """Close the inherited descriptors. Called in the child."""
        ...


class Forks:
    """The number of forks that led to this process, and the objects to close in a forked child.

    A connection stores the number when it is created. If the number has changed since then, the
    connection belongs to a parent process. This check needs no system call.
    """

    count = 0
    _owners: ClassVar[WeakSet[Inheritable]] = WeakSet()

    @classmethod
    def watch(cls, owner: Inheritable) -> None:
        """Arrange that forked children call `owner.let_go`."""
        cls._owners.add(owner)

    @classmethod
    def note(cls) -> None:
        """Count a fork and close inherited descriptors. Called in the child.

        An open descriptor in the child would keep a connection open after the parent closed it.
        """
        cls.count += 1
        owners = list(cls._owners)
        cls._owners.clear()
        for owner in owners:
            owner.let_go()


os.register_at_fork(after_in_child=Forks.note)


class Closable(Protocol):
    """An object that the program should close before it ends."""

    async def flush_at_exit(self, deadline: Deadline) -> None:
        """Send buffered data, until the deadline."""
        ...

    def warn_unclosed(self) -> None:
        """Emit a warning if the object was not closed."""
        ...


class _Exit:
    """The unclosed connections of this process, which cause warnings when the interpreter ends.

    Their buffered data was already sent at the end of the event loop. The end of the loop cancels
    the background task of each connection, and a cancelled background task flushes.
    """

    # The `Forks.count` of the process that added the owners.
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


# Exit callbacks run in the reverse order of their registration. This callback is registered at
# import, so that callbacks of the program, which may close connections, run before it.
atexit.register(_Exit.warn)


def before_exit(owner: Closable) -> None:
    """Register `owner`, so that it can warn at the end of the interpreter if it was not closed."""
    _Exit.add(owner)


class Caller:
    """The task that calls a method."""

    def __init__(self) -> None:
        task = asyncio.current_task()
        self.key = id(task)
        self._task = None if task is None else ref(task)

    def may_call_again(self) -> bool:
        """Return whether the task still runs and is not the one that asks, which waits."""
        task = None if self._task is None else self._task()
        return task is not None and not task.done() and task is not asyncio.current_task()


class Task:
    """A background task."""

    def __init__(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._task = asyncio.get_running_loop().create_task(work, name=name)

    def is_current(self) -> bool:
        """Return whether this task is the caller."""
        return asyncio.current_task() is self._task

    async def join(self, deadline: Deadline) -> bool:
        """Wait for the task until the deadline; return whether the task is done."""
        timeout = None if deadline is NEVER else deadline.remaining()
        done, _ = await asyncio.wait([self._task], timeout=timeout)
        return bool(done)


def spawn(work: Callable[[], Coroutine[Any, Any, None]], name: str) -> Task:
    """Start a background task and return it."""
    task = Task(work(), name)
    if HOOKS:
        reached("task: started", (name, task))
    return task


async def sleep(delay: float) -> None:
    """Sleep for `delay` seconds."""
    await asyncio.sleep(delay)
