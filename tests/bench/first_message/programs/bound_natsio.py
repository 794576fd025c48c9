"""Publish, fetch and acknowledge one message with natsio, which looks its consumer up first."""

import asyncio
import sys

import natsio

url, stream, subject, name = sys.argv[1:]


async def main() -> None:
    """Do it."""
    async with await natsio.connect(url) as nc:
        jet = nc.jetstream()
        await jet.publish(subject, b"first")
        consumer = await (await jet.stream(stream)).consumer(name)
        for message in await consumer.fetch(1, timeout=5):
            await message.ack()


asyncio.run(main())
