"""Store a file in an object store and fetch it again, with the progress of both.

    python examples/files.py nats://127.0.0.1:4222

Neither direction has the whole file in memory, and the fetched file is complete or not there.

It prints:

    stored 25 %
    stored 50 %
    stored 75 %
    stored 100 %
    2026/sea.raw 8388608 bytes in 64 chunks
    fetched 25 %
    fetched 50 %
    fetched 75 %
    fetched 100 %
    equal: True
"""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import js_sync
from js_sync import ObjectMeta, ObjectProgress, ObjectStoreConfig

SIZE = 8 * 1024 * 1024


class Quarters:
    """Prints the progress of a transfer at each quarter."""

    def __init__(self, label: str, size: int) -> None:
        self.label, self.size, self.printed = label, size, 0

    def __call__(self, progress: ObjectProgress) -> None:
        """Print the quarters that were completed since the last call."""
        while self.printed < progress.transferred * 4 // self.size:
            self.printed += 1
            print(f"{self.label} {self.printed * 25} %")


def main(server: str) -> None:
    """Store a picture, fetch it, and compare both files."""
    with TemporaryDirectory() as folder, js_sync.connect(server, name="archive") as nc:
        original, copy = Path(folder, "original.raw"), Path(folder, "copy.raw")
        original.write_bytes(Random(1).randbytes(SIZE))

        jet = nc.jetstream(timeout=30)
        store = jet.create_object_store(ObjectStoreConfig(bucket="PICTURES"))
        meta = ObjectMeta("2026/sea.raw", headers={"Content-Type": "image/x-raw"})
        info = store.put_file(original, name=meta, on_progress=Quarters("stored", SIZE))
        print(info.name, info.size, "bytes in", info.chunks, "chunks")

        # With `resume=True`, a fetch that failed goes on where it ended.
        progress = Quarters("fetched", SIZE)
        store.get_file("2026/sea.raw", copy, resume=True, on_progress=progress)
        digests = {sha256(path.read_bytes()).digest() for path in (original, copy)}
        print("equal:", len(digests) == 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
