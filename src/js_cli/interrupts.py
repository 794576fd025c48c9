"""Signals as a wish to end in good order: between two messages, or with nothing left half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from itertools import takewhile
from types import FrameType


def asks_for_json(words: Iterable[str]) -> bool:
    """Tell whether a command line asks for JSON; for interrupts before its options are read."""
    return "--json" in takewhile(lambda word: word != "--", words)


@contextmanager
def asked_to_stop() -> Generator[threading.Event]:
    """Give an event that Ctrl-C or SIGTERM sets; a second Ctrl-C interrupts as usual."""
    asked = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        asked.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ended_as_by_ctrl_c() -> Generator[None]:
    """Let SIGTERM and SIGHUP unwind what is under way, as Ctrl-C does; a second one kills at once.

    A signal that was set to be ignored, as by nohup, stays ignored.
    """

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise SystemExit(128 + number)  # as a shell calls it

    wanted = {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}
    ours = [number for number in wanted if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
