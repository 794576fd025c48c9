"""nats-jetstream, the newer client of the nats.py project; needs Python 3.13."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from nats.client import connect
from nats.jetstream import new

from tests.bench.job import BATCH, BUFFER, SINK_SUBJECT, STREAM, TICKS, WINDOW, Job, Meter


def run(job: Job, work: Callable[[Any], Awaitable[str]]) -> str:
    """Run in a loop with a connection."""

    async def main() -> str:
        client = await connect(job.url, tls=job.tls())
        try:
            return await work(new(client))
        finally:
            await client.close()

    return asyncio.run(main())


async def acknowledge(message: Any, *, last: bool) -> None:
    """Acknowledge; wait for the server at the last one, which says that it has them all."""
    if last:
        await message.double_ack(timeout=30)
    else:
        await message.ack()


def consume(job: Job) -> str:
    """Iterate, with an acknowledgement each if the consumer wants it."""

    async def work(jet: Any) -> str:
        source = await jet.get_consumer(STREAM, job.consumer)
        meter, seen = Meter(), 0
        stream = await source.messages(max_messages=BUFFER)
        async for message in stream:
            seen += 1
            if job.policy == "explicit":
                await acknowledge(message, last=seen == job.count)
            if seen == job.count:
                break
        found = meter.result(seen)
        await stream.stop()
        return found

    return run(job, work)


drain = consume


def fetch(job: Job) -> str:
    """Fetch batches with an acknowledgement each."""

    async def work(jet: Any) -> str:
        source = await jet.get_consumer(STREAM, job.consumer)
        meter, seen = Meter(), 0
        while seen < job.count:
            async for message in await source.fetch(max_messages=BATCH, max_wait=10):
                seen += 1
                await acknowledge(message, last=seen == job.count)
        return meter.result(seen)

    return run(job, work)


def next_(job: Job) -> str:
    """Ask for one message at a time."""

    async def work(jet: Any) -> str:
        source = await jet.get_consumer(STREAM, job.consumer)
        meter = Meter()
        for _ in range(job.count):
            began = time.perf_counter()
            await source.next(max_wait=10)
            meter.call(began)
        return meter.result(job.count)

    return run(job, work)


def idle(job: Job) -> str:
    """Wait for messages that come one by one."""

    async def work(jet: Any) -> str:
        source = await jet.get_consumer(TICKS, job.consumer)
        meter, seen = Meter(), 0
        stream = await source.messages(max_messages=500)
        async for message in stream:
            seen += meter.tick(message.data)
            if seen == job.count:
                break
        found = meter.result(seen)
        await stream.stop()
        return found

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
    """Publish with many under way: tasks behind a semaphore, for it has no call of its own."""

    async def work(jet: Any) -> str:
        await jet.publish(SINK_SUBJECT, job.payload)
        free = asyncio.Semaphore(WINDOW)
        meter = Meter()

        async def one() -> None:
            try:
                await jet.publish(SINK_SUBJECT, job.payload, headers=job.headers, timeout=60)
            finally:
                free.release()

        async with asyncio.TaskGroup() as group:
            for _ in range(job.count):
                await free.acquire()
                group.create_task(one())
        return meter.result(job.count)

    return run(job, work)
