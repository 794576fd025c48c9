"""`python -m tests.bench.lake`: what the whole command of a pipeline costs, with each engine.

`twinstream pipeline run --once` lands a stream in typed tables, from the start of the command to
its end, in turns with each engine and into each kind of table. The CPU seconds are those of the
command and of all processes that it starts; the server's are not included. Every run checks its
rows.

With `--peers`, Spark, which reads the same payloads from files of JSON lines, and nats-py with
pyarrow take part, too.

With `--places`, it compares Iceberg with Delta tables on S3, and Delta tables on S3 with those on
files, with the local engine. The S3 server's CPU seconds are not included either.
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
import uuid
from pathlib import Path
from statistics import median
from typing import Final, Self, TypeAlias

import click
import pyarrow.parquet as pq
from deltalake import DeltaTable

from tests.bench.processes import family
from tests.bench.spark import SCHEMA, fill, fill_stream
from tests.bench.suite import ROOT
from tests.s3_server import BUCKET, S3Server, client_environment
from tests.spark.iceberg import iceberg_table
from twinstream.cli.screen import plain_table, results
from twinstream.lake.objects.client import delta_options
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.pipeline import read_config
from twinstream.testing import NatsServer

SMALL: Final = 100
ENGINES: Final = ("spark", "local")
SINKS: Final = ("parquet", "delta")
PEERS: Final = ("spark, files", "nats_py")
"""Spark, which reads the payloads from files, and nats-py, which reads the same stream."""

# The option of prctl with which orphans become children of this process, which then can wait for
# them. Java may outlive the command for a moment.
_ADOPT: Final = 36

Way: TypeAlias = tuple[int, str, str]
"""The number of messages, the engine and the sink."""


def command(url: str, way: Way, s3: S3Server | None = None) -> tuple[float, float]:
    """Land a stream; return the seconds by the clock and the CPU seconds."""
    count, engine, sink = way
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lake = "lake" if s3 is None else f"s3://{BUCKET}/{folder.name}"
        (folder / "order.json").write_text(json.dumps(SCHEMA))
        (folder / "orders.toml").write_text(
            f'path = "{lake}"\nsink = "{sink}"\nengine = "{engine}"\n'
            f'[nats]\nservers = "{url}"\n[[source]]\nstream = "{stream_of(count)}"\n'
            'table = "orders"\nformat = "json"\nschema = "order.json"\n'
            + ("" if s3 is None else s3.toml(f"n{uuid.uuid4().hex}", catalog=sink == "iceberg"))
        )
        words = ["-m", "twinstream", "pipeline", "run", "--once", "--config", "orders.toml"]
        took, cpu = _measured(words, folder, str(way))
        rows = _rows(folder)
        if rows != count:
            raise click.ClickException(f"{way}: {rows} of {count} rows")
        return took, cpu


def peer(name: str, place: str, count: int, stream: str = "") -> tuple[float, float]:
    """Let a peer write the table; return the seconds by the clock and the CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        target = f"{folder}/orders"
        words = ["-m", "tests.bench.lake_peers", name, place, *filter(None, [stream]), target]
        found = _measured(words, Path(folder), name)
        rows = sum(pq.read_metadata(file).num_rows for file in Path(target).rglob("*.parquet"))
        if rows != count:
            raise click.ClickException(f"{name}: {rows} of {count} rows")
        return found


def _measured(words: list[str], folder: Path, what: str) -> tuple[float, float]:
    """Run Python in a folder; return the seconds by the clock and those of all processes' CPU."""
    before, cpu, began = len(family()), _children(), time.perf_counter()
    with _Workers() as workers:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=folder,
            env={**os.environ, **client_environment(), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            capture_output=True,
            text=True,
        )
    took = time.perf_counter() - began
    if done.returncode:
        raise click.ClickException(f"{what}: {done.stderr[-1500:]}")
    while len(family()) > before:
        os.waitpid(-1, os.WNOHANG)
        time.sleep(0.05)
    return took, _children() - cpu + workers.cpu


def _rows(folder: Path) -> int:
    """Return the number of rows of a table, as its own package counts them."""
    config = read_config(folder / "orders.toml")
    if config.sink == "iceberg":
        summary = iceberg_table(config).current_snapshot().summary
        return int(summary["total-records"])
    if isinstance(config.path, ObjectFolder):
        table = DeltaTable(
            f"{config.path}/orders", storage_options=delta_options(config.path.storage)
        )
        return int(table.to_pyarrow_dataset().count_rows())
    files = (folder / "lake/orders").rglob("*.parquet")
    return sum(pq.read_metadata(file).num_rows for file in files)


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
@click.option("--peers", is_flag=True, help="Measure Spark with files, and nats-py, too.")
@click.option("--places", is_flag=True, help="Compare tables on S3, and on files.")
def bench(messages: int, rounds: int, peers: bool, places: bool) -> None:
    """Measure the command with each engine."""
    ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0)
    if places:
        _compare_places(messages, rounds)
        return
    ways = [
        (count, engine, sink) for count in (SMALL, messages) for sink in SINKS for engine in ENGINES
    ]
    if peers:
        ways += [(messages, name, "parquet") for name in PEERS]
    found: dict[Way, list[tuple[float, float]]] = {way: [] for way in ways}
    with NatsServer() as server, tempfile.TemporaryDirectory() as name:
        files = Path(name) / "json"
        fill(server.url, messages, files)
        for count in (SMALL, messages):
            fill_stream(server.url, stream_of(count), count)
        for number in range(rounds):
            for way in ways if number % 2 == 0 else reversed(ways):
                count, engine, _ = way
                if engine == "nats_py":
                    run = peer(engine, server.url, count, stream_of(count))
                elif engine == "spark, files":
                    run = peer("spark", str(files), count)
                else:
                    run = command(server.url, way)
                found[way].append(run)
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


def _compare_places(messages: int, rounds: int) -> None:
    """Measure the local engine with Delta tables on files, and with both kinds of tables on S3."""
    os.environ.update(client_environment())
    places = ("delta on files", "delta on S3", "iceberg on S3")
    ways = [(count, place) for count in (SMALL, messages) for place in places]
    found: dict[tuple[int, str], list[tuple[float, float]]] = {way: [] for way in ways}
    with NatsServer() as server, S3Server() as s3:
        for count in (SMALL, messages):
            fill_stream(server.url, stream_of(count), count)
        for number in range(rounds):
            for count, place in ways if number % 2 == 0 else reversed(ways):
                sink, _, where = place.split()
                way = (count, "local", sink)
                run = command(server.url, way, None if where == "files" else s3)
                found[count, place].append(run)
    table = plain_table("messages", "tables", "s", "CPU s", "CPU to", "ratio", "of each round")
    for at, (count, place) in enumerate(ways):
        beside = ways[at - 1] if at % len(places) else ways[at]
        runs = list(zip(found[count, place], found[beside], strict=True))
        ratios = [own / other for (_, own), (_, other) in runs]
        table.add_row(
            f"{count:,}",
            place,
            f"{median(took for took, _ in found[count, place]):.2f}",
            f"{median(cpu for _, cpu in found[count, place]):.2f}",
            beside[1],
            f"{median(ratios):.2f}",
            " ".join(f"{ratio:.2f}" for ratio in ratios),
        )
    results().print(table)


if __name__ == "__main__":
    bench()
