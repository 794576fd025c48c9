"""The public calls of both twins and of the command line, on stored data that strangers wrote."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

from tests.fuzz.stored.calls import (
    CALLS,
    COMMANDS,
    AsyncTwin,
    Call,
    CommandLine,
    SyncTwin,
    broken_rule,
    world,
)
from tests.fuzz.stored.readers import broken_by, judged
from tests.fuzz.stored.samples import Mutator
from tests.fuzz.stored.server import StoredServer
from tests.fuzz.wire import ALLOWED, Finding

__all__ = ["CLIENTS", "run_client"]

_LONGEST: Final = 20.0
"""Seconds that one input may take, also on a busy machine."""

CLIENTS: Final[dict[str, tuple[Callable[[str], Any], dict[str, Call]]]] = {
    "js_sync": (SyncTwin, CALLS),
    "js_async": (AsyncTwin, CALLS),
    "cli": (CommandLine, COMMANDS),
}
"""What makes the calls, and the calls."""


class _Lines(logging.Handler):
    """Keeps the first log line that could steer a terminal."""

    fault = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Judge the message of a record."""
        found = broken_by(record.getMessage())
        if found and not self.fault:
            self.fault = f"the log line {record.getMessage()!r:.500} contains {found!r}"


@contextmanager
def _logged() -> Generator[_Lines]:
    lines, logger = _Lines(), logging.getLogger("twinstream")
    before = logger.level, logger.propagate
    logger.addHandler(lines)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield lines
    finally:
        logger.removeHandler(lines)
        logger.level, logger.propagate = before


def run_client(name: str, seed: int, more: Callable[[int], int]) -> Counter[str]:
    """Feed inputs to the calls of a twin; return how many it was of each call.

    `more(done)` says how many are to follow next, 0 at the end. The input number n is made of the
    seed plus n. Raises `Finding`.
    """
    mutator, done, counts = Mutator(), 0, Counter[str]()
    with _logged() as lines, StoredServer() as server:
        twin = CLIENTS[name][0](server.url)
        try:
            while count := more(done):
                for each in range(seed + done, seed + done + count):
                    counts[_one(name, twin, server, mutator, each)] += 1
                    if lines.fault:
                        raise Finding(f"{name}, seed {each}: {lines.fault}")
                done += count
        finally:
            twin.close()
    return counts


def _one(name: str, twin: Any, server: StoredServer, mutator: Mutator, seed: int) -> str:
    mutator.begin(seed)
    calls = CLIENTS[name][1]
    chosen = mutator.random.choice(list(calls))
    call = calls[chosen]
    streams = world(mutator, call.kind)
    server.begin(streams)
    shown = [(each.name, each.messages) for each in streams if each.messages]
    where = f"{name}, {chosen}, seed {seed}"
    began = time.monotonic()
    try:
        call.run(twin, mutator)
    except ALLOWED as error:
        judged(error)
    except Exception as error:
        raise Finding(f"{where}: {error!r:.2000} with {shown!r:.4000}") from error
    twin.fence()
    taken = time.monotonic() - began
    if taken > _LONGEST:
        raise Finding(f"{where}: took {taken:.1f} s with {shown!r:.4000}")
    with server.mutex:
        fault = broken_rule(call, server.asked, server.streams)
        unknown = server.unknown
    assert not unknown, f"{where}: the server does not know {unknown}"
    if fault:
        raise Finding(f"{where}: {fault} with {shown!r:.4000}")
    return chosen
