"""Key-value buckets with nats-py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import nats

__all__ = ["changes", "get", "keys", "opened", "put", "watch"]


@asynccontextmanager
async def opened(url: str, bucket: str) -> AsyncIterator[Any]:
    """Connect and open a bucket."""
    client = await nats.connect(url)
    try:
        yield await client.jetstream(timeout=60).key_value(bucket)
    finally:
        await client.close()


async def put(bucket: Any, key: str, value: bytes) -> None:
    """Store a value."""
    await bucket.put(key, value)


async def get(bucket: Any, key: str) -> bytes:
    """Return a value."""
    value: bytes = (await bucket.get(key)).value
    return value


async def watch(bucket: Any) -> int:
    """Return how many initial values there are."""
    entries = await bucket.watchall()
    count = 0
    async for entry in entries:
        if entry is None:
            break
        count += 1
    await entries.stop()
    return count


async def changes(bucket: Any, wanted: int, begin: Callable[[], None]) -> int:
    """Return how many changes arrived after the initial values."""
    entries = await bucket.watchall()
    count = 0
    async for entry in entries:
        if entry is None:
            break
    begin()
    async for _ in entries:
        count += 1
        if count == wanted:
            break
    await entries.stop()
    return count


async def keys(bucket: Any) -> int:
    """Return how many keys there are."""
    return len(await bucket.keys())
