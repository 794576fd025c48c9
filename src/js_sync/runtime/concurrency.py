"""Waiting, threads and locks of the blocking twin: the first half of the seam between the twins.

`js_async/runtime/concurrency.py` has the same names in the same order, on asyncio. The second half
is `socket_link.py`, the bytes of a connection. A diff of the two pairs is the complete list of
intended differences between the twins.
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
from weakref import WeakSet

from twinstream.core.base.check_callbacks import check_takes_one
from twinstream.core.base.hooks import HOOKS, reached
from twinstream.core.base.wrong_statement import SyncBlock as BlockHint
from twinstream.core.base.wrong_statement import SyncLoop as LoopHint
from twinstream.core.deadline import Deadline
from twinstream.errors import BadArgument, ConnectionFailed, WrongHandler

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

Handler = Callable[[T], object]
"""A user function that takes one argument."""

Stream = Generator[T]
"""Return type of the generator functions of the SDK."""

_NO_LOOP: Final = "is a coroutine function, which is not awaited: write `def`, or use js_async"
# Longest single wait in the kernel (seconds): locks accept timeouts of some years at most.
LONGEST: Final = 3600.0


def portions(items: Iterable[T]) -> Iterable[Iterable[T]]:
    """Return an iterable as a single portion."""
    return (items,)


def call(handler: Handler[T], item: T) -> object:
    """Call a user function and return its result. Raises `WrongHandler` for one of asyncio."""
    result = handler(item)
    if isinstance(result, Coroutine):
        result.close()
        raise WrongHandler(f"{handler!r} {_NO_LOOP}")
    return result


def check_handler(handler: object, what: str = "handler") -> None:
    """Refuse what cannot be called with one argument, and functions of asyncio."""
    if not callable(handler):
        raise BadArgument(f"{what} must be a function, got {handler!r}")
    # `inspect` takes milliseconds to import, which programs without a handler save.
    from inspect import iscoroutinefunction

    if iscoroutinefunction(handler) or iscoroutinefunction(type(handler).__call__):
        raise WrongHandler(f"{what} {handler!r} {_NO_LOOP}")
    check_takes_one(handler, what)


def aside(work: Callable[[], T]) -> T:
    """Run a blocking function; return its result."""
    return work()


def whole(work: Callable[[], T]) -> T:
    """Run like `aside`."""
    return work()


def shielded(work: Callable[[], None]) -> None:
    """Run work to its end: threads are not cancelled."""
    work()


class Releasable(Protocol):
    """A gate at which a thread waits."""

    def release(self) -> None:
        """Open the gate."""
        ...


class Signal:
    """A flag to wait for, like `threading.Event`."""

    __slots__ = ("raised", "sleepers")

    def __init__(self) -> None:
        self.raised = False
        self.sleepers: Final[list[Releasable]] = []

    def is_set(self) -> bool:
        """Return whether the flag is set."""
        return self.raised

    def set(self) -> None:
        """Set the flag and wake up the waiters."""
        self.raised = True
        if self.sleepers:
            for gate in tuple(self.sleepers):
                open_gate(gate)

    def clear(self) -> None:
        """Clear the flag."""
        self.raised = False

    def sleep(self, deadline: Deadline) -> bool:
        """Wait for the flag or the deadline; return whether the flag is set."""
        while not self.raised:
            if deadline.expired():
                return False
            with Gate(self) as gate:
                gate.pause(deadline.remaining())
        return True


class TimedLock:
    """A lock with a deadline.

    An interrupt may come between acquiring the lock and recording that. So the lock knows its
    holder, and releasing it has no effect in any other thread.
    """

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock: Final = threading.RLock()

    def try_acquire(self) -> bool:
        """Acquire the lock if it is free; return whether that was done."""
        return self._lock.acquire(blocking=False)

    def acquire(self, deadline: Deadline) -> bool:
        """Wait for the lock until the deadline; return whether the caller holds it."""
        while not self._lock.acquire(timeout=min(deadline.remaining(), LONGEST)):
            if deadline.expired():
                return False
        return True

    def release(self, held: bool) -> None:
        """Release the lock if the caller holds it."""
        try:
            self._lock.release()
        except RuntimeError:
            # Another thread holds the lock, or no thread does.
            pass


Home = threading.Thread | None
"""Where work was started: its thread."""


def here() -> Home:
    """Return the thread of the caller."""
    return threading.current_thread()


def set_from_anywhere(flag: Signal, home: Home) -> None:
    """Set a flag of work that was started in `home`; any thread may do so."""
    flag.set()


class Interrupts:
    """SIGINT and SIGTERM set a flag while this context is active; a second one acts as before.

    Only for the main thread; otherwise raises `BadArgument`.
    """

    def __init__(self, flag: Signal) -> None:
        self._flag = flag
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            raise BadArgument("signals reach the main thread only: pass signals=False")
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._flag.set()
        self.__exit__()

    def __exit__(self, *_: object) -> None:
        while self._before:
            number, handler = self._before.popitem()
            signal.signal(number, handler)


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

    def flush_at_exit(self, deadline: Deadline) -> None:
        """Flush what was written, until the deadline."""
        ...

    def warn_unclosed(self) -> None:
        """Warn if the object was not closed."""
        ...


class _Exit:
    """Flushes the connections of this process before the interpreter ends."""

    # The `Forks.count` of the process to which the owners belong.
    _forks = -1
    _owners: ClassVar[WeakSet[Closable]] = WeakSet()

    @classmethod
    def add(cls, owner: Closable) -> None:
        if cls._forks != Forks.count:
            cls._forks = Forks.count
            cls._owners.clear()
            # Processes of `multiprocessing` end with os._exit(), which runs only these callbacks.
            util = sys.modules.get("multiprocessing.util")
            if util is not None:
                util.Finalize(None, cls.flush, exitpriority=_LAST)
        cls._owners.add(owner)

    @classmethod
    def flush(cls) -> None:
        if cls._forks != Forks.count:
            # Forked: the connections belong to the parent.
            return
        deadline = Deadline.after(_EXIT_TIME)
        owners = list(cls._owners)
        for owner in owners:
            owner.flush_at_exit(deadline)
        for owner in owners:
            owner.warn_unclosed()


# All connections together delay the end of a program by this at most (seconds).
_EXIT_TIME: Final = 1.0
# The priority of the last callbacks of `multiprocessing`.
_LAST: Final = -100

# Registered at import: exit callbacks run in reverse order, so those of the program, which may
# send, run first.
atexit.register(_Exit.flush)


def before_exit(owner: Closable) -> None:
    """Register `owner` to be flushed at interpreter exit, with a warning if it is still open."""
    _Exit.add(owner)


def open_gate(gate: Releasable) -> None:
    """Wake up the thread that waits at a gate."""
    try:
        gate.release()
    except RuntimeError:
        # Another thread opened the gate a moment ago; the waiter is awake and checks again.
        pass


class Gate:
    """One wait of one thread for one signal."""

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

    def pause(self, timeout: float) -> None:
        """Wait until the gate is opened, for `timeout` seconds at most."""
        # The flag may have been set before the gate was listed.
        if not self._signal.is_set():
            self.lock.acquire(timeout=min(timeout, LONGEST))


class Detachable(Protocol):
    """A socket, with or without TLS."""

    def detach(self) -> int:
        """Detach and return the descriptor; -1 if it is closed."""
        ...


def close_copy(sock: Detachable) -> None:
    """Close a forked child's copy of a socket. Takes no lock: another thread may have held it."""
    number = sock.detach()
    if number >= 0:
        os.close(number)
    closed(sock)


