"""Create a stream and a consumer, then publish, fetch and acknowledge one message, on a loop."""

import asyncio
import sys

import js_async
from twinstream.models import ConsumerConfig, StreamConfig

url, stream, subject, name = sys.argv[1:]


async def main() -> None:
    """Do it."""
    async with js_async.connect(url) as nc:
        jet = nc.jetstream()
        created = await jet.create_stream(StreamConfig(name=stream, subjects=[subject]))
        consumer = await created.create_consumer(
            ConsumerConfig(durable_name=name, ack_policy="explicit")
        )
        await jet.publish(subject, b"first")
        for message in await consumer.fetch(1, timeout=5):
            await message.ack()


asyncio.run(main())
