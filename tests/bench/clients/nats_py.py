"""nats-py, by its best public idioms: fetch and publish_async."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import nats
from nats.js.api import AckPolicy, ConsumerConfig

from tests.bench.workloads import BATCH, PAYLOAD, SINK_SUBJECT, STREAM, SUBJECT, WINDOW, Meter


async def subscription(client: Any, policy: str) -> Any:
    """Open a new consumer of the filled stream."""
    config = ConsumerConfig(
        ack_policy=AckPolicy(policy),
        max_ack_pending=-1 if policy == "explicit" else None,
        mem_storage=True,
    )
    return await client.jetstream().pull_subscribe(SUBJECT, stream=STREAM, config=config)


def _fetching(url: str, count: int, policy: str) -> str:
    async def run() -> str:
        client = await nats.connect(url)
        source = await subscription(client, policy)
        meter, seen = Meter(), 0
        while seen < count:
            for message in await source.fetch(BATCH, timeout=10):
                if policy == "explicit":
                    await message.ack()
                seen += 1
        while policy == "explicit":
            info = await source.consumer_info()
            if info.ack_floor.consumer_seq >= count:
                break
            await asyncio.sleep(0.001)
        found = meter.result(seen)
        await client.close()
        return found

    return asyncio.run(run())


def drain(url: str, count: int) -> str:
    """Fetch without acknowledgements."""
    return _fetching(url, count, "none")


def consume(url: str, count: int) -> str:
    """Fetch with an acknowledgement each: nats-py has no other loop over a pull consumer."""
    return _fetching(url, count, "explicit")


fetch = consume


def next_(url: str, count: int) -> str:
    """Ask for one message at a time."""

    async def run() -> str:
        client = await nats.connect(url)
        source = await subscription(client, "none")
        meter = Meter()
        for _ in range(count):
            began = time.perf_counter()
            await source.fetch(1, timeout=10)
            meter.call(began)
        found = meter.result(count)
        await client.close()
        return found

    return asyncio.run(run())


def publish(url: str, count: int) -> str:
    """Publish one message at a time."""

    async def run() -> str:
        client = await nats.connect(url)
        jet = client.jetstream()
        await jet.publish(SINK_SUBJECT, PAYLOAD)
        meter = Meter()
        for _ in range(count):
            began = time.perf_counter()
            await jet.publish(SINK_SUBJECT, PAYLOAD)
            meter.call(began)
        found = meter.result(count)
        await client.close()
        return found

    return asyncio.run(run())


def pipelined(url: str, count: int) -> str:
    """Publish with many under way."""

    async def run() -> str:
        client = await nats.connect(url)
        jet = client.jetstream(publish_async_max_pending=WINDOW)
        await jet.publish(SINK_SUBJECT, PAYLOAD)
        meter, futures = Meter(), []
        for _ in range(count):
            futures.append(await jet.publish_async(SINK_SUBJECT, PAYLOAD))
        for future in futures:
            await future
        found = meter.result(count)
        await client.close()
        return found

    return asyncio.run(run())
