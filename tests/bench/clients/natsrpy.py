"""natsrpy, a Rust client with Python bindings."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from natsrpy import Nats

from tests.bench.job import BATCH, SINK_SUBJECT, STREAM, TICKS, WINDOW, Job, Meter


def run(job: Job, work: Callable[[Any], Awaitable[str]]) -> str:
    """Run in a loop with a connection."""

    async def main() -> str:
        client: Any = Nats(addrs=[job.url])
        await client.startup()
        try:
            return await work(await client.jetstream())
        finally:
            await client.shutdown()

    return asyncio.run(main())


async def bound(jet: Any, job: Job, stream: str = STREAM) -> Any:
    """Return the consumer."""
    found = await jet.streams.get(stream)
    return await found.consumers.get_pull(job.consumer)


def fetch(job: Job) -> str:
    """Fetch batches, with an acknowledgement each if the consumer wants it."""

    async def work(jet: Any) -> str:
        source = await bound(jet, job)
        meter, seen = Meter(), 0
        while seen < job.count:
            for message in await source.fetch(BATCH, expires=10):
                if job.policy == "explicit":
                    # Waits for the server at the last one: it has no other way to be sure.
                    await message.ack(double=seen == job.count - 1)
                seen += 1
        return meter.result(seen)

    return run(job, work)


drain = consume = fetch


def next_(job: Job) -> str:
    """Ask for one message at a time."""

    async def work(jet: Any) -> str:
        source = await bound(jet, job)
        meter = Meter()
        for _ in range(job.count):
            began = time.perf_counter()
            [_message] = await source.fetch(1, expires=10)
            meter.call(began)
        return meter.result(job.count)

    return run(job, work)


def idle(job: Job) -> str:
    """Wait for messages that come one by one."""

    async def work(jet: Any) -> str:
        source = await bound(jet, job, TICKS)
        meter, seen = Meter(), 0
        while seen < job.count:
            [message] = await source.fetch(1, expires=10)
            seen += meter.tick(message.payload)
        return meter.result(seen)

    return run(job, work)


def publish(job: Job) -> str:
    """Publish one message at a time."""

    async def work(jet: Any) -> str:
        await jet.publish(SINK_SUBJECT, job.payload, wait=True)
        meter = Meter()
        for _ in range(job.count):
            began = time.perf_counter()
            await jet.publish(SINK_SUBJECT, job.payload, headers=job.headers, wait=True)
            meter.call(began)
        return meter.result(job.count)

    return run(job, work)


def pipelined(job: Job) -> str:
    """Publish with many under way."""

    async def work(jet: Any) -> str:
        await jet.publish(SINK_SUBJECT, job.payload, wait=True)
        meter, futures, done = Meter(), deque[Any](), 0
        for _ in range(job.count):
            futures.append(jet.publish(SINK_SUBJECT, job.payload, headers=job.headers, wait=True))
            if len(futures) >= WINDOW:
                await futures.popleft()
                done += 1
        for future in futures:
            await future
            done += 1
        return meter.result(done)

    return run(job, work)
