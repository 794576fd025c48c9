"""What a client is asked to do, and how it measures; standard library only.

A client is a module in `tests.bench.clients` with a function for each workload that it can do.
The function connects first, then measures with a `Meter`, so that connecting is not counted.
"""

from __future__ import annotations

import json
import resource
import ssl
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, quantiles
from typing import Any, Final

STREAM: Final = "BENCH"
SUBJECT: Final = "bench.data"
SINK_SUBJECT: Final = "sink.data"
TICKS: Final = "TICKS"
TICKS_SUBJECT: Final = "ticks.data"
BATCH: Final = 500
WINDOW: Final = 4000
BUFFER: Final = 5000
"""Messages that are asked for ahead, where a client has a buffer that it keeps filled."""

RATES: Final = ("drain", "consume", "fetch", "pipelined")
"""Workloads measured in messages a second: higher is better."""

LATENCIES: Final = ("next", "publish", "idle")
"""Workloads measured in microseconds a call: lower is better."""

TITLES: Final = {
    "drain": "drain, ack none",
    "consume": "consume, ack each",
    "fetch": "fetch(500), ack each",
    "pipelined": "publish, 4,000 in flight",
    "next": "next() on a ready stream",
    "publish": "publish awaited",
    "idle": "idle to delivered",
}


@dataclass(frozen=True)
class Job:
    """One measurement: where, how much, and of what."""

    client: str
    workload: str
    url: str
    count: int
    size: int = 128
    with_headers: bool = False
    ca: str | None = None

    @classmethod
    def read(cls, text: str) -> Job:
        """Return the job that `text` describes."""
        return cls(**json.loads(text))

    def text(self) -> str:
        """Return the job as one argument of a command line."""
        return json.dumps(asdict(self))

    @property
    def policy(self) -> str:
        """The acknowledgement policy of its consumer."""
        return "explicit" if self.workload in {"consume", "fetch"} else "none"

    @property
    def consumer(self) -> str:
        """The consumer that waits for it; it was made anew for this run."""
        return f"bench-{self.client}"

    @property
    def payload(self) -> bytes:
        """The payload of each message."""
        return b"x" * self.size

    @property
    def headers(self) -> dict[str, str] | None:
        """The headers of each message."""
        return {"Order": "4711", "Trace": "0af7651916cd43dd"} if self.with_headers else None

    def tls(self) -> ssl.SSLContext | None:
        """Return the TLS context, if the server wants TLS."""
        return ssl.create_default_context(cafile=self.ca) if self.ca else None


class Meter:
    """Measures one run: the clock, the client's CPU, and how far its memory grew."""

    def __init__(self) -> None:
        self._clock = time.perf_counter()
        self._cpu = time.process_time()
        self._memory = resident()
        self._calls: list[float] = []

    def call(self, began: float) -> None:
        """Note one call that began at a time of `time.perf_counter`."""
        self._calls.append(time.perf_counter() - began)

    def tick(self, payload: bytes) -> int:
        """Note a tick; return 1, or 0 for one that was sent before the client was ready."""
        sent = float(payload.partition(b" ")[0])
        if sent < self._clock:
            return 0
        self.call(sent)
        return 1

    def result(self, count: int) -> str:
        """Return the measurement of `count` messages as JSON."""
        clock = time.perf_counter() - self._clock
        cpu = time.process_time() - self._cpu
        found: dict[str, Any] = {
            "count": count,
            "rate": count / clock,
            "cpu_us": cpu / count * 1e6,
            "growth_mib": (resident() - self._memory) / 2**20,
        }
        if self._calls:
            found |= percentiles(self._calls)
        return json.dumps(found)


def percentiles(calls: Sequence[float]) -> dict[str, float]:
    """Return the median, the 99th percentile and the mean of seconds, in microseconds."""
    cuts = quantiles(calls, n=100)
    found = {"p50_us": cuts[49], "p99_us": cuts[98], "mean_us": fmean(calls)}
    return {name: value * 1e6 for name, value in found.items()}


def resident() -> int:
    """Return the bytes of memory that this process holds."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def tick(size: int) -> bytes:
    """Return the payload of a tick that is published now."""
    return f"{time.perf_counter()} ".encode().ljust(size, b"x")
