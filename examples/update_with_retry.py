"""Change a value that other clients change, too, and lose no change.

    python examples/update_with_retry.py nats://127.0.0.1:4222

`update` stores a value only if the key still has the revision that the program read. After
`RevisionMismatch` the program reads again, and computes the change from the new value.

It prints:

    {'tea': 50, 'cake': 50}
    at least one attempt for each sale: True
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import js_sync
from js_sync import KeyValue, KeyValueConfig

Stock = dict[str, int]


def change(bucket: KeyValue[Stock], key: str, edit: Callable[[Stock], Stock]) -> int:
    """Replace the value of a key by what `edit` makes of it; return the number of attempts."""
    attempt = 1
    while True:
        entry = bucket.get(key)
        stock = entry.value or {}
        try:
            bucket.update(key, edit(stock), entry.revision)
        except js_sync.RevisionMismatch:
            # Clients that met once should not meet again: they wait for different times.
            time.sleep(random.uniform(0, 0.002 * attempt))
            attempt += 1
        else:
            return attempt


def main(server: str) -> None:
    """Sell from one stock in four threads."""
    with js_sync.connect(server, name="shop") as nc:
        jet = nc.jetstream(timeout=30)
        bucket = jet.create_key_value(KeyValueConfig(bucket="stock")).typed(Stock)
        bucket.put("warehouse", {"tea": 100, "cake": 100})

        def sell(item: str) -> int:
            def less(stock: Stock) -> Stock:
                return stock | {item: stock[item] - 1}

            return sum(change(bucket, "warehouse", less) for _ in range(25))

        with ThreadPoolExecutor(4) as threads:
            attempts = sum(threads.map(sell, ["tea", "cake", "tea", "cake"]))
        print(bucket.get("warehouse").value)
        print("at least one attempt for each sale:", attempts >= 100)


if __name__ == "__main__":
    main(*sys.argv[1:])
