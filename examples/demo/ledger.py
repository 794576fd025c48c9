"""The results of both workers, shared between their threads."""

from __future__ import annotations

import threading
import time
from collections import Counter

from attrs import define, field, frozen

from examples.demo.handler import Verdict


@frozen
class Settled:
    """A settled event: the worker that settled it, and the time in seconds since the start."""

    seconds: float
    worker: str


def _no_sequences() -> set[int]:
    return set()


def _nothing_settled() -> list[Settled]:
    return []


@define
class Ledger:
    """The stream sequences of settled events by outcome, and the deliveries to each worker.

    An event is settled when it was acknowledged, terminated, or has failed `max_deliver` times.
    `expected` is the number of events. `complete` is set when all events are settled.
    `failures` is the number of deliveries that failed.
    """

    expected: int
    max_deliver: int
    acknowledged: set[int] = field(factory=_no_sequences)
    terminated: set[int] = field(factory=_no_sequences)
    exhausted: set[int] = field(factory=_no_sequences)
    deliveries: Counter[str] = field(factory=Counter[str])
    failures: int = 0
    settled_twice: int = 0
    timeline: list[Settled] = field(factory=_nothing_settled)
    complete: threading.Event = field(factory=threading.Event)
    _lock: threading.Lock = field(factory=threading.Lock)
    _started: float = field(factory=time.monotonic)

    def record(self, worker: str, sequence: int, delivery: int, verdict: Verdict) -> None:
        """Record a delivery of the message with the stream sequence `sequence`."""
        with self._lock:
            self.deliveries[worker] += 1
            if verdict is Verdict.AGAIN:
                self.failures += 1
                if delivery < self.max_deliver:
                    return
            self._settle(worker, sequence, verdict)

    @property
    def settled(self) -> int:
        """The number of settled events."""
        return len(self.acknowledged) + len(self.terminated) + len(self.exhausted)

    def _settle(self, worker: str, sequence: int, verdict: Verdict) -> None:
        if any(sequence in group for group in (self.acknowledged, self.terminated, self.exhausted)):
            self.settled_twice += 1
            return
        match verdict:
            case Verdict.DONE:
                self.acknowledged.add(sequence)
            case Verdict.NEVER:
                self.terminated.add(sequence)
            case Verdict.AGAIN:
                self.exhausted.add(sequence)
        self.timeline.append(Settled(time.monotonic() - self._started, worker))
        if self.settled >= self.expected:
            self.complete.set()
