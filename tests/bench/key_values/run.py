"""One measurement in a process of its own: `python -m tests.bench.key_values.run`.

The arguments are client, workload, URL, bucket and count. It prints the seconds on the clock and of
CPU, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from types import ModuleType
from typing import Any, Final, Self

__all__ = ["VALUE", "WARM", "WORKLOADS", "key"]

VALUE: Final = b"v" * 128
# Calls before the measurement: what a first call imports is no part of the rate.
WARM: Final = 200
IN_FLIGHT: Final = 64

WORKLOADS: Final = {
    "put": "put, one after another",
    "puts": f"put, {IN_FLIGHT} at a time",
    "put_many": f"put_many, {IN_FLIGHT} in flight",
    "get": "get, one after another",
    "gets": f"get, {IN_FLIGHT} at a time",
    "get_many": f"get_many, {IN_FLIGHT} keys in a call",
    "get_all": "get_many, all keys in a call",
    "watch": "watch, initial values",
    "keys": "keys",
    "changes": "watch, live changes",
}
# Clients without `put_many` and `get_many` make this many calls at a time instead.
_CALLS: Final = {"put_many": "puts", "get_many": "gets", "get_all": "gets"}


def key(number: int) -> str:
    """Return the name of a key."""
    return f"some.key.{number}"


class Clock:
    """The time that a measurement took."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def result(self) -> dict[str, float]:
        """Return the seconds since the beginning."""
        cpu = time.process_time() - self._cpu
        return {"wall": time.perf_counter() - self._wall, "cpu": cpu}


class Live:
    """A process that writes, and the time since it began to; see `Writer`."""

    def __init__(self, url: str, bucket: str, count: int) -> None:
        # The writer's module takes its keys from this one.
        from tests.bench.key_values.writer import Writer

        self._writer: Final = Writer(url, bucket, count)

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._writer.__exit__(*raised)

    def begin(self) -> None:
        """Let the process write; the watch has returned the initial values."""
        self._clock = Clock()
        self._writer.begin()

    def result(self) -> dict[str, float]:
        """Return the seconds since the beginning."""
        return self._clock.result()


def measured(client: ModuleType, workload: str, url: str, bucket: str, count: int) -> Any:
    """Measure a workload with a client whose calls block."""
    with client.opened(url, bucket) as opened:
        if workload == "changes":
            with Live(url, bucket, count) as live:
                check(client.changes(opened, count, live.begin), count)
                return live.result()
        if workload in ("watch", "keys"):
            work = getattr(client, workload)
            work(opened)
            clock = Clock()
            check(work(opened), count)
            return clock.result()
        if workload in _CALLS:
            run_many(client, opened, workload, WARM)
            clock = Clock()
            run_many(client, opened, workload, count)
            return clock.result()
        call = one(client, opened, workload)
        for number in range(WARM):
            call(number)
        clock = Clock()
        if not workload.endswith("s"):
            for number in range(count):
                call(number)
            return clock.result()
        numbers = iter(range(count))
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            for done in [pool.submit(each_of, call, numbers) for _ in range(IN_FLIGHT)]:
                done.result()
        return clock.result()


def run_many(client: ModuleType, bucket: Any, workload: str, count: int) -> None:
    """Read or write keys with calls for many of them."""
    if workload == "put_many":
        check(client.put_many(bucket, items(count), IN_FLIGHT), count)
        return
    for keys in calls(workload, count):
        check(client.get_many(bucket, keys, IN_FLIGHT), len(keys))


def items(count: int) -> Iterator[tuple[str, bytes]]:
    """Iterate over keys and values."""
    return ((key(number), VALUE) for number in range(count))


def calls(workload: str, count: int) -> Iterator[list[str]]:
    """Iterate over the keys of each call of `get_many`."""
    size = count if workload == "get_all" else IN_FLIGHT
    for start in range(0, count, size):
        yield [key(number) for number in range(start, min(start + size, count))]


def each_of(call: Callable[[int], Any], numbers: Iterator[int]) -> None:
    """Call for each number, of which other threads take some."""
    for number in numbers:
        call(number)


async def measured_async(
    client: ModuleType, workload: str, url: str, bucket: str, count: int
) -> Any:
    """Measure a workload with an asyncio client."""
    async with client.opened(url, bucket) as opened:
        if workload == "changes":
            with Live(url, bucket, count) as live:
                check(await client.changes(opened, count, live.begin), count)
                return live.result()
        if workload in ("watch", "keys"):
            work = getattr(client, workload)
            await work(opened)
            clock = Clock()
            check(await work(opened), count)
            return clock.result()
        if workload in _CALLS and hasattr(client, "put_many"):
            await run_many_async(client, opened, workload, WARM)
            clock = Clock()
            await run_many_async(client, opened, workload, count)
            return clock.result()
        workload = _CALLS.get(workload, workload)
        call: Callable[[int], Awaitable[Any]] = one(client, opened, workload)
        for number in range(WARM):
            await call(number)
        clock = Clock()
        numbers = iter(range(count))

        async def run() -> None:
            for number in numbers:
                await call(number)

        await asyncio.gather(*(run() for _ in range(IN_FLIGHT if workload.endswith("s") else 1)))
        return clock.result()


async def run_many_async(client: ModuleType, bucket: Any, workload: str, count: int) -> None:
    """Read or write keys with calls for many of them."""
    if workload == "put_many":
        check(await client.put_many(bucket, items(count), IN_FLIGHT), count)
        return
    for keys in calls(workload, count):
        check(await client.get_many(bucket, keys, IN_FLIGHT), len(keys))


def one(client: ModuleType, bucket: Any, workload: str) -> Callable[[int], Any]:
    """Return the call of a workload, which takes the number of a key."""
    if workload.startswith("put"):
        put = client.put
        return lambda number: put(bucket, key(number), VALUE)
    get = client.get
    return lambda number: get(bucket, key(number))


def check(found: int, count: int) -> None:
    """Raise an error unless all were found."""
    if found != count:
        raise ValueError(f"{found} of {count} keys")


if __name__ == "__main__":
    _, name, kind, address, of, number = sys.argv
    module = import_module(f"tests.bench.key_values.clients.{name}")
    arguments = module, kind, address, of, int(number)
    blocks = name in ("js_sync", "raw")
    took = measured(*arguments) if blocks else asyncio.run(measured_async(*arguments))
    print(json.dumps(took))
