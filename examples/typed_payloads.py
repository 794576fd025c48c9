"""Publish and consume events of two types on one stream, with structs of msgspec.

    python examples/typed_payloads.py nats://127.0.0.1:4222

It needs msgspec (`pip install msgspec`). A payload that fits no type is never lost and never loops.

It prints:

    anna: parcel 7 weighs 1.5 kg
    bert: parcel 7 is with Ann
    does not fit at $.what.parcel: b'{"who":"anna","what":{"type":"packed","parcel":"8"}}'
    left: 0 in progress: 0
"""

from __future__ import annotations

import sys

import msgspec

import js_sync
from js_sync import ConsumerConfig, StreamConfig


class Packed(msgspec.Struct, tag="packed", frozen=True):
    """A parcel was packed."""

    parcel: int
    weight: float


class Delivered(msgspec.Struct, tag="delivered", frozen=True):
    """A parcel was delivered."""

    parcel: int
    to: str


class Event(msgspec.Struct, frozen=True):
    """The payload of a message: the tag in `what` tells which of the types it is."""

    who: str
    what: Packed | Delivered


def show(event: Event) -> None:
    """Print an event."""
    match event.what:
        case Packed(parcel=parcel, weight=weight):
            print(f"{event.who}: parcel {parcel} weighs {weight} kg")
        case Delivered(parcel=parcel, to=to):
            print(f"{event.who}: parcel {parcel} is with {to}")


def main(server: str) -> None:
    """Publish two events and a wrong one, and consume all three."""
    with js_sync.connect(server, name="shipping") as nc:
        jet = nc.jetstream(timeout=30)
        stream = jet.create_stream(StreamConfig(name="SHIPMENTS", subjects=["shipments.*"]))
        shipments = jet.typed(Event)
        # A type checker refuses another type here.
        shipments.publish("shipments.7", Event("anna", Packed(parcel=7, weight=1.5)))
        shipments.publish("shipments.7", Event("bert", Delivered(parcel=7, to="Ann")))
        jet.publish("shipments.8", b'{"who":"anna","what":{"type":"packed","parcel":"8"}}')

        consumer = stream.create_consumer(ConsumerConfig(durable_name="board"))
        for message in consumer.typed(Event).fetch(3, timeout=30):
            if (error := message.payload_error) is not None:
                print(f"does not fit at {error.path}: {message.data!r}")
                message.term(error.reason, confirm=True)
            else:
                show(message.payload)
                message.double_ack()
        info = consumer.info()
        print("left:", info.num_pending, "in progress:", info.num_ack_pending)


if __name__ == "__main__":
    main(*sys.argv[1:])
