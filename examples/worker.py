"""A worker that packs orders, with typed payloads, dead letters and a graceful stop.

`python worker.py nats://127.0.0.1:4222` handles orders until Ctrl-C or SIGTERM. It needs the extra
`payloads`. To send it an order:

    nats pub orders.1 '{"number": 1, "item": "tea"}'
"""

from __future__ import annotations

import asyncio
import sys

import attrs

import js_async
from js_async import ConsumerConfig, Message, StreamConfig
from js_async.workers import DeadLetters, Reject, Retry, Worker


@attrs.frozen
class Order:
    """The payload of a message to `orders.>`."""

    number: int
    item: str
    count: int = 1


@attrs.frozen
class Parcel:
    """The payload of a message to `parcels.>`."""

    order: int
    label: str


async def main(server: str) -> None:
    """Pack orders until the program is stopped."""
    async with js_async.connect(server, name="packer") as nc:
        jet = nc.jetstream()
        await jet.create_stream(StreamConfig(name="ORDERS", subjects=["orders.>"]))
        await jet.create_stream(StreamConfig(name="PARCELS", subjects=["parcels.>"]))
        parcels = jet.typed(Parcel)

        async def pack(message: Message[Order]) -> None:
            order = message.payload
            if order.count < 1:
                raise Reject(f"order {order.number} has no items")
            parcel = Parcel(order.number, f"{order.count} x {order.item}")
            # If the order is delivered again soon, the stream recognizes its parcel by this id.
            await parcels.publish(f"parcels.{order.number}", parcel, msg_id=f"{message.seq}")
            print("packed", parcel.label, flush=True)

        worker = Worker(
            jet,
            "ORDERS",
            ConsumerConfig(durable_name="packer"),
            pack,
            concurrency=10,
            retry=Retry(attempts=5, first=1),
            dead_letters=DeadLetters(jet, "ORDERS"),
        )
        await worker.run()
    print(worker.handled, "packed,", worker.rejected, "given up")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
