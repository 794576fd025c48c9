"""Our asyncio form.

What a call imports at its first use is no message's cost: it is made before the measurement.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import js_async
from tests.bench.job import BATCH, BUFFER, SINK_SUBJECT, STREAM, TICKS, WINDOW, Job, Meter
from twinstream.core.client.tls import TlsOptions


@asynccontextmanager
async def context(job: Job) -> AsyncGenerator[js_async.JetStream]:
    """Connect."""
    tls = TlsOptions(ca_file=job.ca) if job.ca else None
    async with js_async.connect(job.url, tls=tls) as connection:
        yield connection.jetstream(timeout=30)


def run(work: Callable[[], Awaitable[str]]) -> str:
    """Run in a loop."""

    async def main() -> str:
        return await work()

    return asyncio.run(main())


def drain(job: Job) -> str:
    """Iterate without acknowledgements."""

    async def work() -> str:
        async with context(job) as jet:
            return await drained(jet.bind_consumer(STREAM, job.consumer), job)

    return run(work)


async def drained(source: js_async.Consumer, job: Job) -> str:
    """Iterate over as many as are wanted."""
    endless = source.messages(max_messages=BUFFER)
    meter, seen = Meter(), 0
    async with endless as messages:
        async for _ in messages:
            seen += 1
            if seen == job.count:
                break
    return meter.result(seen)


def consume(job: Job) -> str:
    """Iterate with an acknowledgement each."""

    async def work() -> str:
        async with context(job) as jet:
            await warm_up(jet, job)
            return await consumed(jet.bind_consumer(STREAM, job.consumer), job)

    return run(work)


async def consumed(source: js_async.Consumer, job: Job) -> str:
    """Iterate over as many as are wanted, acknowledging each."""
    endless = source.messages(max_messages=BUFFER)
    meter, seen = Meter(), 0
    async with endless as messages:
        async for message in messages:
            await message.ack()
            seen += 1
            if seen == job.count:
                break
    await acknowledged(source, job.count)
    return meter.result(seen)


def fetch(job: Job) -> str:
    """Fetch batches with an acknowledgement each."""

    async def work() -> str:
        async with context(job) as jet:
            await warm_up(jet, job)
            source = jet.bind_consumer(STREAM, job.consumer)
            meter, seen = Meter(), 0
            while seen < job.count:
                for message in await source.fetch(BATCH, timeout=10):
                    await message.ack()
                    seen += 1
            await acknowledged(source, job.count)
            return meter.result(seen)

    return run(work)


async def warm_up(jet: js_async.JetStream, job: Job) -> None:
    """Import what `acknowledged` imports at its first use: that is no message's cost."""
    await jet.bind_consumer(STREAM, job.consumer).info()


async def acknowledged(source: js_async.Consumer, count: int) -> None:
    """Return when the server has every acknowledgement."""
    while (await source.info()).ack_floor.consumer_seq < count:
        await asyncio.sleep(0.001)


def next_(job: Job) -> str:
    """Ask for one message at a time."""

    async def work() -> str:
        async with context(job) as jet:
            source = jet.bind_consumer(STREAM, job.consumer)
            meter = Meter()
            for _ in range(job.count):
                began = time.perf_counter()
                if await source.next(timeout=10) is None:
                    raise AssertionError("no message")
                meter.call(began)
            return meter.result(job.count)

    return run(work)


def idle(job: Job) -> str:
    """Wait for messages that come one by one."""

    async def work() -> str:
        async with context(job) as jet:
            source = jet.bind_consumer(TICKS, job.consumer)
            endless = source.messages()
            meter, seen = Meter(), 0
            async with endless as messages:
                async for message in messages:
                    seen += meter.tick(message.data)
                    if seen == job.count:
                        break
            return meter.result(seen)

    return run(work)


def publish(job: Job) -> str:
    """Publish one message at a time."""

    async def work() -> str:
        async with context(job) as jet:
            await jet.publish(SINK_SUBJECT, job.payload)
            meter = Meter()
            for _ in range(job.count):
                began = time.perf_counter()
                await jet.publish(SINK_SUBJECT, job.payload, headers=job.headers)
                meter.call(began)
            return meter.result(job.count)

    return run(work)


def pipelined(job: Job) -> str:
    """Publish with many under way."""

    async def work() -> str:
        async with context(job) as jet:
            await jet.publish(SINK_SUBJECT, job.payload)
            requests = (
                (SINK_SUBJECT, job.payload)
                if job.headers is None
                else js_async.PublishRequest(SINK_SUBJECT, job.payload, job.headers)
                for _ in range(job.count)
            )
            outcomes = jet.publish_many(requests, window=WINDOW)
            meter, done = Meter(), 0
            async for outcome in outcomes:
                if isinstance(outcome, js_async.PublishFailure):
                    raise outcome.error
                done += 1
            return meter.result(done)

    return run(work)
