"""Handle the messages of a consumer until Ctrl-C or SIGTERM.

    python examples/consume_async.py nats://127.0.0.1:4222

`consume_sync.py` is the same program without an event loop. Several processes may run it at once:
they share the messages. To send one:

    nats pub alarms.kitchen smoke
"""

from __future__ import annotations

import asyncio
import sys

import js_async
from js_async import ConsumerConfig, Message, StreamConfig


async def main(server: str) -> None:
    """Print alarms until the program is stopped."""
    async with js_async.connect(server, name="printer") as nc:
        jet = nc.jetstream(timeout=30)
        stream = await jet.create_stream(StreamConfig(name="ALARMS", subjects=["alarms.>"]))
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="printer"))

        async def show(message: Message) -> None:
            print(message.subject, message.text, flush=True)
            await message.ack()

        # An error of the handler ends the consumption, and `run` raises it.
        consuming = consumer.consume(show)
        # At a signal, the running handlers end, and the server gets the other messages back.
        await consuming.run()
    print("printed", consuming.handled)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
