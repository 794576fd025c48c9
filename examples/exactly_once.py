"""Write an invoice for each order exactly once, although a handler fails and a consumer is lost.

    python examples/exactly_once.py nats://127.0.0.1:4222

The id of a result follows from the message that it was made of. So a message may be handled any
number of times: its result is stored once.

It prints:

    first run: 3 done, 3 stored, 0 repeated
    handled: [1, 2, 2, 3]
    second run: 3 done, 0 stored, 3 repeated
    invoices.1 order 1 costs 10
    invoices.2 order 2 costs 20
    invoices.3 order 3 costs 30
"""

from __future__ import annotations

import sys

import js_sync
from js_sync import ConsumerConfig, JetStream, Message, PublishRequest, StreamConfig
from js_sync.exactly_once import Processing

handled: list[int] = []


def invoice(message: Message) -> PublishRequest:
    """Return the invoice of an order. The second order fails at its first attempt."""
    number = int(message.text)
    handled.append(number)
    if handled == [1, 2]:
        raise OSError("the printer is out of paper")
    text = f"order {number} costs {number * 10}"
    return PublishRequest(subject=f"invoices.{number}", data=text.encode())


def process(jet: JetStream, deliveries: int) -> str:
    """Handle a number of deliveries, and return what came of them."""
    work = Processing(
        jet,
        "SALES",
        "billing",
        invoice,
        into="INVOICES",
        by="subject",
        order="total",
        retry=[0.1],
        stop_after=deliveries,
        timeout=30,
    )
    with work:
        work.wait()
    return f"{work.done} done, {work.stored} stored, {work.repeated} repeated"


def main(server: str) -> None:
    """Process all orders, reset the consumer, and process them again."""
    with js_sync.connect(server, name="billing") as nc:
        jet = nc.jetstream(timeout=30)
        sales = jet.create_stream(StreamConfig(name="SALES", subjects=["sales.>"]))
        invoices = jet.create_stream(StreamConfig(name="INVOICES", subjects=["invoices.*"]))
        billing = ConsumerConfig(durable_name="billing", max_ack_pending=1)
        consumer = sales.create_consumer(billing)
        for number in range(1, 4):
            jet.publish("sales.placed", b"%d" % number)

        print("first run:", process(jet, 4))
        print("handled:", handled)
        # The worst case: the consumer is lost, and its successor delivers everything again.
        consumer.delete()
        sales.create_consumer(billing)
        print("second run:", process(jet, 3))
        for message in invoices.read():
            print(message.subject, message.text)


if __name__ == "__main__":
    main(*sys.argv[1:])
