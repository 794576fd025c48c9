"""Publish, fetch and acknowledge one message, on an event loop."""

import asyncio
import sys

import js_async

url, stream, subject, name = sys.argv[1:]


async def main() -> None:
    """Do it."""
    async with js_async.connect(url) as nc:
        jet = nc.jetstream()
        await jet.publish(subject, b"first")
        for message in await jet.bind_consumer(stream, name).fetch(1, timeout=5):
            await message.ack()


asyncio.run(main())
