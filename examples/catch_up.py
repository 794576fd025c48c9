"""Read a stream in order from a time on, until the program has caught up.

    python examples/catch_up.py nats://127.0.0.1:4222

An ordered read needs no acknowledgements: the program itself knows its position, and goes on there.

It prints:

    since the third booking: -25 up to sequence 10
    then: deposit 100 at sequence 11
"""

from __future__ import annotations

import sys
from datetime import datetime

import js_sync
from js_sync import Stream, StreamConfig

JOURNAL = ("open", "deposit 50", "withdraw 20", "deposit 5", "withdraw 10")


def balance_since(stream: Stream, start: datetime) -> tuple[int, int]:
    """Return the balance of all bookings since a time, and the sequence up to which it is true."""
    balance = 0
    with stream.ordered(subjects="accounts.ada", start_time=start) as messages:
        while True:
            # With "none", a batch has what is stored now. An empty one is the proof that the
            # program has seen every message that was stored before the call.
            batch = messages.fetch(100, wait="none", timeout=30)
            for message in batch:
                kind, _, amount = message.text.partition(" ")
                balance += {"deposit": 1, "withdraw": -1}.get(kind, 0) * int(amount or 0)
            if batch.reason.name == "NO_MESSAGES":
                return balance, messages.scanned


def main(server: str) -> None:
    """Sum up the bookings since the third one, then those that came later."""
    with js_sync.connect(server, name="accountant") as nc:
        jet = nc.jetstream(timeout=30)
        stream = jet.create_stream(StreamConfig(name="ACCOUNTS", subjects=["accounts.*"]))
        for line in JOURNAL:
            jet.publish("accounts.ada", line.encode())
            jet.publish("accounts.bob", b"deposit 1000")

        start = stream.get_message(5).time
        balance, seen = balance_since(stream, start)
        print("since the third booking:", balance, "up to sequence", seen)

        jet.publish("accounts.ada", b"deposit 100")
        with stream.ordered(subjects="accounts.ada", start_seq=seen + 1, stop_after=1) as later:
            for message in later:
                print("then:", message.text, "at sequence", message.seq)


if __name__ == "__main__":
    main(*sys.argv[1:])
