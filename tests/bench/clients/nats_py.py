"""nats-py, by its best public idioms: fetch and publish_async."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import nats

from tests.bench.job import BATCH, SINK_SUBJECT, STREAM, TICKS, WINDOW, Job, Meter


@asynccontextmanager
async def connected(job: Job) -> AsyncGenerator[Any]:
    """Connect."""
    client = await nats.connect(job.url, tls=job.tls())
    try:
        yield client
    finally:
        await client.close()


def run(job: Job, work: Callable[[Any], Awaitable[str]]) -> str:
    """Run in a loop with a connection."""

    async def main() -> str:
        async with connected(job) as client:
            return await work(client)

    return asyncio.run(main())


async def bound(client: Any, job: Job, stream: str = STREAM) -> Any:
    """Return the consumer."""
    return await client.jetstream().pull_subscribe_bind(job.consumer, stream)


def fetch(job: Job) -> str:
    """Fetch batches, with an acknowledgement each if the consumer wants it."""

    async def work(client: Any) -> str:
        source = await bound(client, job)
        meter, seen = Meter(), 0
        while seen < job.count:
            for message in await source.fetch(BATCH, timeout=10):
                if job.policy == "explicit":
                    await message.ack()
                seen += 1
        while job.policy == "explicit":
            info = await source.consumer_info()
            if info.ack_floor.consumer_seq >= job.count:
                break
            await asyncio.sleep(0.001)
        return meter.result(seen)

    return run(job, work)


# There is no other loop over a pull consumer.
drain = consume = fetch


def next_(job: Job) -> str:
    """Ask for one message at a time."""

    async def work(client: Any) -> str:
        source = await bound(client, job)
        meter = Meter()
        for _ in range(job.count):
            began = time.perf_counter()
            await source.fetch(1, timeout=10)
            meter.call(began)
        return meter.result(job.count)

    return run(job, work)


def idle(job: Job) -> str:
    """Wait for messages that come one by one."""

    async def work(client: Any) -> str:
        source = await bound(client, job, TICKS)
        meter, seen = Meter(), 0
        while seen < job.count:
            [message] = await source.fetch(1, timeout=10)
            seen += meter.tick(message.data)
        return meter.result(seen)

    return run(job, work)


def publish(job: Job) -> str:
    """Publish one message at a time."""

    async def work(client: Any) -> str:
        jet = client.jetstream()
        await jet.publish(SINK_SUBJECT, job.payload)
        meter = Meter()
        for _ in range(job.count):
            began = time.perf_counter()
            await jet.publish(SINK_SUBJECT, job.payload, headers=job.headers)
            meter.call(began)
        return meter.result(job.count)

    return run(job, work)


def pipelined(job: Job) -> str:
    """Publish with many under way."""

    async def work(client: Any) -> str:
        jet = client.jetstream(publish_async_max_pending=WINDOW)
        await jet.publish(SINK_SUBJECT, job.payload)
        meter, futures = Meter(), []
        for _ in range(job.count):
            futures.append(await jet.publish_async(SINK_SUBJECT, job.payload, headers=job.headers))
        for future in futures:
            await future
        return meter.result(job.count)

    return run(job, work)
