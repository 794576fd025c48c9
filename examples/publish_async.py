"""Publish many messages with up to 1,000 in flight, and report each failure.

    python examples/publish_async.py nats://127.0.0.1:4222

`publish_sync.py` is the same program without an event loop. Two of its messages fail: one is too
large for the stream, and one has a subject that belongs to no stream.

It prints:

    reading-1234 rooms.kitchen NoStream
    reading-2345 readings.room-0 JetStreamError
    stored 4998 failed 2
    messages in the stream: 4998
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

import js_async
from js_async import PublishFailure, PublishRequest, StreamConfig

COUNT = 5_000


async def readings() -> AsyncIterator[PublishRequest]:
    """Yield the messages. They may come from a socket: they are taken as needed."""
    for number in range(COUNT):
        subject = "rooms.kitchen" if number == 1_234 else f"readings.room-{number % 7}"
        data = bytes(200) if number == 2_345 else b"%.1f" % (20 + number % 50 / 10)
        # With an id, a message may be sent again after a lost response: it is stored once.
        yield PublishRequest(subject=subject, data=data, msg_id=f"reading-{number}")


async def main(server: str) -> None:
    """Publish all readings."""
    async with js_async.connect(server, name="sensors") as nc:
        jet = nc.jetstream(timeout=30)
        stream = await jet.create_stream(
            StreamConfig(name="READINGS", subjects=["readings.>"], max_msg_size=100)
        )
        stored = failed = 0
        async with jet.publish_many(readings(), window=1_000) as outcomes:
            async for outcome in outcomes:
                if not isinstance(outcome, PublishFailure):
                    stored += 1
                    continue
                failed += 1
                # The end of the block raises the failures whose error the program has not read.
                print(outcome.request.msg_id, outcome.request.subject, type(outcome.error).__name__)
        print("stored", stored, "failed", failed)
        print("messages in the stream:", (await stream.info()).state.messages)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
