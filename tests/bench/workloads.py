"""The workloads: what is asked of every client, and how a measurement looks.

A client is a module in ``tests.bench.clients`` with a function for each workload it can do. The
function connects first, then measures with a `Meter`, so that connecting is not counted.
"""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Sequence
from statistics import quantiles
from typing import Any, Final

STREAM: Final = "BENCH"
SUBJECT: Final = "bench.data"
SINK: Final = "SINK"
SINK_SUBJECT: Final = "sink.data"
PAYLOAD: Final = b"x" * 128
BATCH: Final = 500
WINDOW: Final = 4000

RATES: Final = ("drain", "consume", "fetch", "pipelined")
"""Workloads measured in messages a second: higher is better."""

LATENCIES: Final = ("next", "publish")
"""Workloads measured in microseconds a call: lower is better."""

TITLES: Final = {
    "drain": "drain, ack none",
    "consume": "consume, ack each",
    "fetch": "fetch(500), ack each",
    "pipelined": "publish, 4,000 in flight",
    "next": "next() on a ready stream",
    "publish": "publish awaited",
}


class Meter:
    """Measures one run: the clock, the client's CPU, and how far its memory grew."""

    def __init__(self) -> None:
        self._clock = time.perf_counter()
        self._cpu = time.process_time()
        self._memory = _resident()
        self._calls: list[float] = []

    def call(self, began: float) -> None:
        """Note one call that began at a time of `time.perf_counter`."""
        self._calls.append(time.perf_counter() - began)

    def result(self, count: int) -> str:
        """Return the measurement of `count` messages as JSON."""
        clock = time.perf_counter() - self._clock
        cpu = time.process_time() - self._cpu
        found: dict[str, Any] = {
            "count": count,
            "rate": count / clock,
            "cpu_us": cpu / count * 1e6,
            "growth_mib": (_resident() - self._memory) / 2**20,
        }
        if self._calls:
            found |= _percentiles(self._calls)
        return json.dumps(found)


def _percentiles(calls: Sequence[float]) -> dict[str, float]:
    cuts = quantiles(calls, n=100)
    return {"p50_us": cuts[49] * 1e6, "p99_us": cuts[98] * 1e6}


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
