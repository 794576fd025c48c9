"""Count what a program does, for a metrics page of its own, by an observer of its connection.

    python examples/count_calls.py nats://127.0.0.1:4222

An observer needs no change of the code that publishes and consumes.

It prints:

    connect connect: 1
    request api: 3, of which failed 1 (StreamNotFound)
    publish publish: 3
    receive fetch: 1
    ack ack: 2
    messages received: 3
"""

from __future__ import annotations

import sys
from collections import Counter
from threading import Lock

import js_sync
from js_sync import ConsumerConfig, StreamConfig
from twinstream.observe import Observer, Operation


class Counts(Observer):
    """Counts operations by their kind and name, and those that failed by their error."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.failed: dict[str, Counter[str]] = {}
        self.received = 0
        # Threads may call an observer at once.
        self._lock = Lock()

    def end(self, operation: Operation, token: object) -> None:
        """Count an operation that has ended. This must be quick."""
        name = f"{operation.kind} {operation.name}"
        with self._lock:
            self.calls[name] += 1
            if operation.error is not None:
                errors = self.failed.setdefault(name, Counter())
                errors[type(operation.error).__name__] += 1
            if operation.kind == "receive":
                self.received += operation.count or 0

    def lines(self) -> list[str]:
        """Return the counts as text."""
        lines: list[str] = []
        for name, count in self.calls.items():
            errors = self.failed.get(name)
            reasons = f", of which failed {errors.total()} ({', '.join(errors)})" if errors else ""
            lines.append(f"{name}: {count}{reasons}")
        return [*lines, f"messages received: {self.received}"]


def main(server: str) -> None:
    """Publish, consume, and print what was counted."""
    counts = Counts()
    with js_sync.connect(server, name="counted", observers=[counts]) as nc:
        jet = nc.jetstream(timeout=30)
        stream = jet.create_stream(StreamConfig(name="COUNTED", subjects=["counted.>"]))
        for number in range(3):
            jet.publish(f"counted.{number}", b"tea")
        try:
            jet.get_stream("MISSING")
        except js_sync.StreamNotFound:
            pass
        consumer = stream.create_consumer(ConsumerConfig(durable_name="reader"))
        first, second, _ = consumer.fetch(3, timeout=30)
        first.ack()
        second.ack()
    print(*counts.lines(), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
