"""`python -m tests.bench.key_values`: reading and writing keys, beside nats-py and natsio.

`raw` is a plain blocking socket that sends the same messages and waits for the same responses.

Each measurement is a process of its own, with all clients in turns on one server, every second
round in reverse. Figures are medians over the rounds, and ratios are medians of the ratios within a
round. CPU is that of the client's process; it is steadier than the clock on a busy machine. natsio
takes part where the interpreter that runs the clients has it (`--python`, 3.13 or newer).

For live changes, a process of its own writes new values to all keys of a bucket with js_sync, the
same for each client. The clock runs from the request to write until the last change arrived, so the
rate is limited by the writer, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

import click

import js_sync
from tests.bench.key_values.run import VALUE, WORKLOADS, key
from tests.bench.page import show
from tests.bench.suite import ROOT
from twinstream.models import KeyValueConfig
from twinstream.testing import NatsServer

FULL: Final = "FULL"
WRITTEN: Final = "WRITTEN"
CHANGED: Final = "CHANGED"
CLIENTS: Final = {
    "js_sync": None,
    "js_async": None,
    "nats_py": "nats",
    "natsio": "natsio",
    "raw": None,
}
"""The clients, and the module that each peer needs."""
RAW: Final = ("put", "put_many", "get", "get_many")
"""The workloads of the plain socket."""
LIVE: Final = ("js_sync", "js_async", "nats_py")
"""The clients that watch live changes."""
PEER: Final = "nats_py"

Runs = list[dict[str, float]]


class Bench:
    """Runs clients with one interpreter against one server."""

    def __init__(self, python: str, tree: Path, url: str) -> None:
        self._python: Final = python
        self._url: Final = url
        paths = os.pathsep.join([str(tree / "src"), str(ROOT)])
        self._environment: Final = os.environ | {"PYTHONPATH": paths}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def can(self, module: str | None) -> bool:
        """Tell whether the interpreter has what a client needs."""
        command = [self._python, "-c", f"import {module or 'sys'}"]
        done = subprocess.run(command, env=self._environment, capture_output=True, check=False)
        return done.returncode == 0

    def fill(self, count: int, changes: int, storage: Any) -> None:
        """Make the buckets, and fill those that are read and changed."""
        with js_sync.connect(self._url) as nc:
            jet = nc.jetstream(timeout=60)
            for name, size in ((FULL, count), (WRITTEN, 0), (CHANGED, changes)):
                jet.create_key_value(KeyValueConfig(bucket=name, storage=storage))
                requests = [(f"$KV.{name}.{key(number)}", VALUE) for number in range(size)]
                for outcome in jet.publish_many(requests):
                    if isinstance(outcome, js_sync.PublishFailure):
                        raise outcome.error

    def run(self, client: str, workload: str, count: int) -> dict[str, float]:
        """Make one measurement; return the rate, and microseconds of CPU for each call or key."""
        bucket = WRITTEN if workload.startswith("put") else FULL
        if workload == "changes":
            bucket = CHANGED
        arguments = [client, workload, self._url, bucket, str(count)]
        command = [self._python, "-m", "tests.bench.key_values.run", *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=ROOT, env=self._environment
        )
        if done.returncode:
            raise click.ClickException(f"{client}, {workload}: {done.stderr[-1500:]}")
        took: dict[str, float] = json.loads(done.stdout)
        return {"rate": count / took["wall"], "cpu": took["cpu"] / count * 1e6}


@click.command()
@click.option("--count", default=50_000, show_default=True, type=click.IntRange(min=1000))
@click.option("--calls", default=5_000, show_default=True, type=click.IntRange(min=100))
@click.option("--changes", default=20_000, show_default=True, type=click.IntRange(min=100))
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(min=1))
@click.option("--only", multiple=True, type=click.Choice(list(WORKLOADS)), help="Workloads.")
@click.option("--client", "chosen", multiple=True, type=click.Choice(list(CLIENTS)))
@click.option("--storage", default="file", type=click.Choice(["file", "memory"]))
@click.option("--python", default=sys.executable, help="The interpreter that runs the clients.")
@click.option("--tree", default=ROOT, type=click.Path(path_type=Path), help="Whose `src` to run.")
@click.option("--page", is_flag=True, help="Write the table of docs/speed.md.")
def key_values(
    count: int,
    calls: int,
    changes: int,
    rounds: int,
    only: tuple[str, ...],
    chosen: tuple[str, ...],
    storage: str,
    python: str,
    tree: Path,
    page: bool,
) -> None:
    """Show the rates of each client, and how many times those of nats-py they are."""
    rows: list[list[str]] = []
    with NatsServer() as server:
        bench = Bench(python, tree, server.url)
        able = [name for name in chosen or CLIENTS if bench.can(CLIENTS[name])]
        # Calls read the first keys.
        count = max(count, calls)
        bench.fill(count, changes, storage)
        for workload in only or WORKLOADS:
            names = [name for name in able if takes_part(name, workload)]
            size = {"watch": count, "keys": count, "changes": changes}.get(workload, calls)
            found: dict[str, Runs] = {name: [] for name in names}
            for number in range(rounds):
                for name in names if number % 2 == 0 else reversed(names):
                    found[name].append(bench.run(name, workload, size))
            rows += [
                [f"{WORKLOADS[workload]}: {name}", *_cells(runs, found.get(PEER))]
                for name, runs in found.items()
            ]
    columns = ["workload", "a second", "times nats-py", "µs CPU each", "CPU to nats-py"]
    note = (
        f"{count:,} keys with values of {len(VALUE)} bytes, {calls:,} calls, {changes:,} changes,"
        f" {storage} storage; medians of {rounds} rounds."
    )
    show("key-values", columns, rows, page=page, note=note, python=python)


def takes_part(client: str, workload: str) -> bool:
    """Return whether a client has a workload."""
    if workload == "changes":
        return client in LIVE
    return client != "raw" or workload in RAW


def _cells(own: Runs, peer: Runs | None) -> list[str]:
    return [
        f"{median(each['rate'] for each in own):,.0f}",
        _ratio(own, peer, "rate"),
        f"{median(each['cpu'] for each in own):.1f}",
        _ratio(own, peer, "cpu"),
    ]


def _ratio(own: Sequence[dict[str, float]], peer: Runs | None, kind: str) -> str:
    """Return the median of the ratios within the rounds."""
    if not peer:
        return "-"
    return f"{median(each[kind] / base[kind] for each, base in zip(own, peer, strict=True)):.2f}"


if __name__ == "__main__":
    key_values()
