"""`python -m tests.bench.lake`: what the whole command of a pipeline costs, with each engine.

`twinstream pipeline run --once` lands a stream in typed tables, from the start of the command to
its end, in turns with each engine and into each kind of table. The CPU seconds are those of the
command and of all processes that it starts; the server's are not included. Every run checks its
rows.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Final, Self, TypeAlias

import click
import pyarrow.parquet as pq

from tests.bench.processes import family
from tests.bench.spark import SCHEMA, fill_stream
from tests.bench.suite import ROOT
from twinstream.cli.screen import plain_table, results
from twinstream.testing import NatsServer

SMALL: Final = 100
ENGINES: Final = ("spark", "local")
SINKS: Final = ("parquet", "delta")

# The option of prctl with which orphans become children of this process, which then can wait for
# them. Java may outlive the command for a moment.
_ADOPT: Final = 36

Way: TypeAlias = tuple[int, str, str]
"""The number of messages, the engine and the sink."""


def command(url: str, way: Way) -> tuple[float, float]:
    """Land a stream; return the seconds by the clock and the CPU seconds."""
    count, engine, sink = way
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "order.json").write_text(json.dumps(SCHEMA))
        (folder / "orders.toml").write_text(
            f'path = "lake"\nsink = "{sink}"\nengine = "{engine}"\n'
            f'[nats]\nservers = "{url}"\n[[source]]\nstream = "{stream_of(count)}"\n'
            'table = "orders"\nformat = "json"\nschema = "order.json"\n'
        )
        words = ["-m", "twinstream", "pipeline", "run", "--once", "--config", "orders.toml"]
        before, cpu, began = len(family()), _children(), time.perf_counter()
        with _Workers() as workers:
            done = subprocess.run(
                [sys.executable, *words],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
                capture_output=True,
                text=True,
            )
        took = time.perf_counter() - began
        if done.returncode:
            raise click.ClickException(f"{way}: {done.stderr[-1500:]}")
        while len(family()) > before:
            os.waitpid(-1, os.WNOHANG)
            time.sleep(0.05)
        files = (folder / "lake/orders").rglob("*.parquet")
        rows = sum(pq.read_metadata(file).num_rows for file in files)
        if rows != count:
            raise click.ClickException(f"{way}: {rows} of {count} rows")
        return took, _children() - cpu + workers.cpu


class _Workers:
    """The CPU seconds of Spark's Python workers, which are read while they run.

    Their parent ignores the end of its children. So the system adds them to no other process.
    """

    def __init__(self) -> None:
        self._seen: Final[dict[int, float]] = {}
        self._is_over: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._watch)

    @property
    def cpu(self) -> float:
        return sum(self._seen.values())

    def _watch(self) -> None:
        while not self._is_over.wait(0.05):
            found = {each.pid: each for each in family()}
            for each in found.values():
                parent = found.get(each.parent)
                if parent is not None and "pyspark.daemon" in parent.command:
                    self._seen[each.pid] = each.cpu

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()


def stream_of(count: int) -> str:
    """Return the name of the stream with so many messages."""
    return f"ORDERS{count}"


def _children() -> float:
    """Return the CPU seconds of all children that have ended, and of their children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@click.command()
@click.option("--messages", default=1_000_000, show_default=True, type=click.IntRange(min=1000))
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(min=1))
def bench(messages: int, rounds: int) -> None:
    """Measure the command with each engine."""
    ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0)
    ways = [
        (count, engine, sink) for count in (SMALL, messages) for sink in SINKS for engine in ENGINES
    ]
    found: dict[Way, list[tuple[float, float]]] = {way: [] for way in ways}
    with NatsServer() as server:
        for count in (SMALL, messages):
            fill_stream(server.url, stream_of(count), count)
        for number in range(rounds):
            for way in ways if number % 2 == 0 else reversed(ways):
                found[way].append(command(server.url, way))
    table = plain_table("messages", "tables", "engine", "s", "CPU s", "to Spark", "of each round")
    for way, runs in found.items():
        count, engine, sink = way
        beside = found[count, "spark", sink]
        ratios = [own / spark for (_, own), (_, spark) in zip(runs, beside, strict=True)]
        table.add_row(
            f"{count:,}",
            sink,
            engine,
            f"{median(took for took, _ in runs):.2f}",
            f"{median(cpu for _, cpu in runs):.2f}",
            f"{median(ratios):.2f}",
            " ".join(f"{ratio:.2f}" for ratio in ratios),
        )
    results().print(table)


if __name__ == "__main__":
    bench()
