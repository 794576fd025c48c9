"""Signal handlers that let a command finish its current work before it exits."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from itertools import takewhile
from types import FrameType
from typing import Final

_SHORTEST: Final = 0.001
_LONGEST: Final = 0.05
"""Pauses between two attempts to interrupt the main thread, in seconds."""


def asks_for_json(words: Iterable[str]) -> bool:
    """Whether a command line contains `--json`, not counting arguments after `--`.

    This is used for errors and interrupts that occur before click has parsed the options.
    """
    return "--json" in takewhile(lambda word: word != "--", words)


@contextmanager
def handled_at_once() -> Generator[None]:
    """Within the block, the handlers of signals run at once, even if the main thread waits.

    Python runs handlers in the main thread, between two bytecodes. If a signal arrives immediately
    before the main thread waits for a lock, or in another thread, it does not end the wait, and its
    handler would run only after the wait. A nested block changes nothing, and neither does a block
    in another thread, on Windows, or in a program that has its own handler of SIGURG or its own
    file descriptor for wake-ups.
    """
    with ExitStack() as stack:
        if _may_interrupt():
            stack.enter_context(_Interrupter())
        yield


def _may_interrupt() -> bool:
    return (
        os.name == "posix"
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGURG) in (signal.SIG_DFL, signal.SIG_IGN)
    )


class _Interrupter:
    """A thread that interrupts the main thread until it has run the handlers of all signals.

    The thread interrupts it with SIGURG, because a second SIGINT would have an effect of its own.
    """

    def __init__(self) -> None:
        self._main = threading.get_ident()
        self._arrived = 0
        self._handled = 0
        self._stopped = False
        self._stack = ExitStack()

    def __enter__(self) -> None:
        with ExitStack() as stack:
            self._numbers, written = os.pipe()
            stack.callback(os.close, self._numbers)
            stack.callback(os.close, written)
            os.set_blocking(written, False)
            before = signal.signal(signal.SIGURG, self._note)
            stack.callback(signal.signal, signal.SIGURG, before)
            thread = threading.Thread(target=self._work, name="signals of twinstream", daemon=True)
            thread.start()
            stack.callback(self._stop, thread, written)
            other = signal.set_wakeup_fd(written, warn_on_full_buffer=False)
            stack.callback(signal.set_wakeup_fd, other)
            if other != -1:  # of an event loop, which must still receive its signals
                return
            self._stack = stack.pop_all()

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _stop(self, thread: threading.Thread, written: int) -> None:
        self._stopped = True
        # A forked child may have the pipe open, so closing it would not end the read.
        with suppress(BlockingIOError):  # the pipe is full, so the thread does not wait for data
            os.write(written, b"\0")
        thread.join()

    def _work(self) -> None:
        while not self._stopped:
            numbers = os.read(self._numbers, 512)
            if numbers.strip(bytes([signal.SIGURG])):
                self._arrived += 1
                self._interrupt()

    def _interrupt(self) -> None:
        pause = _SHORTEST
        # Repeat it: SIGURG, too, may arrive immediately before the main thread waits.
        while self._handled < self._arrived and not self._stopped:
            signal.pthread_kill(self._main, signal.SIGURG)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST)

    def _note(self, number: int, frame: FrameType | None) -> None:
        arrived = self._arrived
        # Run the handlers of all signals that have arrived. This call may be for an older SIGURG.
        signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._handled = arrived


class _Asked(threading.Event):
    """An event that a signal handler may set while the interrupted code waits for it.

    The original takes a lock in both methods, so the handler would wait forever for the code that
    it has interrupted.
    """

    def __init__(self) -> None:
        super().__init__()
        self._gate = threading.Lock()
        self._gate.acquire()
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        self._open()

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set and self._gate.acquire(timeout=-1 if timeout is None else timeout):
            self._open()  # for the next thread that waits
        return self._is_set

    def _open(self) -> None:
        with suppress(RuntimeError):  # it is open
            self._gate.release()


@contextmanager
def asked_to_stop(
    finishing: str = "", *, more: Iterable[signal.Signals] = ()
) -> Generator[threading.Event]:
    """Yield an event that Ctrl-C or SIGTERM sets. A later Ctrl-C raises `KeyboardInterrupt`.

    `more` are further signals that set the event.

    `finishing` describes the work that the command finishes before it exits. At the first signal
    it is printed, if standard error is a terminal.
    """
    asked = _Asked()

    def note(number: int, frame: FrameType | None) -> None:
        asked.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if finishing and os.isatty(2):
            # Bypass the console: the signal may have interrupted it in the middle of a line.
            os.write(2, f"\nstopping: {finishing}; Ctrl-C again aborts\n".encode())

    before = {
        number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM, *more)
    }
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ended_as_by_ctrl_c() -> Generator[None]:
    """Within the block, SIGTERM and SIGHUP raise `SystemExit`, so that `finally` blocks run.

    A second signal of the same kind kills the process immediately. A signal that was ignored
    before, for example because of nohup, stays ignored. A signal with another handler keeps it.
    """

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise SystemExit(128 + number)  # the exit code that a shell reports for a signal

    wanted = {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}
    ours = [number for number in wanted if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
