"""A bucket with many keys: keys, watch and history need no more memory for more keys.

The test uses 20,000 keys, and a million with `make soak`.
"""

from __future__ import annotations

import gc
import tracemalloc

import js_async as js
from tests.soak import rounds, state
from twinstream.core.deadline import monotonic
from twinstream.models import KeyValueConfig

COUNT = rounds(20_000, 1_000_000)
MIB = 1 << 20
# What is buffered, whatever the bucket holds (bytes). A kept entry would take 500 and more.
BUFFERS = 4 * MIB
# `keys` notes 8 bytes for each, and twice that while the array grows.
FOR_A_KEY = 16


class Peak:
    """Measure the time and the peak of the memory that is allocated within a block."""

    def __init__(self, what):
        self.what = what
        self.bytes = 0

    def __enter__(self):
        gc.collect()
        tracemalloc.start()
        self.began = monotonic()
        return self

    def __exit__(self, *_):
        took = monotonic() - self.began
        self.bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        state(
            f"{self.what} of {COUNT:,} keys: at most {self.bytes / MIB:.1f} MiB, {took:.1f} s"
            " while memory is traced"
        )


async def filled(jet, name):
    """Return a bucket with two revisions of each key."""
    config = KeyValueConfig(bucket=name, history=2, storage="memory")
    bucket = await jet.create_key_value(config)
    for revision in range(2):
        numbers = range(COUNT)
        requests = ((f"$KV.{name}.k.{number}", b"%d" % (number + revision)) for number in numbers)
        async for outcome in jet.publish_many(requests):
            assert not isinstance(outcome, js.PublishFailure), outcome
    return bucket


async def test_many_keys_take_bounded_memory(server, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=60)
        bucket = await filled(jet, name)
        expected = COUNT * (COUNT - 1) // 2
        with Peak("keys") as peak:
            found = total = 0
            names = bucket.keys()
            async for key in names:
                found += 1
                total += int(key[2:])
        assert (found, total) == (COUNT, expected)
        assert peak.bytes < BUFFERS + FOR_A_KEY * COUNT
        with Peak("watch") as peak:
            found = total = 0
            async with bucket.watch() as watch:
                async for entry in watch.initial():
                    found += 1
                    total += int(entry.value)
        assert (found, total) == (COUNT, expected + COUNT)
        assert peak.bytes < BUFFERS
        with Peak("watch, all revisions") as peak:
            found = last = 0
            async with bucket.watch(history=True) as watch:
                async for entry in watch.initial():
                    found += 1
                    assert entry.revision > last
                    last = entry.revision
        assert found == 2 * COUNT
        assert peak.bytes < BUFFERS
        with Peak("history of one") as peak:
            history = await bucket.history(f"k.{COUNT // 2}")
        assert [int(each.value) for each in history] == [COUNT // 2, COUNT // 2 + 1]
        assert peak.bytes < 4 * MIB
        await jet.delete_key_value(name)
