"""Signal handlers that let a command finish its current work before it exits."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from itertools import takewhile
from types import FrameType


def asks_for_json(words: Iterable[str]) -> bool:
    """Return whether a command line asks for JSON; for interrupts before its options are read."""
    return "--json" in takewhile(lambda word: word != "--", words)


@contextmanager
def asked_to_stop(finishing: str = "") -> Generator[threading.Event]:
    """Yield an event that Ctrl-C or SIGTERM sets. A second Ctrl-C interrupts as usual.

    `finishing` describes the work that the command still finishes; it is shown on a terminal.
    """
    asked = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        asked.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if finishing and os.isatty(2):
            # Not printed by a console, because the signal may have interrupted it in the middle of
            # a line.
            os.write(2, f"\nstopping: {finishing}; Ctrl-C again aborts\n".encode())

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ended_as_by_ctrl_c() -> Generator[None]:
    """Let SIGTERM and SIGHUP unwind the command like Ctrl-C. A second signal kills it immediately.

    An ignored signal, as with nohup, stays ignored.
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
