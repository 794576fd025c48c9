"""Handle the messages of a consumer until Ctrl-C or SIGTERM.

    python examples/consume_sync.py nats://127.0.0.1:4222

`consume_async.py` is the same program for asyncio. Several processes may run it at once: they share
the messages. To send one:

    nats pub alarms.kitchen smoke
"""

from __future__ import annotations

import sys

import js_sync
from js_sync import ConsumerConfig, Message, StreamConfig


def main(server: str) -> None:
    """Print alarms until the program is stopped."""
    with js_sync.connect(server, name="printer") as nc:
        jet = nc.jetstream(timeout=30)
        stream = jet.create_stream(StreamConfig(name="ALARMS", subjects=["alarms.>"]))
        consumer = stream.create_consumer(ConsumerConfig(durable_name="printer"))

        def show(message: Message) -> None:
            print(message.subject, message.text, flush=True)
            message.ack()

        # An error of the handler ends the consumption, and `run` raises it.
        consuming = consumer.consume(show)
        # At a signal, the running handlers end, and the server gets the other messages back.
        consuming.run()
    print("printed", consuming.handled)


if __name__ == "__main__":
    main(*sys.argv[1:])
