"""CPU time per message of two trees, in interleaved rounds: the medians of the ratios.

    git worktree add /tmp/before COMMIT
    python -m tests.bench.two_trees /tmp/before/src src 11

Each round measures both trees in processes of their own, in an order that alternates. CPU time is
compared within a round. On a machine that is busy with other work, the lowest times of all rounds
say more than the medians.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict

from twinstream.testing import NatsServer

WORK = """
import asyncio, json, sys, time
import js_async, js_sync
from js_async import connect as connect_async
from js_sync.workers import Worker
from twinstream.models import ConsumerConfig, StreamConfig

MANY, SOME = 6000, 1500
url, found, data = sys.argv[1], {}, b"x" * 100


def measured(name, count, work):
    began = time.process_time()
    work()
    found[name] = (time.process_time() - began) / count * 1e6


def consumer(name):
    return ConsumerConfig(durable_name=name, max_ack_pending=100_000)


with js_sync.connect(url) as nc:
    jet, name = nc.jetstream(timeout=30), f"S{time.time_ns()}"
    config = StreamConfig(name=name, subjects=[f"{name}.>"], storage="memory")
    stream, subject = jet.create_stream(config), f"{name}.a"

    def publish_many():
        with jet.publish_many([(subject, data)] * MANY, window=1000) as outcomes:
            for _ in outcomes:
                pass

    def publish():
        for _ in range(SOME):
            jet.publish(subject, data)

    def messages():
        with stream.create_consumer(consumer("m")).messages(max_messages=2000) as taken:
            for number, message in enumerate(taken, 1):
                message.ack()
                if number == MANY:
                    break

    def fetch():
        fetching = stream.create_consumer(consumer("f"))
        for _ in range(MANY // 500):
            for message in fetching.fetch(500, timeout=20):
                message.ack()

    def one_by_one():
        fetching = stream.create_consumer(consumer("n"))
        for _ in range(SOME):
            fetching.next(timeout=20).ack()

    def core():
        for _ in range(MANY):
            nc.publish("core", data)
        nc.flush(timeout=30)

    def work():
        done = []
        with Worker(jet, name, consumer("w"), done.append, max_messages=500):
            while len(done) < MANY:
                time.sleep(0.05)

    publish_many()
    measured("publish_many", MANY, publish_many)
    measured("publish", SOME, publish)
    measured("messages and ack", MANY, messages)
    measured("fetch and ack", MANY, fetch)
    measured("next and ack", SOME, one_by_one)
    measured("core publish", MANY, core)
    measured("worker", MANY, work)


async def in_asyncio():
    async with connect_async(url) as nc:
        jet = nc.jetstream(timeout=30)
        began = time.process_time()
        for _ in range(SOME):
            await jet.publish(subject, data)
        found["publish (asyncio)"] = (time.process_time() - began) / SOME * 1e6
        taking = await jet.create_consumer(name, consumer("a"))
        began, number = time.process_time(), 0
        async with taking.messages(max_messages=2000) as taken:
            async for message in taken:
                await message.ack()
                number += 1
                if number == MANY:
                    break
        found["messages and ack (asyncio)"] = (time.process_time() - began) / MANY * 1e6


asyncio.run(in_asyncio())
print(json.dumps(found))
"""


def once(tree: str, url: str) -> dict[str, float]:
    """Return the CPU time per message of each kind of work in a tree, in microseconds."""
    done = subprocess.run(
        [sys.executable, "-c", WORK, url],
        env=os.environ | {"PYTHONPATH": tree},
        stdout=subprocess.PIPE,
        text=True,
        timeout=600,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(old: str, new: str, rounds: int) -> None:
    """Compare two `src` folders and print a line for each kind of work."""
    before: defaultdict[str, list[float]] = defaultdict(list)
    after: defaultdict[str, list[float]] = defaultdict(list)
    with NatsServer() as server:
        for number in range(rounds):
            pair = (old, new) if number % 2 else (new, old)
            found = {tree: once(tree, server.url) for tree in pair}
            for name, cost in found[new].items():
                before[name].append(found[old][name])
                after[name].append(cost)
    for name, costs in after.items():
        ratios = [cost / other for cost, other in zip(costs, before[name], strict=True)]
        lowest = min(costs) / min(before[name])
        print(
            f"{name:28}{statistics.median(before[name]):7.2f} us, x {statistics.median(ratios):.3f}"
            f" ({min(ratios):.3f} to {max(ratios):.3f}), lowest x {lowest:.3f}"
        )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
