"""Look at the dead letters of a stream, correct the handler, and replay them.

    python examples/dead_letters.py nats://127.0.0.1:4222

A message whose handler fails too often, or rejects it, becomes a dead letter with the reason.

It prints:

    resized 1, given up 2
    dead: images.cat b'cat.bmp' at delivery 1: no BMP here
    dead: images.dog b'dog.bmp' at delivery 1: no BMP here
    replayed as sequence 4
    replayed as sequence 5
    resized 2, given up 0
    dead letters left: 0
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import js_sync
from js_sync import ConsumerConfig, JetStream, Message, StreamConfig
from js_sync.workers import DeadLetters, Reject, Worker

Handler = Callable[[Message], None]


def resize(message: Message) -> None:
    """Resize an image, in the first version of the program."""
    if message.data.endswith(b".bmp"):
        raise Reject("no BMP here")


def resize_all(message: Message) -> None:
    """Resize an image, after the correction."""


def work(jet: JetStream, handler: Handler, letters: DeadLetters, count: int) -> None:
    """Handle a number of messages."""
    consumer = ConsumerConfig(durable_name="resizer")
    with Worker(jet, "IMAGES", consumer, handler, dead_letters=letters) as worker:
        end = time.monotonic() + 30
        while worker.handled + worker.rejected < count and time.monotonic() < end:
            time.sleep(0.01)
    print(f"resized {worker.handled}, given up {worker.rejected}")


def main(server: str) -> None:
    """Handle three images, of which two are dead letters first."""
    with js_sync.connect(server, name="resizer") as nc:
        jet = nc.jetstream(timeout=30)
        jet.create_stream(StreamConfig(name="IMAGES", subjects=["images.*"]))
        for name in (b"cat.bmp", b"cow.png", b"dog.bmp"):
            jet.publish(f"images.{name[:3].decode()}", name)
        letters = DeadLetters(jet, "IMAGES")
        work(jet, resize, letters, count=3)

        # An operator does the same by `twinstream dlq ls IMAGES` and `dlq replay IMAGES`.
        found = sorted(letters.letters(), key=lambda letter: letter.subject)
        for letter in found:
            times = letter.num_delivered
            print(f"dead: {letter.subject} {letter.data!r} at delivery {times}: {letter.reason}")
        for letter in found:
            print("replayed as sequence", letters.replay(letter).seq)

        work(jet, resize_all, letters, count=2)
        print("dead letters left:", len(list(letters.letters())))


if __name__ == "__main__":
    main(*sys.argv[1:])
