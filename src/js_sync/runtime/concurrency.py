"""Waiting, threads and locks of the blocking twin.

The seam is the code that differs between the twins. This module is one half of the seam:
`js_async/runtime/concurrency.py` defines the same names in the same order, based on asyncio. The
other half is `socket_link.py`, which sends and receives bytes. All intended differences between the
twins are in these two pairs of files and in their helpers.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterable
from threading import Lock
from types import FrameType
from typing import Any, ClassVar, Final, Protocol, Self, TypeVar
from weakref import WeakSet, ref

from twinstream.core.arguments.check_callbacks import (
    NEEDS_LOOP,
    check_takes_one,
    is_of_kind,
    is_of_program,
)
from twinstream.core.arguments.wrong_statement import SyncBlock as BlockHint
from twinstream.core.arguments.wrong_statement import SyncLoop as LoopHint
from twinstream.core.deadline import Deadline
from twinstream.core.hooks import HOOKS, reached
from twinstream.errors import BadArgument, ConnectionFailed, WrongHandler

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

Handler = Callable[[T], object]
"""A user function that takes one argument."""

Work = Callable[[], object]
"""A function without arguments."""

Wait = Callable[[Deadline], None]
"""A function that waits for something until a deadline."""

Items = Generator[T]
"""The return type of the SDK's generator functions."""

_NO_LOOP: Final = "is a coroutine function, which is not awaited: write `def`, or use js_async"
_NO_BODY: Final = "is a generator function, whose body does not run when it is called: do not yield"
LONGEST: Final = 3600.0
"""Longest single wait in the kernel (seconds). Locks accept timeouts of some years at most."""


def portions(items: Iterable[T]) -> Iterable[Iterable[T]]:
    """Return an iterable of one portion, which contains all items."""
    return (items,)


def call(handler: Handler[T], item: T, *, may_yield: bool = False) -> object:
    """Call a user function and return its result.

    Raises `WrongHandler` if the function returns an object that needs an event loop, or a
    generator, whose body has not run. With `may_yield`, a generator is a result.
    """
    result = handler(item)
    if isinstance(result, NEEDS_LOOP):
        if isinstance(result, Coroutine):
            result.close()
        raise WrongHandler(f"{handler!r} {_NO_LOOP}")
    if not may_yield:
        _check_has_run(handler, result)
    return result


def _check_has_run(handler: object, result: object) -> None:
    if isinstance(result, Generator):
        raise WrongHandler(f"{handler!r} {_NO_BODY}")


def check_handler(handler: object, what: str = "handler", *, may_yield: bool = False) -> None:
    """Raise `BadArgument` if `handler` cannot be called with one argument.

    Raises `WrongHandler` if the function would need an event loop, or if it is a generator
    function, whose body would not run. With `may_yield`, the caller iterates over what it yields.
    """
    if not callable(handler):
        raise BadArgument(f"{what} must be a function, got {handler!r}")
    # Importing `inspect` takes milliseconds. Programs without a handler do not import it.
    from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction

    if is_of_kind(handler, iscoroutinefunction) or is_of_kind(handler, isasyncgenfunction):
        raise WrongHandler(f"{what} {handler!r} {_NO_LOOP}")
    if not may_yield and is_of_kind(handler, isgeneratorfunction):
        raise WrongHandler(f"{what} {handler!r} {_NO_BODY}")
    check_takes_one(handler, what)


def aside(work: Callable[[], T]) -> T:
    """Call a blocking function and return its result."""
    return work()


def whole(work: Callable[[], T]) -> T:
    """Call a blocking function and return its result."""
    return work()


def shielded(work: Callable[[], None]) -> None:
    """Run `work` to its end. No protection is necessary, because a thread cannot be cancelled."""
    work()


class Releasable(Protocol):
    """A lock at which one thread waits until another thread releases it."""

    def release(self) -> None:
        """Wake up the waiting thread."""
        ...


class Signal:
    """A flag that threads wait for, like `threading.Event`."""

    __slots__ = ("raised", "sleepers")

    def __init__(self) -> None:
        self.raised = False
        self.sleepers: Final[list[Releasable]] = []

    def is_set(self) -> bool:
        """Return whether the flag is set."""
        return self.raised

    def set(self) -> None:
        """Set the flag and wake up all threads that wait for it."""
        self.raised = True
        if self.sleepers:
            for gate in tuple(self.sleepers):
                open_gate(gate)

    def clear(self) -> None:
        """Clear the flag."""
        self.raised = False

    def sleep(self, deadline: Deadline) -> bool:
        """Wait until the flag is set or the deadline has passed; return whether it is set.

        Like in the asyncio twin, the result is False if another thread cleared the flag just after
        it was set: the caller then looks again, and waits until its next deadline.
        """
        while not self.raised and not deadline.expired():
            with Gate(self) as gate:
                if gate.pause(deadline.remaining()):
                    break
        return self.raised


