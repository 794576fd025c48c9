"""Key-value buckets with js_async."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import js_async

__all__ = ["changes", "get", "get_many", "keys", "opened", "put", "put_many", "watch"]


@asynccontextmanager
async def opened(url: str, bucket: str) -> AsyncIterator[Any]:
    """Connect and open a bucket."""
    async with js_async.connect(url) as nc:
        yield await nc.jetstream(timeout=60).get_key_value(bucket)


async def put(bucket: Any, key: str, value: bytes) -> None:
    """Store a value."""
    await bucket.put(key, value)


async def get(bucket: Any, key: str) -> bytes:
    """Return a value."""
    value: bytes = (await bucket.get(key)).value
    return value


async def put_many(bucket: Any, items: Iterable[tuple[str, bytes]], window: int) -> int:
    """Store values; return how many were stored."""
    count = 0
    async for _ in bucket.put_many(items, window=window):
        count += 1
    return count


async def get_many(bucket: Any, keys: Sequence[str], _: int) -> int:
    """Read values; return how many there are."""
    return len(await bucket.get_many(keys))


async def watch(bucket: Any) -> int:
    """Return how many initial values there are."""
    async with bucket.watch() as entries:
        count = 0
        async for _ in entries.initial():
            count += 1
    return count


async def changes(bucket: Any, wanted: int, begin: Callable[[], None]) -> int:
    """Return how many changes arrived after the initial values."""
    count = 0
    async with bucket.watch() as entries:
        async for _ in entries.initial():
            pass
        begin()
        async for _ in entries:
            count += 1
            if count == wanted:
                break
    return count


async def keys(bucket: Any) -> int:
    """Return how many keys there are."""
    count = 0
    async for _ in bucket.keys():
        count += 1
    return count
