"""``python -m tests.bench.memory``: what stays behind when much work is done.

Consuming 1,000,000 messages, and 100,000 fetches of which most are cut short; for each twin, in a
process of its own. (That publishes which nobody acknowledges stay bounded is a test.)
"""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import click

import js_async
import js_sync
from js_cli.screen import plain_table, results
from js_models import ConsumerConfig
from tests.bench.job import STREAM, resident
from tests.bench.suite import ROOT, suite

MIB: Final = 2**20


class Before:
    """What a process holds before the work."""

    def __init__(self) -> None:
        gc.collect()
        self.memory = resident()
        self.threads = threading.active_count()

    def result(self, **more: Any) -> str:
        """Return the growth since then as JSON."""
        gc.collect()
        grown = {
            "growth_mib": round((resident() - self.memory) / MIB, 2),
            "threads": threading.active_count() - self.threads,
        }
        return json.dumps(grown | more)


def _config(policy: str = "none") -> ConsumerConfig:
    return ConsumerConfig(ack_policy=policy, mem_storage=True, max_ack_pending=-1)


def consume_sync(url: str, count: int) -> str:
    """Consume messages."""
    with js_sync.connect(url) as nc:
        source = nc.jetstream(timeout=30).create_consumer(STREAM, _config())
        before, seen = Before(), 0
        with source.messages(stop_after=count) as messages:
            for _ in messages:
                seen += 1
        return before.result(done=seen)


def consume_async(url: str, count: int) -> str:
    """Consume messages."""

    async def work() -> str:
        async with js_async.connect(url) as nc:
            source = await nc.jetstream(timeout=30).create_consumer(STREAM, _config())
            before, seen = Before(), 0
            async with source.messages(stop_after=count) as messages:
                async for _ in messages:
                    seen += 1
            return before.result(done=seen)

    return asyncio.run(work())


def cycles_sync(url: str, count: int) -> str:
    """Fetch in turns: full, with nothing there, and cut short by an error of the program."""
    with js_sync.connect(url) as nc:
        jet = nc.jetstream(timeout=30)
        full = jet.create_consumer(STREAM, _config())
        config = ConsumerConfig(ack_policy="none", mem_storage=True, deliver_policy="new")
        empty = jet.create_consumer(STREAM, config)
        full.next(timeout=5)
        empty.fetch(1, wait="none")
        start, before = nc.stats.subscriptions, Before()
        for number in range(count):
            if number % 10 == 0:
                full.next(timeout=5)
            elif number % 10 == 1:
                # The server's end and ours race: a fetch that is over before it began.
                empty.fetch(1, timeout=0.001)
            else:
                empty.fetch(1, wait="none")
        return before.result(done=count, subscriptions=nc.stats.subscriptions - start)


def cycles_async(url: str, count: int) -> str:
    """Start fetches and cancel them, and let each tenth come to its end."""

    async def work() -> str:
        async with js_async.connect(url) as nc:
            jet = nc.jetstream(timeout=30)
            config = ConsumerConfig(ack_policy="none", mem_storage=True, deliver_policy="new")
            empty = await jet.create_consumer(STREAM, config)
            await empty.fetch(1, wait="none")
            start, tasks, before = nc.stats.subscriptions, len(asyncio.all_tasks()), Before()
            for number in range(count):
                fetch = asyncio.ensure_future(empty.fetch(1, timeout=5))
                await asyncio.sleep(0)
                if number % 10 == 0:
                    await empty.fetch(1, wait="none")
                fetch.cancel()
                await asyncio.gather(fetch, return_exceptions=True)
            return before.result(
                done=count,
                subscriptions=nc.stats.subscriptions - start,
                tasks=len(asyncio.all_tasks()) - tasks,
            )

    return asyncio.run(work())


WORK: Final[dict[str, Callable[[str, int], str]]] = {
    "consume_sync": consume_sync,
    "consume_async": consume_async,
    "cycles_sync": cycles_sync,
    "cycles_async": cycles_async,
}


def _run(name: str, url: str, count: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.memory", name, url, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise click.ClickException(f"{name}: {done.stderr[-1500:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@click.command()
@click.option("--messages", default=1_000_000, show_default=True)
@click.option("--cycles", default=100_000, show_default=True)
def memory(messages: int, cycles: int) -> None:
    """Show what grew."""
    table = plain_table("work", "done", "growth MiB", "threads", "subscriptions", "tasks", "s")
    with suite(sys.executable) as measure:
        measure.fill(messages, "file")
        for name in WORK:
            began = time.monotonic()
            count = messages if name.startswith("consume") else cycles
            found = _run(name, measure.url, count)
            keys = ("done", "growth_mib", "threads", "subscriptions", "tasks")
            row = [str(found.get(key, "")) for key in keys]
            table.add_row(name, *row, f"{time.monotonic() - began:.0f}")
    results().print(table)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] in WORK:
        print(WORK[sys.argv[1]](sys.argv[2], int(sys.argv[3])))
    else:
        memory()
