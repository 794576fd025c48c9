"""Publish, fetch and acknowledge one message with nats-py."""

import asyncio
import sys

import nats

url, stream, subject, name = sys.argv[1:]


async def main() -> None:
    """Do it."""
    nc = await nats.connect(url)
    jet = nc.jetstream()
    await jet.publish(subject, b"first")
    consumer = await jet.pull_subscribe_bind(name, stream)
    for message in await consumer.fetch(1, timeout=5):
        await message.ack()
    await nc.close()


asyncio.run(main())
