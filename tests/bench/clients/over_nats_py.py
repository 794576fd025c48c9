"""Our asyncio form over a connection of nats-py."""

from __future__ import annotations

import asyncio

import nats

import js_async
from tests.bench.clients.js_async import acknowledged, config
from tests.bench.workloads import STREAM, Meter


def drain(url: str, count: int) -> str:
    """Iterate without acknowledgements."""
    return _iterate(url, count, "none")


def consume(url: str, count: int) -> str:
    """Iterate with an acknowledgement each."""
    return _iterate(url, count, "explicit")


def _iterate(url: str, count: int, policy: str) -> str:
    async def run() -> str:
        client = await nats.connect(url)
        jet = js_async.from_nats(client, timeout=30)
        source = await jet.create_consumer(STREAM, config(policy))
        meter, seen = Meter(), 0
        async with source.messages(max_messages=1000) as messages:
            async for message in messages:
                if policy == "explicit":
                    await message.ack()
                seen += 1
                if seen == count:
                    break
        if policy == "explicit":
            await acknowledged(source, count)
        found = meter.result(seen)
        await client.close()
        return found

    return asyncio.run(run())
