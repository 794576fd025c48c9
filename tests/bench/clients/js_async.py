"""Our asyncio form."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import js_async
from js_models import ConsumerConfig
from tests.bench.workloads import BATCH, PAYLOAD, SINK_SUBJECT, STREAM, WINDOW, Meter


@asynccontextmanager
async def consumer(url: str, policy: str) -> AsyncGenerator[js_async.Consumer]:
    """Open a new consumer of the filled stream."""
    async with js_async.connect(url) as connection:
        jet = connection.jetstream(timeout=30)
        yield await jet.create_consumer(STREAM, config(policy))


def config(policy: str) -> ConsumerConfig:
    """Return the configuration that every client uses."""
    return ConsumerConfig(
        ack_policy=policy, max_ack_pending=-1 if policy == "explicit" else None, mem_storage=True
    )


def drain(url: str, count: int) -> str:
    """Iterate without acknowledgements."""

    async def run() -> str:
        async with consumer(url, "none") as source:
            meter, seen = Meter(), 0
            async with source.messages(max_messages=5000) as messages:
                async for _ in messages:
                    seen += 1
                    if seen == count:
                        break
            return meter.result(seen)

    return asyncio.run(run())


def consume(url: str, count: int) -> str:
    """Iterate with an acknowledgement each."""

    async def run() -> str:
        async with consumer(url, "explicit") as source:
            meter, seen = Meter(), 0
            async with source.messages(max_messages=1000) as messages:
                async for message in messages:
                    await message.ack()
                    seen += 1
                    if seen == count:
                        break
            await acknowledged(source, count)
            return meter.result(seen)

    return asyncio.run(run())


def fetch(url: str, count: int) -> str:
    """Fetch batches with an acknowledgement each."""

    async def run() -> str:
        async with consumer(url, "explicit") as source:
            meter, seen = Meter(), 0
            while seen < count:
                for message in await source.fetch(BATCH, timeout=10):
                    await message.ack()
                    seen += 1
            await acknowledged(source, count)
            return meter.result(seen)

    return asyncio.run(run())


async def acknowledged(source: js_async.Consumer, count: int) -> None:
    """Return when the server has every acknowledgement."""
    while (await source.info()).ack_floor.consumer_seq < count:
        await asyncio.sleep(0.001)


def next_(url: str, count: int) -> str:
    """Ask for one message at a time."""

    async def run() -> str:
        async with consumer(url, "none") as source:
            meter = Meter()
            for _ in range(count):
                began = time.perf_counter()
                if await source.next(timeout=10) is None:
                    raise AssertionError("no message")
                meter.call(began)
            return meter.result(count)

    return asyncio.run(run())


def publish(url: str, count: int) -> str:
    """Publish one message at a time."""

    async def run() -> str:
        async with js_async.connect(url) as connection:
            jet = connection.jetstream(timeout=30)
            await jet.publish(SINK_SUBJECT, PAYLOAD)
            meter = Meter()
            for _ in range(count):
                began = time.perf_counter()
                await jet.publish(SINK_SUBJECT, PAYLOAD)
                meter.call(began)
            return meter.result(count)

    return asyncio.run(run())


def pipelined(url: str, count: int) -> str:
    """Publish with many under way."""

    async def run() -> str:
        async with js_async.connect(url) as connection:
            jet = connection.jetstream(timeout=30)
            await jet.publish(SINK_SUBJECT, PAYLOAD)
            meter, done = Meter(), 0
            request = js_async.PublishRequest(subject=SINK_SUBJECT, data=PAYLOAD)
            requests = (request for _ in range(count))
            async for outcome in jet.publish_many(requests, window=WINDOW):
                if isinstance(outcome, js_async.PublishFailure):
                    raise outcome.error
                done += 1
            return meter.result(done)

    return asyncio.run(run())
