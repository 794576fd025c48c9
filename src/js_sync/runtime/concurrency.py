"""The seam, first half: waiting, tasks and locks of the blocking twin, on threads.

`js_async/_io.py` holds the same names in the same order on asyncio, as `_link.py` does for the
second half, the bytes. A diff of the two pairs is the whole list of intended differences between
the twins.
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
from inspect import iscoroutinefunction
from threading import Lock
from types import FrameType
from typing import Any, ClassVar, Final, Protocol, Self, TypeVar
from weakref import WeakSet

from twinstream.core.deadline import Deadline
from twinstream.errors import BadArgument, ConnectionFailed, WrongHandler
from twinstream.core.base.check_callbacks import check_takes_one
from twinstream.core.base.wrong_statement import SyncBlock as BlockHint
from twinstream.core.base.wrong_statement import SyncLoop as LoopHint

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
"""A function of the user that takes one thing."""

Stream = Generator[T]
"""What a generator function of the SDK returns."""

_NO_LOOP: Final = "is a coroutine function, which nobody awaits here: write `def`, or use js_async"
# Longest single sleep in the kernel (seconds): a lock takes no more than some years.
LONGEST: Final = 3600.0


def portions(items: Iterable[T]) -> Iterable[Iterable[T]]:
    """Iterate over the portions of an iterable: here it is a single one."""
    return (items,)


def call(handler: Handler[T], item: T) -> object:
    """Run a function of the user and return its result. Raises `WrongHandler`."""
    result = handler(item)
    if isinstance(result, Coroutine):
        result.close()
        raise WrongHandler(f"{handler!r} {_NO_LOOP}")
    return result


def check_handler(handler: object, what: str = "handler") -> None:
    """Refuse what cannot be called with one thing, and what is for asyncio: nobody awaits it."""
    if not callable(handler):
        raise BadArgument(f"{what} must be a function, got {handler!r}")
    if iscoroutinefunction(handler) or iscoroutinefunction(type(handler).__call__):
        raise WrongHandler(f"{what} {handler!r} {_NO_LOOP}")
    check_takes_one(handler, what)


def aside(work: Callable[[], T]) -> T:
    """Run a function that blocks; return its result."""
    return work()


def whole(work: Callable[[], T]) -> T:
    """Do as `aside`, to the end."""
    return work()


def shielded(work: Callable[[], None]) -> None:
    """Run work to its end: nobody is cancelled here."""
    work()


class Releasable(Protocol):
    """A gate at which somebody sleeps."""

    def release(self) -> None:
        """Open it."""
        ...


class Signal:
    """A flag that waiters sleep on."""

    __slots__ = ("raised", "sleepers")

    def __init__(self) -> None:
        self.raised = False
        self.sleepers: Final[list[Releasable]] = []

    def is_set(self) -> bool:
        """Tell whether the flag is up."""
        return self.raised

    def set(self) -> None:
        """Raise the flag and wake who sleeps on it."""
        self.raised = True
        if self.sleepers:
            for gate in tuple(self.sleepers):
                open_gate(gate)

    def clear(self) -> None:
        """Lower the flag."""
        self.raised = False

    def sleep(self, deadline: Deadline) -> bool:
        """Sleep until the flag is up or the deadline passes; tell which."""
        while not self.raised:
            if deadline.expired():
                return False
            with Gate(self) as gate:
                gate.pause(deadline.remaining())
        return True


class TimedLock:
    """A lock that a caller waits for until a deadline.

    An interrupt may come between acquiring it and noting that. So the lock knows its holder, and
    releasing it does nothing for any other thread.
    """

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock: Final = threading.RLock()

    def try_acquire(self) -> bool:
        """Acquire the lock if it is free; tell whether."""
        return self._lock.acquire(blocking=False)

    def acquire(self, deadline: Deadline) -> bool:
        """Wait for the lock until the deadline; tell whether the caller holds it."""
        while not self._lock.acquire(timeout=min(deadline.remaining(), LONGEST)):
            if deadline.expired():
                return False
        return True

    def release(self, held: bool) -> None:
        """Release the lock if the caller holds it."""
        try:
            self._lock.release()
        except RuntimeError:
            # Another thread holds it, or no thread does.
            pass


Home = threading.Thread | None
"""Where work was begun: its thread."""


def here() -> Home:
    """Return where the caller runs."""
    return threading.current_thread()


def set_from_anywhere(flag: Signal, home: Home) -> None:
    """Raise a flag of work that was begun at home: here any thread may."""
    flag.set()


class Interrupts:
    """SIGINT and SIGTERM raise a flag while it is entered; a second one acts as before.

    Only for the main thread of a program: raises `BadArgument` in another.
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
    """Has descriptors of which a forked child gets copies."""

    def let_go(self) -> None:
        """Close the copies; called in the child."""
        ...


