"""Key-value buckets with js_sync."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import js_sync

__all__ = ["changes", "get", "get_many", "keys", "opened", "put", "put_many", "watch"]


@contextmanager
def opened(url: str, bucket: str) -> Iterator[Any]:
    """Connect and open a bucket."""
    with js_sync.connect(url) as nc:
        yield nc.jetstream(timeout=60).get_key_value(bucket)


def put(bucket: Any, key: str, value: bytes) -> None:
    """Store a value."""
    bucket.put(key, value)


def get(bucket: Any, key: str) -> bytes:
    """Return a value."""
    value: bytes = bucket.get(key).value
    return value


def put_many(bucket: Any, items: Iterable[tuple[str, bytes]], window: int) -> int:
    """Store values; return how many were stored."""
    count = 0
    for _ in bucket.put_many(items, window=window):
        count += 1
    return count


def get_many(bucket: Any, keys: Sequence[str], _: int) -> int:
    """Read values; return how many there are."""
    return len(bucket.get_many(keys))


def watch(bucket: Any) -> int:
    """Return how many initial values there are."""
    with bucket.watch() as entries:
        count = 0
        for _ in entries.initial():
            count += 1
    return count


def changes(bucket: Any, wanted: int, begin: Callable[[], None]) -> int:
    """Return how many changes arrived after the initial values."""
    count = 0
    with bucket.watch() as entries:
        for _ in entries.initial():
            pass
        begin()
        for _ in entries:
            count += 1
            if count == wanted:
                break
    return count


def keys(bucket: Any) -> int:
    """Return how many keys there are."""
    names = bucket.keys()
    return sum(1 for _ in names)