_SOCKETS: Final[set[object]] = set()


def keep_until_closed(sock: object) -> None:
    """Keep an open socket alive, so that the garbage collector does not close it before its owner.

    The garbage collector finalizes the objects of a dropped connection in any order.
    """
    _SOCKETS.add(sock)


def closed(sock: object) -> None:
    """Stop keeping a socket alive."""
    _SOCKETS.discard(sock)


class Waker:
    """A pair of sockets that interrupts a poll: the gate of the reading thread."""

    def __init__(self) -> None:
        self.busy = False
        """Whether the reader dispatches data: it checks its flag afterwards without a wake-up."""
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
        """Wake up the reader, unless it checks its flag anyway."""
        if not self.busy:
            self.wake()

    def wake(self) -> None:
        """Interrupt the poll."""
        try:
            self._far.send(b"\0")
        except OSError:
            # Full: enough wake-ups are pending. Closed: no thread polls any more.
            pass

    def drain(self) -> None:
        """Read the wake-ups."""
        try:
            self._near.recv(4096)
        except OSError:
            pass

    def close(self) -> None:
        """Close the sockets; no thread polls any more."""
        for sock in (self._near, self._far):
            sock.close()
            closed(sock)

    def let_go(self) -> None:
        """Close the copies of a forked child."""
        close_copy(self._near)
        close_copy(self._far)


class Task:
    """A background thread."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self._thread = threading.Thread(target=work, name=name, daemon=True)
        self._thread.start()

    def is_current(self) -> bool:
        """Return whether the caller is this thread itself."""
        return threading.current_thread() is self._thread

    def join(self, deadline: Deadline) -> bool:
        """Wait for the thread or the deadline; return whether the thread is done."""
        while self._thread.is_alive() and not deadline.expired():
            self._thread.join(min(deadline.remaining(), LONGEST))
        return not self._thread.is_alive()


def spawn(work: Callable[[], None], name: str) -> Task:
    """Start a background thread."""
    task = Task(work, name)
    if HOOKS:
        reached("task: started", (name, task))
    return task


def sleep(delay: float) -> None:
    """Sleep for `delay` seconds."""
    time.sleep(delay)
