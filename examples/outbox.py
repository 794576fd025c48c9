"""Store an order in SQLite and publish its event exactly once, wherever the program fails.

    python examples/outbox.py nats://127.0.0.1:4222

The event is written in the transaction of the order. A relay publishes it later, as often as needed
until the stream has confirmed it, and the stream refuses a second copy.

It prints:

    refused: CHECK constraint failed: amount > 0
    1 order, 2 events wait
    published 2
    orders.1.placed 3 x tea
    orders.1.paid 10.50
    published 0
"""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import js_sync
from js_sync import StreamConfig
from js_sync.outbox import OutboxRelay, SqliteOutbox


def place(db: sqlite3.Connection, outbox: SqliteOutbox, number: int, amount: int) -> None:
    """Store an order with its events, or neither."""
    with db:  # one transaction
        # Events with the same key are stored in the order in which they were added.
        key = f"order {number}"
        outbox.add(db, f"orders.{number}.placed", b"%d x tea" % amount, key=key)
        outbox.add(db, f"orders.{number}.paid", b"%.2f" % (amount * 3.5), key=key)
        db.execute("INSERT INTO orders VALUES (?, ?)", (number, amount))


def relay(server: str, outbox: SqliteOutbox) -> None:
    """Publish the events that wait. A service would run the relay in the background instead."""
    with js_sync.connect(server, name="shop") as nc:
        jet = nc.jetstream(timeout=30)
        stream = jet.create_stream(StreamConfig(name="OUTBOX", subjects=["orders.*.*"]))
        before = stream.info().state.last_seq
        print("published", OutboxRelay(jet, outbox, "OUTBOX", by="subject", timeout=30).flush())
        for message in stream.read(before + 1):
            print(message.subject, message.text)


def main(server: str) -> None:
    """Place two orders, of which one fails, and relay their events twice."""
    with TemporaryDirectory() as folder:
        outbox = SqliteOutbox(Path(folder, "shop.db"))
        db = sqlite3.connect(Path(folder, "shop.db"))
        with db:
            db.execute("CREATE TABLE orders (number PRIMARY KEY, amount CHECK (amount > 0))")
            outbox.create(db)
        place(db, outbox, number=1, amount=3)
        try:
            place(db, outbox, number=2, amount=0)
        except sqlite3.IntegrityError as error:
            print("refused:", error)
        [(orders,)] = db.execute("SELECT count(*) FROM orders")
        print(orders, "order,", outbox.waiting(), "events wait")
        db.close()
        relay(server, outbox)
        relay(server, outbox)


if __name__ == "__main__":
    main(*sys.argv[1:])
