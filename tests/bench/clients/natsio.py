"""natsio, an asyncio client of its own; needs Python 3.13."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import natsio
from natsio.options import TLSConfig

from tests.bench.job import BATCH, BUFFER, SINK_SUBJECT, STREAM, TICKS, WINDOW, Job, Meter


def run(job: Job, work: Callable[[Any], Awaitable[str]]) -> str:
    """Run in a loop with a JetStream context."""

    async def main() -> str:
        tls = TLSConfig(cafile=job.ca) if job.ca else None
        async with await natsio.connect(job.url, tls=tls) as client:
            # A full window waits for room, and never fails.
            jet = client.jetstream(
                timeout=30, publish_async_max_pending=WINDOW, publish_async_stall_wait=60
            )
            return await work(jet)

    return asyncio.run(main())


async def bound(jet: Any, job: Job, stream: str = STREAM) -> Any:
    """Return the consumer."""
    return await (await jet.stream(stream)).consumer(job.consumer)


async def acknowledged(source: Any, job: Job) -> None:
    """Return when the server has every acknowledgement, if there are any."""
    while job.policy == "explicit" and (await source.info()).ack_floor.consumer_seq < job.count:
        await asyncio.sleep(0.001)


def consume(job: Job) -> str:
    """Iterate, with an acknowledgement each if the consumer wants it."""

    async def work(jet: Any) -> str:
        source = await bound(jet, job)
        meter, seen = Meter(), 0
        async with source.consume(max_messages=BUFFER) as messages:
            async for message in messages:
                if job.policy == "explicit":
                    await message.ack()
                seen += 1
                if seen == job.count:
                    break
            await acknowledged(source, job)
            return meter.result(seen)

    return run(job, work)


drain = consume


def fetch(job: Job) -> str:
    """Fetch batches with an acknowledgement each."""

    async def work(jet: Any) -> str:
        source = await bound(jet, job)
        meter, seen = Meter(), 0
        while seen < job.count:
            for message in await source.fetch(BATCH, timeout=10):
                await message.ack()
                seen += 1
        await acknowledged(source, job)
        return meter.result(seen)

    return run(job, work)


def next_(job: Job) -> str:
    """Ask for one message at a time."""

    async def work(jet: Any) -> str:
        source = await bound(jet, job)
        meter = Meter()
        for _ in range(job.count):
            began = time.perf_counter()
            await source.next(timeout=10)
            meter.call(began)
        return meter.result(job.count)

    return run(job, work)


def idle(job: Job) -> str:
    """Wait for messages that come one by one."""

    async def work(jet: Any) -> str:
        source = await bound(jet, job, TICKS)
        meter, seen = Meter(), 0
        async with source.consume() as messages:
            async for message in messages:
                seen += meter.tick(message.data)
                if seen == job.count:
                    break
            return meter.result(seen)

    return run(job, work)


def publish(job: Job) -> str:
    """Publish one message at a time."""

    async def work(jet: Any) -> str:
        await jet.publish(SINK_SUBJECT, job.payload)
        meter = Meter()
        for _ in range(job.count):
            began = time.perf_counter()
            await jet.publish(SINK_SUBJECT, job.payload, headers=job.headers)
            meter.call(began)
        return meter.result(job.count)

    return run(job, work)


def pipelined(job: Job) -> str:
    """Publish with many in flight."""

    async def work(jet: Any) -> str:
        await jet.publish(SINK_SUBJECT, job.payload)
        meter, futures = Meter(), []
        for _ in range(job.count):
            futures.append(await jet.publish_async(SINK_SUBJECT, job.payload, headers=job.headers))
        for future in futures:
            await future
        return meter.result(job.count)

    return run(job, work)