class TimedLock:
    """A lock whose `acquire` has a deadline.

    An interrupt may occur after `acquire` has acquired the lock and before it has returned. The
    caller then calls `release` without knowing whether it has the lock. So this is a reentrant
    lock, which records its thread, and `release` does nothing in a thread without the lock.
    """

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock: Final = threading.RLock()

    def try_acquire(self) -> bool:
        """Acquire the lock if it is free; return whether the caller has acquired it."""
        return self._lock.acquire(blocking=False)

    def acquire(self, deadline: Deadline) -> bool:
        """Wait for the lock until the deadline; return whether the caller has acquired it."""
        while not self._lock.acquire(timeout=min(deadline.remaining(), LONGEST)):
            if deadline.expired():
                return False
        return True

    def release(self, held: bool) -> None:
        """Release the lock. Does nothing if the calling thread has not acquired it.

        The argument is ignored, because its value may be wrong after an interrupt.
        """
        try:
            self._lock.release()
        except RuntimeError:
            # Another thread holds the lock, or no thread does.
            pass


Home = threading.Thread | None
"""The thread that has started the work, or None if the work has not started."""


def here() -> Home:
    """Return the thread of the caller."""
    return threading.current_thread()


def set_from_anywhere(flag: Signal, home: Home) -> None:
    """Set a flag from any thread."""
    flag.set()


def soon(work: Callable[[], object], home: Home) -> None:
    """Call `work`, which takes no lock and does not wait.

    The garbage collector may call this anywhere.
    """
    work()


class Interrupts:
    """A context in which SIGINT and SIGTERM set a flag instead of ending the program.

    The first signal restores the previous handlers, so a second signal has its usual effect. A
    signal ends a wait of the main thread also if it arrives just before the wait. A handler that
    the program has set with `signal.signal` is called as well.

    Raises `BadArgument` if the context is not entered in the main thread.
    """

    def __init__(self, flag: Signal) -> None:
        from js_sync.runtime.handled_at_once import handled_at_once

        self._flag = flag
        self._before: dict[int, Any] = {}
        self._at_once = handled_at_once()

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            raise BadArgument("signals reach the main thread only: pass signals=False")
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._note)
        self._at_once.__enter__()
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        replaced = self._before.get(number)
        self._flag.set()
        self._restore()
        if is_of_program(replaced):
            replaced(number, frame)

    def __exit__(self, *_: object) -> None:
        self._at_once.__exit__(None, None, None)
        self._restore()

    def _restore(self) -> None:
        while self._before:
            number, handler = self._before.popitem()
            signal.signal(number, handler)


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

    def flush_at_exit(self, deadline: Deadline) -> None:
        """Send buffered data, until the deadline."""
        ...

    def warn_unclosed(self) -> None:
        """Emit a warning if the object was not closed."""
        ...


class _Exit:
    """The unclosed connections of this process, which are flushed when the interpreter ends."""

    # The `Forks.count` of the process that added the owners.
    _forks = -1
    _owners: ClassVar[WeakSet[Closable]] = WeakSet()

    @classmethod
    def add(cls, owner: Closable) -> None:
        if cls._forks != Forks.count:
            cls._forks = Forks.count
            cls._owners.clear()
            # A process of `multiprocessing` ends with os._exit(), which runs no `atexit` callbacks.
            # Before that, it runs the callbacks that are registered with `Finalize`.
            util = sys.modules.get("multiprocessing.util")
            if util is not None:
                util.Finalize(None, cls.flush, exitpriority=_LAST)
        cls._owners.add(owner)

    @classmethod
    def flush(cls) -> None:
        if cls._forks != Forks.count:
            # This process was forked, and the connections belong to its parent.
            return
        deadline = Deadline.after(_EXIT_TIME)
        owners = list(cls._owners)
        for owner in owners:
            owner.flush_at_exit(deadline)
        for owner in owners:
            owner.warn_unclosed()


# Maximum time by which all connections together delay the end of a program (seconds).
_EXIT_TIME: Final = 1.0
# A priority so low that `multiprocessing` runs the callback after all others.
_LAST: Final = -100

# Exit callbacks run in the reverse order of their registration. This callback is registered at
# import, so that callbacks of the program, which may send messages, run before it.
atexit.register(_Exit.flush)


