"""Work with `js_sync` in forked processes, as servers do that fork their workers in advance.

    python examples/prefork.py nats://127.0.0.1:4222

A connection belongs to the process that opened it: each child connects by itself, after the fork.
The children share a consumer, so each message goes to one of them.

It prints:

    in the child of an open connection: WrongProcessOrLoop
    3 processes handled 300 messages
    the queue is empty: True
"""

from __future__ import annotations

import multiprocessing
import os
import sys

import js_sync
from js_sync import Connection, ConsumerConfig, StreamConfig
from twinstream.errors import WrongProcessOrLoop

CONFIG = StreamConfig(name="TASKS", subjects=["tasks.>"], retention="workqueue")
FORK = multiprocessing.get_context("fork")


def work(server: str) -> int:
    """Handle messages until there are no more; return how many."""
    handled = 0
    with js_sync.connect(server, name=f"worker-{os.getpid()}") as nc:
        consumer = nc.jetstream(timeout=30).get_consumer("TASKS", "workers")
        while batch := consumer.fetch(20, wait="none", timeout=30):
            consumer.double_ack(batch)
            handled += len(batch)
    return handled


def misuse(nc: Connection) -> None:
    """Use a connection of the parent, which is refused."""
    try:
        nc.flush()
    except WrongProcessOrLoop as error:
        print("in the child of an open connection:", type(error).__name__, flush=True)


def main(server: str) -> None:
    """Publish tasks, fork the workers, and count what they handled."""
    with js_sync.connect(server, name="master") as nc:
        jet = nc.jetstream(timeout=30)
        stream = jet.create_stream(CONFIG)
        stream.create_consumer(ConsumerConfig(durable_name="workers"))
        for _ in jet.publish_many((f"tasks.{number}", b"") for number in range(300)):
            pass
        child = FORK.Process(target=misuse, args=[nc])
        child.start()
        child.join()

        # The parent may keep its connection: the children do not touch it.
        with FORK.Pool(3) as pool:
            counts = pool.map(work, [server] * 3)
        print(len(counts), "processes handled", sum(counts), "messages")
        print("the queue is empty:", stream.info().state.messages == 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
