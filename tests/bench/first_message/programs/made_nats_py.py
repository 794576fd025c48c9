"""Create a stream and a consumer, then publish, fetch and acknowledge one message with nats-py."""

import asyncio
import sys

import nats

url, stream, subject, name = sys.argv[1:]


async def main() -> None:
    """Do it."""
    nc = await nats.connect(url)
    jet = nc.jetstream()
    await jet.add_stream(name=stream, subjects=[subject])
    await jet.publish(subject, b"first")
    consumer = await jet.pull_subscribe(subject, durable=name, stream=stream)
    for message in await consumer.fetch(1, timeout=5):
        await message.ack()
    await nc.close()


asyncio.run(main())
