"""Signal handlers that let a command finish its current work before it exits."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from itertools import takewhile
from types import FrameType


def asks_for_json(words: Iterable[str]) -> bool:
    """Whether a command line contains `--json`, not counting arguments after `--`.

    This is used for errors and interrupts that occur before click has parsed the options.
    """
    return "--json" in takewhile(lambda word: word != "--", words)


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
