"""Share a stream among processes, and keep the messages of each customer in order.

    python examples/order_per_key.py nats://127.0.0.1:4222

The members of an elastic group divide its partitions. The messages of a customer are all in one.
Here two threads stand for two processes, and a third member joins while they work.

It prints:

    two members: [(0, 1, 2, 3), (4, 5, 6, 7)]
    carl got (4, 5)
    120 messages of 12 customers, each in order: True
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import js_sync
from js_sync import StreamConfig
from js_sync.groups import ElasticGroup, ElasticGroupConfig, GroupMessage, PartitioningFilter

CUSTOMERS = [f"visits.customer-{number}" for number in range(12)]
seen: dict[str, list[int]] = {customer: [] for customer in CUSTOMERS}


def handle(message: GroupMessage) -> None:
    """Note a visit. The visits of one customer are never handled at the same time."""
    seen[message.subject].append(int(message.data))


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, for 30 seconds at most."""
    end = time.monotonic() + 30
    while not condition():
        if time.monotonic() > end:
            raise SystemExit("it takes too long")
        time.sleep(0.01)


def main(server: str) -> None:
    """Handle visits with two members, then with three."""
    with js_sync.connect(server, name="visits") as nc:
        jet = nc.jetstream(timeout=30)
        jet.create_stream(StreamConfig(name="VISITS", subjects=["visits.*"]))
        # The key is what the first * of the filter matches.
        by_customer = PartitioningFilter(filter="visits.*", partitioning_wildcards=[1])
        group = ElasticGroup(jet, "VISITS", "counters")
        group.create(ElasticGroupConfig(max_members=8, partitioning_filters=[by_customer]))
        group.add_members(["anna", "bert"])

        with group.worker("anna", handle) as anna, group.worker("bert", handle) as bert:
            print("two members:", [anna.partitions, bert.partitions])
            for visit in range(5):
                for customer in CUSTOMERS:
                    jet.publish(customer, b"%d" % visit)
            group.add_members("carl")
            with group.worker("carl", handle) as carl:
                for visit in range(5, 10):
                    for customer in CUSTOMERS:
                        jet.publish(customer, b"%d" % visit)
                wait_for(lambda: len(carl.partitions) == 2)
                wait_for(lambda: sum(map(len, seen.values())) == 120)
                print("carl got", carl.partitions)
        in_order = all(visits == list(range(10)) for visits in seen.values())
        print("120 messages of", len(seen), "customers, each in order:", in_order)


if __name__ == "__main__":
    main(*sys.argv[1:])
