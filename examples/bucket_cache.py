"""Read feature flags from a cache of a bucket: no request for each read, and never an old write.

    python examples/bucket_cache.py nats://127.0.0.1:4222

Four threads read 100,000 times; then another client changes a flag, and the cache reports it.

It prints:

    100000 reads, 0 calls of the server
    {'shop.new-basket': True, 'shop.reviews': True} current: True
    reviews: False
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import js_sync
from js_sync import Call, Entry, KeyValueConfig


def main(server: str) -> None:
    """Read flags, and wait for the change of one."""
    changed = Event()
    calls: list[Call] = []

    def note(entry: Entry[bool]) -> None:
        if entry.revision > 2:
            changed.set()

    with js_sync.connect(server, on_call=calls.append) as nc, js_sync.connect(server) as other:
        jet = nc.jetstream(timeout=30)
        flags = jet.create_key_value(KeyValueConfig(bucket="flags")).typed(bool)
        flags.put("shop.new-basket", False)
        flags.put("shop.reviews", True)

        with flags.cached("shop.*", on_change=note) as cache:

            def reads(_: int) -> int:
                return sum(cache.get("shop.reviews", False) for _ in range(25_000))

            calls.clear()
            with ThreadPoolExecutor(4) as threads:
                print(sum(threads.map(reads, range(4))), "reads,", end=" ")
            print(len(calls), "calls of the server")

            other.jetstream(timeout=30).get_key_value("flags").put("shop.new-basket", b"true")
            changed.wait(30)
            print(dict(sorted(cache.items())), "current:", cache.is_current)

            # A write through the cache is visible at once.
            cache.put("shop.reviews", False)
            print("reviews:", cache["shop.reviews"])


if __name__ == "__main__":
    main(*sys.argv[1:])