class Forks:
    """How often this process was forked off, and what a child lets go of.

    Tells a connection that it is its parent's, without a system call for every message.
    """

    count = 0
    _owners: ClassVar[WeakSet[Inheritable]] = WeakSet()

    @classmethod
    def watch(cls, owner: Inheritable) -> None:
        """Have `let_go` of the owner called in forked children."""
        cls._owners.add(owner)

    @classmethod
    def note(cls) -> None:
        """Note a fork, in the child.

        A copy of a socket would keep the server's side of a connection open after its owner's end.
        """
        cls.count += 1
        owners = list(cls._owners)
        cls._owners.clear()
        for owner in owners:
            owner.let_go()


os.register_at_fork(after_in_child=Forks.note)


class Closable(Protocol):
    """Is to be closed before the program ends."""

    def flush_at_exit(self, deadline: Deadline) -> None:
        """Return when what was written is sent, at the deadline at the latest."""
        ...

    def warn_unclosed(self) -> None:
        """Warn, if it was not closed."""
        ...


class _Exit:
    """Flushes the connections of this process before the interpreter ends."""

    # The Forks.count of the process that the owners belong to.
    _forks = -1
    _owners: ClassVar[WeakSet[Closable]] = WeakSet()

    @classmethod
    def add(cls, owner: Closable) -> None:
        if cls._forks != Forks.count:
            cls._forks = Forks.count
            cls._owners.clear()
            # Processes of `multiprocessing` end by os._exit(), before which these are called.
            util = sys.modules.get("multiprocessing.util")
            if util is not None:
                util.Finalize(None, cls.flush, exitpriority=_LAST)
        cls._owners.add(owner)

    @classmethod
    def flush(cls) -> None:
        if cls._forks != Forks.count:
            # Forked off: the connections are the parent's.
            return
        deadline = Deadline.after(_EXIT_TIME)
        owners = list(cls._owners)
        for owner in owners:
            owner.flush_at_exit(deadline)
        for owner in owners:
            owner.warn_unclosed()


# All connections together delay the end of a program by this long at most (seconds).
_EXIT_TIME: Final = 1.0
# The priority of what `multiprocessing` calls last.
_LAST: Final = -100

# At import: callbacks run in reverse order, and those of the program may still send.
atexit.register(_Exit.flush)


def before_exit(owner: Closable) -> None:
    """Have the owner flushed before the interpreter ends, and warned of if it is not closed."""
    _Exit.add(owner)


def open_gate(gate: Releasable) -> None:
    """Wake who sleeps at a gate."""
    try:
        gate.release()
    except RuntimeError:
        # Somebody else opened it a moment ago; its sleeper is awake and looks again.
        pass


class Gate:
    """One sleep of one thread on one signal."""

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
        """Sleep until the gate is opened, for `timeout` seconds at most."""
        # The flag may have gone up before the gate was listed.
        if not self._signal.is_set():
            self.lock.acquire(timeout=min(timeout, LONGEST))


class Detachable(Protocol):
    """A socket, with TLS or without."""

    def detach(self) -> int:
        """Return the descriptor and forget it; -1 if it is closed."""
        ...


def close_copy(sock: Detachable) -> None:
    """Close a forked child's copy of a socket; takes no lock, which another thread may have had."""
    number = sock.detach()
    if number >= 0:
        os.close(number)
    closed(sock)


_SOCKETS: Final[set[object]] = set()


def keep_until_closed(sock: object) -> None:
    """Keep an open socket, so that the garbage collector does not close it before its owner does.

    It ends all objects of a connection that was dropped in any order.
    """
    _SOCKETS.add(sock)


def closed(sock: object) -> None:
    """Keep a socket no longer."""
    _SOCKETS.discard(sock)


class Waker:
    """A pair of sockets that ends a poll from outside: the gate of the thread that reads."""

    def __init__(self) -> None:
        self.busy = False
        """Whether the reader hands on what it read: it looks at its flag after that by itself."""
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
        """Wake the reader, unless it looks by itself."""
        if not self.busy:
            self.wake()

    def wake(self) -> None:
        """End the poll."""
        try:
            self._far.send(b"\0")
        except OSError:
            # Full: enough wake-ups are under way. Closed: nobody polls any more.
            pass

    def drain(self) -> None:
        """Take in what woke it."""
        try:
            self._near.recv(4096)
        except OSError:
            pass

    def close(self) -> None:
        """Give the sockets back; nobody polls any more."""
        for sock in (self._near, self._far):
            sock.close()
            closed(sock)

    def let_go(self) -> None:
        """Close the copies of a forked child."""
        close_copy(self._near)
        close_copy(self._far)


class Task:
    """Work that runs beside its starter."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self._thread = threading.Thread(target=work, name=name, daemon=True)
        self._thread.start()

    def is_current(self) -> bool:
        """Tell whether the caller is this work itself."""
        return threading.current_thread() is self._thread

    def join(self, deadline: Deadline) -> bool:
        """Return when the work is done or the deadline passed; tell which."""
        while self._thread.is_alive() and not deadline.expired():
            self._thread.join(min(deadline.remaining(), LONGEST))
        return not self._thread.is_alive()


def spawn(work: Callable[[], None], name: str) -> Task:
    """Start work beside the caller."""
    return Task(work, name)


def sleep(delay: float) -> None:
    """Do nothing for `delay` seconds."""
    time.sleep(delay)
