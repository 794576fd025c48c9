"""Run the handlers of signals at once, although the main thread waits in the kernel."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType
from typing import Final

__all__ = ["handled_at_once"]

_SHORTEST: Final = 0.001
# Pauses between two attempts to interrupt the main thread, in seconds.
_LONGEST: Final = 0.05


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
