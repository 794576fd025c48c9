"""Key-value buckets with natsio."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import natsio

__all__ = ["get", "keys", "opened", "put", "watch"]


@asynccontextmanager
async def opened(url: str, bucket: str) -> AsyncIterator[Any]:
    """Connect and open a bucket."""
    async with await natsio.connect(url) as nc:
        yield await nc.jetstream().key_value(bucket)


async def put(bucket: Any, key: str, value: bytes) -> None:
    """Store a value."""
    await bucket.put(key, value)


async def get(bucket: Any, key: str) -> bytes:
    """Return a value."""
    value: bytes = (await bucket.get(key)).value
    return value


async def watch(bucket: Any) -> int:
    """Return how many initial values there are."""
    async with bucket.watch() as entries:
        count = 0
        async for entry in entries:
            if entry is None:
                break
            count += 1
    return count


async def keys(bucket: Any) -> int:
    """Return how many keys there are."""
    return len(await bucket.keys())
