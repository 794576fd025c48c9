"""Key-value buckets with js_sync."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import js_sync

__all__ = ["get", "keys", "opened", "put", "watch"]


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


def watch(bucket: Any) -> int:
    """Return how many initial values there are."""
    with bucket.watch() as entries:
        count = 0
        for entry in entries:
            if entry is None:
                break
            count += 1
    return count


def keys(bucket: Any) -> int:
    """Return how many keys there are."""
    names = bucket.keys()
    return sum(1 for _ in names)
