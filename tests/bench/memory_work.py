"""What `tests.bench.memory` lets each twin do, each in a process of its own."""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import threading
from collections.abc import Callable
from typing import Any, Final

import js_async
import js_sync
from tests.bench.job import STREAM, resident
from twinstream.models import ConsumerConfig, StreamConfig

MIB: Final = 2**20
UNDER_WAY: Final = 10_000
PAYLOAD: Final = b"x" * 128
SILENT: Final = "silent"
# Messages without an answer are given up after this long (seconds).
PATIENCE: Final = 0.5


class Before:
    """What a process holds before the work."""

    def __init__(self) -> None:
        gc.collect()
        self.memory = resident()
        self.threads = threading.active_count()

    def result(self, **more: Any) -> str:
        """Return the growth since then, at its peak and at the end, as JSON."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        gc.collect()
        grown = {
            "peak_mib": round((peak - self.memory) / MIB, 2),
            "growth_mib": round((resident() - self.memory) / MIB, 2),
            "threads": threading.active_count() - self.threads,
        }
        return json.dumps(grown | more)


def _config(policy: str = "none") -> ConsumerConfig:
    return ConsumerConfig(ack_policy=policy, mem_storage=True, max_ack_pending=-1)


def consume_sync(url: str, count: int) -> str:
    """Consume messages."""
    with js_sync.connect(url) as nc:
        source = nc.jetstream(timeout=30).create_consumer(STREAM, _config())
        before, seen = Before(), 0
        with source.messages(stop_after=count) as messages:
            for _ in messages:
                seen += 1
        return before.result(done=seen)


def consume_async(url: str, count: int) -> str:
    """Consume messages."""

    async def work() -> str:
        async with js_async.connect(url) as nc:
            source = await nc.jetstream(timeout=30).create_consumer(STREAM, _config())
            before, seen = Before(), 0
            async with source.messages(stop_after=count) as messages:
                async for _ in messages:
                    seen += 1
            return before.result(done=seen)

    return asyncio.run(work())


def silent_stream(name: str) -> StreamConfig:
    """Return the configuration of a stream that acknowledges nothing."""
    subjects = [f"{SILENT}.{name}"]
    return StreamConfig(name=f"SILENT{name}", subjects=subjects, no_ack=True, storage="memory")


def pending_sync(url: str, count: int) -> str:
    """Publish to who never answers: 10,000 under way, then more as those are given up."""
    with js_sync.connect(url) as nc:
        jet = nc.jetstream(timeout=30)
        jet.create_stream(silent_stream("sync"))
        limits = {"window": UNDER_WAY, "timeout": PATIENCE}
        most, subject, publisher = 0, f"{SILENT}.sync", jet.publisher(**limits)
        try:
            with publisher:
                publisher.send(subject, PAYLOAD)
                before = Before()
                for _ in range(count - 1):
                    publisher.send(subject, PAYLOAD)
                    most = max(most, publisher.in_flight)
        except js_sync.PublishFailures as failures:
            return before.result(done=failures.count, in_flight=most)
        raise AssertionError("somebody acknowledged")


def pending_async(url: str, count: int) -> str:
    """Publish to who never answers: 10,000 under way, then more as those are given up."""

    async def work() -> str:
        async with js_async.connect(url) as nc:
            jet = nc.jetstream(timeout=30)
            await jet.create_stream(silent_stream("async"))
            limits = {"window": UNDER_WAY, "timeout": PATIENCE}
            most, subject, publisher = 0, f"{SILENT}.async", jet.publisher(**limits)
            try:
                async with publisher:
                    await publisher.send(subject, PAYLOAD)
                    before = Before()
                    for _ in range(count - 1):
                        await publisher.send(subject, PAYLOAD)
                        most = max(most, publisher.in_flight)
            except js_async.PublishFailures as failures:
                return before.result(done=failures.count, in_flight=most)
            raise AssertionError("somebody acknowledged")

    return asyncio.run(work())


def cycles_sync(url: str, count: int) -> str:
    """Fetch in turns: full, with nothing there, and given up while the server answers."""
    with js_sync.connect(url) as nc:
        jet = nc.jetstream(timeout=30)
        full = jet.create_consumer(STREAM, _config())
        config = ConsumerConfig(ack_policy="none", mem_storage=True, deliver_policy="new")
        empty = jet.create_consumer(STREAM, config)
        full.next(timeout=5)
        empty.fetch(1, wait="none")
        start, before = nc.stats.subscriptions, Before()
        for number in range(count):
            if number % 10 == 0:
                full.next(timeout=5)
            elif number % 10 == 1:
                # The server's end and ours race: a fetch that is over before it began.
                empty.fetch(1, timeout=0.001)
            else:
                empty.fetch(1, wait="none")
        return before.result(done=count, subscriptions=nc.stats.subscriptions - start)


def cycles_async(url: str, count: int) -> str:
    """Start fetches and cancel them, and let each tenth come to its end."""

    async def work() -> str:
        async with js_async.connect(url) as nc:
            jet = nc.jetstream(timeout=30)
            config = ConsumerConfig(ack_policy="none", mem_storage=True, deliver_policy="new")
            empty = await jet.create_consumer(STREAM, config)

            async def cancelled() -> None:
                fetch = asyncio.ensure_future(empty.fetch(1, timeout=5))
                await asyncio.sleep(0)
                fetch.cancel()
                await asyncio.gather(fetch, return_exceptions=True)

            await cancelled()
            start, tasks, before = nc.stats.subscriptions, len(asyncio.all_tasks()), Before()
            for number in range(count):
                if number % 10 == 0:
                    await empty.fetch(1, wait="none")
                await cancelled()
            return before.result(
                done=count,
                subscriptions=nc.stats.subscriptions - start,
                tasks=len(asyncio.all_tasks()) - tasks,
            )

    return asyncio.run(work())


WORK: Final[dict[str, Callable[[str, int], str]]] = {
    "consume_sync": consume_sync,
    "consume_async": consume_async,
    "pending_sync": pending_sync,
    "pending_async": pending_async,
    "cycles_sync": cycles_sync,
    "cycles_async": cycles_async,
}
