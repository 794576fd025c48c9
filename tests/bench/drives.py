"""What is measured: the same work by both twins and by nats-py.

A drive reads ``count`` messages of the stream :data:`STREAM` through a new ephemeral consumer
and returns how many it saw.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import nats
from nats.js.api import AckPolicy as NatsAckPolicy
from nats.js.api import ConsumerConfig as NatsConsumerConfig

import js_async
import js_sync
from js_models import ConsumerConfig

STREAM: Final = "BENCH"
SUBJECT: Final = "bench.data"
BATCH: Final = 500
_WAIT: Final = 10.0

Drive = Callable[[str, int, bool], int]


def blocking(url: str, count: int, acknowledge: bool) -> int:
    """Drain with ``js_sync``."""
    seen = 0
    with js_sync.connect(url) as nc:
        config = _config(acknowledge)
        consumer = nc.jetstream().create_consumer(STREAM, config)
        while seen < count:
            for message in consumer.fetch(BATCH, timeout=_WAIT):
                if acknowledge:
                    message.ack()
                seen += 1
        nc.flush()
    return seen


def in_loop(url: str, count: int, acknowledge: bool) -> int:
    """Drain with ``js_async``."""

    async def drain() -> int:
        seen = 0
        async with js_async.connect(url) as nc:
            config = _config(acknowledge)
            consumer = await nc.jetstream().create_consumer(STREAM, config)
            while seen < count:
                for message in await consumer.fetch(BATCH, timeout=_WAIT):
                    if acknowledge:
                        await message.ack()
                    seen += 1
            await nc.flush()
        return seen

    return asyncio.run(drain())


def nats_py(url: str, count: int, acknowledge: bool) -> int:
    """Drain with nats-py, by its pull subscription."""

    async def drain() -> int:
        seen = 0
        nc = await nats.connect(url)
        policy = NatsAckPolicy.EXPLICIT if acknowledge else NatsAckPolicy.NONE
        config = NatsConsumerConfig(ack_policy=policy, max_ack_pending=-1 if acknowledge else None)
        subscription = await nc.jetstream().pull_subscribe(SUBJECT, stream=STREAM, config=config)
        while seen < count:
            for message in await subscription.fetch(BATCH, timeout=_WAIT):
                if acknowledge:
                    await message.ack()
                seen += 1
        await nc.flush()
        await nc.close()
        return seen

    return asyncio.run(drain())


def _config(acknowledge: bool) -> ConsumerConfig:
    return ConsumerConfig(
        ack_policy="explicit" if acknowledge else "none",
        max_ack_pending=-1 if acknowledge else None,
        mem_storage=True,
    )


DRIVES: Final[dict[str, Drive]] = {"js_sync": blocking, "js_async": in_loop, "nats-py": nats_py}
