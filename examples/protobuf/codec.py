"""A codec for protobuf messages, and a worker that uses it.

`python codec.py nats://127.0.0.1:4222` publishes two timestamps and an odd payload. It needs
protobuf (`pip install protobuf`). `Timestamp` stands for a class that `protoc` generates.
"""

from __future__ import annotations

import sys
from time import sleep
from typing import Annotated, Generic, TypeVar

from google.protobuf.message import DecodeError, Message
from google.protobuf.timestamp_pb2 import Timestamp

import js_sync
from js_sync import ConsumerConfig, StreamConfig
from js_sync.workers import DeadLetters, Worker
from twinstream.errors import PayloadError

M = TypeVar("M", bound=Message)


class ProtobufCodec(Generic[M]):
    """A codec for the messages of one class that protoc has generated."""

    content_type = "application/protobuf"

    def __init__(self, kind: type[M]) -> None:
        self._kind = kind

    def encode(self, value: M) -> bytes:
        """Return the payload. Publishing raises `BadArgument` if it is of another class."""
        if not isinstance(value, self._kind):
            raise TypeError(f"not a {self._kind.__name__}: {type(value).__name__}")
        return value.SerializeToString()

    def decode(self, data: bytes) -> M:
        """Return the message of a payload."""
        try:
            return self._kind.FromString(data)
        except DecodeError as error:
            raise PayloadError("", f"no {self._kind.__name__}: {error}") from error


Time = Annotated[Timestamp, ProtobufCodec(Timestamp)]


def show(message: js_sync.Message[Time]) -> None:
    """Print the time of a message."""
    print(message.subject, message.payload.seconds)


def main(server: str) -> None:
    """Publish and handle times, and print what did not fit."""
    with js_sync.connect(server) as nc:
        jet = nc.jetstream()
        jet.create_stream(StreamConfig(name="TIMES", subjects=["times.>"]))
        times = jet.typed(ProtobufCodec(Timestamp))
        times.publish("times.1", Timestamp(seconds=7))
        jet.publish("times.2", b"\xff")
        times.publish("times.3", Timestamp(seconds=8))

        letters = DeadLetters(jet, "TIMES")
        clock = ConsumerConfig(durable_name="clock", max_ack_pending=1)
        with Worker(jet, "TIMES", clock, show, dead_letters=letters):
            consumer = jet.get_consumer("TIMES", "clock")
            while (floor := consumer.info().ack_floor) is None or floor.stream_seq < 3:
                sleep(0.1)
        for letter in letters.letters():
            print(letter.subject, letter.data, letter.reason)


if __name__ == "__main__":
    main(*sys.argv[1:])
