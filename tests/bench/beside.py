"""``python -m tests.bench.beside``: how long a request takes beside a thread that computes.

Spark tasks and scientific programs compute in Python threads; whoever waits for the network then
competes for the interpreter. Idle and busy are measured in turns, in one process for each client:
the blocking twin, and nats-py on an event loop in a thread.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from statistics import median
from typing import Final

import click
import nats

import js_sync
from js_cli.screen import plain_table, results
from js_testing import NatsServer
from tests.bench.clients.nats_py_bridge import Bridge
from tests.bench.job import percentiles
from tests.bench.suite import ROOT

CALLS: Final = 1500


def compute(stop: threading.Event) -> None:
    """Keep the interpreter busy."""
    total = 0
    while not stop.is_set():
        for number in range(10_000):
            total += number * number % 7


def measured(ask: Callable[[], object]) -> dict[str, float]:
    """Return the percentiles of a request."""
    calls: list[float] = []
    for _ in range(CALLS):
        began = time.perf_counter()
        ask()
        calls.append(time.perf_counter() - began)
    return percentiles(calls)


def both(ask: Callable[[], object], rounds: int) -> str:
    """Measure idle and beside a computing thread, in turns; return JSON."""
    found: dict[str, list[dict[str, float]]] = {"idle": [], "busy": []}
    for _ in range(rounds):
        found["idle"].append(measured(ask))
        stop = threading.Event()
        worker = threading.Thread(target=compute, args=(stop,))
        worker.start()
        try:
            found["busy"].append(measured(ask))
        finally:
            stop.set()
            worker.join()
    return json.dumps(found)


def blocking(url: str, rounds: int) -> str:
    """Ask for the account's figures with the blocking twin."""
    with js_sync.connect(url) as nc:
        jet = nc.jetstream()
        return both(jet.account_info, rounds)


def bridged(url: str, rounds: int) -> str:
    """Ask for them with nats-py on a loop in a thread."""
    bridge = Bridge()
    client = bridge.run(nats.connect(url))
    jet = client.jetstream()
    try:
        return both(lambda: bridge.run(jet.account_info()), rounds)
    finally:
        bridge.run(client.close())


CLIENTS: Final = {"js_sync": blocking, "nats_py_bridge": bridged}


@click.command()
@click.option("--rounds", default=3, show_default=True)
def beside(rounds: int) -> None:
    """Show the latencies and their ratio."""
    columns = ("idle p50", "idle p99", "busy p50", "busy p99", "p99 busy/idle")
    table = plain_table("client, µs", *columns, numbers=columns)
    with NatsServer() as server:
        for name in CLIENTS:
            command = [sys.executable, "-m", "tests.bench.beside", name, server.url, str(rounds)]
            done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
            found = json.loads(done.stdout)
            figures = [
                median(run[key] for run in found[state])
                for state in ("idle", "busy")
                for key in ("p50_us", "p99_us")
            ]
            ratios = [
                busy["p99_us"] / idle["p99_us"]
                for idle, busy in zip(found["idle"], found["busy"], strict=True)
            ]
            table.add_row(name, *(f"{each:,.0f}" for each in figures), f"{median(ratios):.1f}")
    results().print(table)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] in CLIENTS:
        print(CLIENTS[sys.argv[1]](sys.argv[2], int(sys.argv[3])))
    else:
        beside()