def before_exit(owner: Closable) -> None:
    """Flush `owner` at the end of the interpreter, and let it warn if it is not closed."""
    _Exit.add(owner)


def open_gate(gate: Releasable) -> None:
    """Wake up the thread that waits at `gate`."""
    try:
        gate.release()
    except RuntimeError:
        # Another thread has just released the gate. The waiting thread is awake and will check its
        # condition again.
        pass


class Gate:
    """A single wait of one thread for one signal."""

    __slots__ = ("_signal", "lock")

    def __init__(self, signal: Signal) -> None:
        self._signal = signal
        self.lock = Lock()
        self.lock.acquire()

    def __enter__(self) -> Gate:
        self._signal.sleepers.append(self.lock)
        return self

    def __exit__(self, *_: object) -> None:
        self._signal.sleepers.remove(self.lock)

    def pause(self, timeout: float) -> bool:
        """Wait until `open_gate` is called, for at most `timeout` seconds.

        Return whether the signal was set.
        """
        # The signal may have been set before the gate was in the signal's list of sleepers.
        return self._signal.is_set() or self.lock.acquire(timeout=min(timeout, LONGEST))


class Detachable(Protocol):
    """A socket, with or without TLS."""

    def detach(self) -> int:
        """Detach the file descriptor and return it; -1 if it is closed."""
        ...


def close_copy(sock: Detachable) -> None:
    """Close the inherited copy of a socket in a forked child.

    Takes no lock, because a thread of the parent may have held it during the fork.
    """
    number = sock.detach()
    if number >= 0:
        os.close(number)
    closed(sock)


_SOCKETS: Final[set[object]] = set()


def keep_until_closed(sock: object) -> None:
    """Keep a reference to an open socket, until `closed` is called.

    When a connection is dropped, the garbage collector finalizes its objects in any order. The
    reference keeps the socket open until its `Link` has sent the buffered data.
    """
    _SOCKETS.add(sock)


def closed(sock: object) -> None:
    """Drop the reference that `keep_until_closed` keeps."""
    _SOCKETS.discard(sock)


class Waker:
    """A pair of sockets that interrupts the poll of the reading thread."""

    def __init__(self) -> None:
        self.busy = False
        """Whether the reading thread is processing data.

        Afterwards, the thread checks its signal, so `wake` is not necessary.
        """
        try:
            self._near, self._far = socket.socketpair()
        except OSError as error:
            raise ConnectionFailed(f"no sockets for a connection: {error}") from error
        self._near.setblocking(False)
        self._far.setblocking(False)
        self.number = self._near.fileno()
        keep_until_closed(self._near)
        keep_until_closed(self._far)

    def release(self) -> None:
        """Interrupt the poll, unless the reading thread is busy and will check its signal."""
        if not self.busy:
            self.wake()

    def wake(self) -> None:
        """Interrupt the poll."""
        try:
            self._far.send(b"\0")
        except OSError:
            # The buffer is full, so enough wake-ups are pending. Or the socket is closed, so no
            # thread polls it any more.
            pass

    def drain(self) -> None:
        """Discard the bytes that `wake` has sent."""
        try:
            self._near.recv(4096)
        except OSError:
            pass

    def close(self) -> None:
        """Close the sockets. Called when no thread polls them any more."""
        for sock in (self._near, self._far):
            sock.close()
            closed(sock)

    def let_go(self) -> None:
        """Close the inherited copies of the sockets. Called in a forked child."""
        close_copy(self._near)
        close_copy(self._far)


class Caller:
    """The thread that calls a method."""

    def __init__(self) -> None:
        thread = threading.current_thread()
        self.key = id(thread)
        self._thread = ref(thread)

    def may_call_again(self) -> bool:
        """Return whether the thread still runs and is not the one that asks, which waits."""
        thread = self._thread()
        return thread is not None and thread.is_alive() and thread is not threading.current_thread()


class Task:
    """A background thread."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self._thread = threading.Thread(target=work, name=name, daemon=True)
        self._thread.start()

    def is_current(self) -> bool:
        """Return whether this thread is the caller."""
        return threading.current_thread() is self._thread

    def join(self, deadline: Deadline) -> bool:
        """Wait for the thread until the deadline; return whether the thread is done."""
        while self._thread.is_alive() and not deadline.expired():
            self._thread.join(min(deadline.remaining(), LONGEST))
        return not self._thread.is_alive()


def spawn(work: Callable[[], None], name: str) -> Task:
    """Start a background thread and return it."""
    task = Task(work, name)
    if HOOKS:
        reached("task: started", (name, task))
    return task


def sleep(delay: float) -> None:
    """Sleep for `delay` seconds."""
    time.sleep(delay)
