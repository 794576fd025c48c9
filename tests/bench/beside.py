"""`python -m tests.bench.beside`: how long a request takes beside a thread that computes.

Spark tasks and scientific programs compute in Python threads; whoever waits for the network then
competes for the interpreter, which a computing thread gives up every 5 ms only, unless
`sys.setswitchinterval` says otherwise (`--switch`). Requests follow each other without a pause,
or at intervals (`--pause`). What the computing thread gets done beside them, against what it does
alone, is the price. Each client is a process of its own, and measures idle and busy in turns: both
twins (the asyncio one on a loop in a thread), nats-py on such a loop, and a raw blocking socket
that sends the same bytes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from statistics import median
from typing import Any, Final, Self

import click
from attrs import frozen

import js_async
import js_sync
from tests.bench.clients.nats_py_bridge import Bridge
from tests.bench.clients.raw import Socket
from tests.bench.job import Job, percentiles
from tests.bench.page import show
from tests.bench.suite import ROOT
from twinstream.testing import NatsServer

CALLS: Final = 500
ALONE: Final = 1.0
"""Seconds in which the thread computes alone."""
SUBJECT: Final = "$JS.API.INFO"

Ask = Callable[[], object]
States = dict[str, dict[str, float]]


@frozen
class Work:
    """How often a client asks, and how many seconds it pauses before each time."""

    url: str
    calls: int
    pause: float = 0.0


class Computing:
    """A thread that keeps the interpreter busy while it is entered."""

    def __init__(self) -> None:
        self._done = 0
        self._stop = False
        self._thread = threading.Thread(target=self._compute)

    def _compute(self) -> None:
        total = 0
        while not self._stop:
            for number in range(10_000):
                total += number * number % 7
            self._done += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop = True
        self._thread.join()

    def pace(self, beside: Callable[[], object]) -> float:
        """Return how many rounds a second it gets done beside something else."""
        done, began = self._done, time.perf_counter()
        beside()
        return (self._done - done) / (time.perf_counter() - began)


def measured(ask: Ask, work: Work) -> dict[str, float]:
    """Return the percentiles of a request."""
    took: list[float] = []
    for _ in range(work.calls):
        if work.pause:
            time.sleep(work.pause)
        began = time.perf_counter()
        ask()
        took.append(time.perf_counter() - began)
    return percentiles(took)


def both(ask: Ask, work: Work) -> str:
    """Measure idle and beside a computing thread; return JSON."""
    measured(ask, Work(work.url, 100))
    found = {"idle": measured(ask, work)}
    with Computing() as computing:
        alone = computing.pace(lambda: time.sleep(ALONE))
        beside = computing.pace(lambda: found.update(busy=measured(ask, work)))
    found["computing"] = {"alone": alone, "beside": beside}
    return json.dumps(found)


def blocking(work: Work) -> str:
    """Ask with the blocking twin."""
    with js_sync.connect(work.url) as nc:
        return both(lambda: nc.request(SUBJECT, b""), work)


def looped(work: Work) -> str:
    """Ask with the asyncio twin, on a loop in a thread."""
    bridge = Bridge()

    async def opened() -> js_async.Connection:
        return await js_async.connect(work.url)

    nc = bridge.run(opened())
    try:
        return both(lambda: bridge.run(nc.request(SUBJECT, b"")), work)
    finally:
        bridge.run(nc.close())


def bridged(work: Work) -> str:
    """Ask with nats-py on a loop in a thread."""
    import nats

    bridge = Bridge()
    client: Any = bridge.run(nats.connect(work.url))
    try:
        return both(lambda: bridge.run(client.request(SUBJECT, b"", timeout=30)), work)
    finally:
        bridge.run(client.close())


def raw(work: Work) -> str:
    """Ask with a blocking socket in plain Python."""
    sock = Socket(Job("raw", "publish", work.url, work.calls))
    return both(lambda: sock.ask(SUBJECT, b""), work)


CLIENTS: Final = {
    "raw": raw,
    "js_sync": blocking,
    "js_async in a thread": looped,
    "nats-py in a thread": bridged,
}


@click.command()
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(min=1))
@click.option("--calls", default=CALLS, show_default=True, type=click.IntRange(min=100))
@click.option("--switch", default=5.0, show_default=True, help="The switch interval, in ms.")
@click.option("--pause", default=0.0, show_default=True, help="Before each request, in ms.")
@click.option("--python", default=sys.executable, help="The interpreter that runs the clients.")
@click.option("--page", is_flag=True, help="Write the table of docs/speed.md.")
def beside(rounds: int, calls: int, switch: float, pause: float, python: str, page: bool) -> None:
    """Show the latencies and their ratios, the median of the rounds."""
    found: dict[str, list[States]] = {name: [] for name in CLIENTS}
    with NatsServer() as server:
        for number in range(rounds):
            for name in sorted(CLIENTS, reverse=bool(number % 2)):
                what = [name, server.url, str(calls), str(switch), str(pause)]
                command = [python, "-m", "tests.bench.beside", *what]
                done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
                if done.returncode:
                    raise click.ClickException(f"{name}: {done.stderr[-1500:]}")
                found[name].append(json.loads(done.stdout))
    columns = ["client, µs", "idle p50", "idle p99", "busy p50", "busy p99"]
    columns += ["busy p99 to idle p99", "busy mean to raw's", "busy p99 to raw's"]
    columns += ["computing thread's speed to alone"]
    rows = [[name, *_row(found[name], found["raw"])] for name in CLIENTS]
    table = f"beside-{switch:g}" + ("-paced" if pause else "")
    note = f"Switch interval {switch:g} ms, medians of {rounds} rounds of {calls:,} requests"
    note += f", {pause:g} ms before each." if pause else "."
    show(table, columns, rows, page=page, note=note, python=python)


def _row(rounds: list[States], base: list[States]) -> list[str]:
    def middle(state: str, key: str) -> str:
        return f"{median(each[state][key] for each in rounds):,.0f}"

    def to_raw(key: str) -> str:
        pairs = zip(rounds, base, strict=True)
        return f"{median(ours['busy'][key] / its['busy'][key] for ours, its in pairs):.2f}"

    grown = median(each["busy"]["p99_us"] / each["idle"]["p99_us"] for each in rounds)
    figures = [middle(state, key) for state in ("idle", "busy") for key in ("p50_us", "p99_us")]
    kept = median(each["computing"]["beside"] / each["computing"]["alone"] for each in rounds)
    return [*figures, f"{grown:.1f}", to_raw("mean_us"), to_raw("p99_us"), f"{kept:.2f}"]


def _main(name: str, url: str, calls: str, switch: str, pause: str) -> None:
    sys.setswitchinterval(float(switch) / 1e3)
    print(CLIENTS[name](Work(url, int(calls), float(pause) / 1e3)))


if __name__ == "__main__":
    if len(sys.argv) == 6 and sys.argv[1] in CLIENTS:
        _main(*sys.argv[1:])
    else:
        beside()
