"""What a blocking script does today: nats-py on an event loop in a thread beside it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import nats

from tests.bench.job import SINK_SUBJECT, STREAM, Job, Meter

T = TypeVar("T")


class Bridge:
    """An event loop in a thread; `run` waits for a coroutine on it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what the coroutine returns."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def next_(job: Job) -> str:
    """Ask for one message at a time."""
    bridge = Bridge()
    client: Any = bridge.run(nats.connect(job.url, tls=job.tls()))
    source: Any = bridge.run(client.jetstream().pull_subscribe_bind(job.consumer, STREAM))
    meter = Meter()
    for _ in range(job.count):
        began = time.perf_counter()
        bridge.run(source.fetch(1, timeout=10))
        meter.call(began)
    found = meter.result(job.count)
    bridge.run(client.close())
    return found


def publish(job: Job) -> str:
    """Publish one message at a time."""
    bridge = Bridge()
    client: Any = bridge.run(nats.connect(job.url, tls=job.tls()))
    jet = client.jetstream()
    bridge.run(jet.publish(SINK_SUBJECT, job.payload))
    meter = Meter()
    for _ in range(job.count):
        began = time.perf_counter()
        bridge.run(jet.publish(SINK_SUBJECT, job.payload, headers=job.headers))
        meter.call(began)
    found = meter.result(job.count)
    bridge.run(client.close())
    return found
