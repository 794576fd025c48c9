"""Publish many messages with up to 1,000 in flight, and report each failure.

    python examples/publish_sync.py nats://127.0.0.1:4222

`publish_async.py` is the same program for asyncio. Two of its messages fail: one is too large for
the stream, and one has a subject that belongs to no stream.

It prints:

    reading-1234 rooms.kitchen NoStream
    reading-2345 readings.room-0 JetStreamError
    stored 4998 failed 2
    messages in the stream: 4998
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import js_sync
from js_sync import PublishFailure, PublishRequest, StreamConfig

COUNT = 5_000


def readings() -> Iterator[PublishRequest]:
    """Yield the messages. They may come from a large file: they are taken as needed."""
    for number in range(COUNT):
        subject = "rooms.kitchen" if number == 1_234 else f"readings.room-{number % 7}"
        data = bytes(200) if number == 2_345 else b"%.1f" % (20 + number % 50 / 10)
        # With an id, a message may be sent again after a lost response: it is stored once.
        yield PublishRequest(subject=subject, data=data, msg_id=f"reading-{number}")


def main(server: str) -> None:
    """Publish all readings."""
    with js_sync.connect(server, name="sensors") as nc:
        jet = nc.jetstream(timeout=30)
        stream = jet.create_stream(
            StreamConfig(name="READINGS", subjects=["readings.>"], max_msg_size=100)
        )
        stored = failed = 0
        with jet.publish_many(readings(), window=1_000) as outcomes:
            for outcome in outcomes:
                if not isinstance(outcome, PublishFailure):
                    stored += 1
                    continue
                failed += 1
                # The end of the block raises the failures whose error the program has not read.
                print(outcome.request.msg_id, outcome.request.subject, type(outcome.error).__name__)
        print("stored", stored, "failed", failed)
        print("messages in the stream:", stream.info().state.messages)


if __name__ == "__main__":
    main(*sys.argv[1:])
