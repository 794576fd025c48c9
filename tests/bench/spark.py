"""`python -m tests.bench.spark`: what the Spark source costs, as ratios within one run.

`landing`: a stream into Parquet, raw and typed, by `land` and through a data frame, beside Spark
reading the same payloads, typed, from files of JSON lines into Parquet; one session, in turns, by
the clock and by the CPU seconds of all processes, the server's included, which other work on the
machine changes less.
`reader`: the work of one task in a plain process beside a socket that only counts. Every run
checks its counts.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import click
import pyarrow.parquet as pq

import js_sync
from tests.bench.processes import cpu_seconds
from tests.bench.spark_reader import STREAM
from tests.bench.suite import ROOT
from twinstream.cli.screen import plain_table, results
from twinstream.models import StreamConfig
from twinstream.spark import local_session
from twinstream.spark.pipeline import land
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTS: Final = ("landing", "reader")
SIZE: Final = 200
SCHEMA: Final = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "customer": {"type": "string"},
        "amount": {"type": "number"},
        "paid": {"type": "boolean"},
        "placed": {"type": "string", "format": "date-time"},
        "note": {"type": "string"},
    },
}
DDL: Final = (
    "id BIGINT, customer STRING, amount DOUBLE, paid BOOLEAN, placed TIMESTAMP, note STRING"
)

Land = Callable[[Path], object]


def payload(number: int) -> bytes:
    """Return an order of 200 bytes."""
    order: dict[str, Any] = {
        "id": number,
        "customer": f"customer-{number % 9973}",
        "amount": number % 100_000 / 100,
        "paid": number % 3 == 0,
        "placed": f"2026-01-31T12:{number // 60 % 60:02}:{number % 60:02}.{number % 1_000_000:06}Z",
        "note": "",
    }
    bare = json.dumps(order, separators=(",", ":"))
    order["note"] = "x" * (SIZE - len(bare))
    return json.dumps(order, separators=(",", ":")).encode()


def fill(url: str, count: int, folder: Path) -> None:
    """Put the same payloads into a stream and into two files."""
    folder.mkdir()
    fill_stream(url, STREAM, count)
    for part, (low, high) in enumerate(((0, count // 2), (count // 2, count))):
        with (folder / f"{part}.jsonl").open("wb") as file:
            file.writelines(payload(number) + b"\n" for number in range(low, high))


def fill_stream(url: str, name: str, count: int) -> None:
    """Create a stream with payloads of ten subjects."""
    with js_sync.connect(url) as nc:
        jet = nc.jetstream(timeout=60)
        jet.create_stream(
            StreamConfig(name=name, subjects=[f"{name.lower()}.*"], allow_direct=True)
        )
        for outcome in jet.publish_many(_requests(name, count)):
            if isinstance(outcome, js_sync.PublishFailure):
                raise outcome.error


def _requests(name: str, count: int) -> Iterator[js_sync.PublishRequest]:
    for number in range(count):
        yield js_sync.PublishRequest(subject=f"{name.lower()}.{number % 10}", data=payload(number))


def ways(spark: SparkSession, url: str, files: Path) -> dict[str, Land]:
    """Return what lands into a folder, by name."""

    def landed(value_format: str, json_schema: str | None = None) -> Land:
        return lambda to: land(
            spark,
            servers=url,
            stream=STREAM,
            path=str(to),
            value_format=value_format,
            json_schema=json_schema,
        )

    def frame(columns: str = "", **options: str) -> Land:
        given = {"nats.servers": url, "stream": STREAM, **options}
        reader = spark.read.format("jetstream").options(**given)
        return _written(lambda: (reader.schema(columns) if columns else reader).load())

    schema = json.dumps(SCHEMA)
    return {
        "files": _written(lambda: spark.read.schema(DDL).json(str(files))),
        "land, raw": landed("raw"),
        "land, typed": landed("json", schema),
        "data frame, raw": frame(),
        "data frame, typed": frame(valueFormat="json", jsonSchema=schema),
        # Spark asks a Python source for all of its columns, whatever a query selects of them; the
        # schema of a read is how to ask for fewer, here for those that the files have.
        "data frame, payload only": frame(DDL, valueFormat="json", jsonSchema=schema),
    }


def _written(rows: Callable[[], DataFrame]) -> Land:
    return lambda to: rows().write.parquet(str(to))


def landing(url: str, folder: Path, count: int, rounds: int) -> None:
    """Land the stream and the files in turns, every second round in reverse."""
    spark = local_session("bench", master="local[2]")
    try:
        lands = ways(spark, url, folder / "json")
        for way in lands.values():
            _timed(way, folder / "out", count)  # the first of each compiles
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in lands}
        for number in range(rounds):
            for name in list(lands) if number % 2 == 0 else list(reversed(lands)):
                found[name].append(_timed(lands[name], folder / "out", count))
    finally:
        spark.stop()
    table = plain_table(
        "into Parquet", "s", "messages a second", "to files", "of each round", "CPU s", "to files"
    )
    for name, runs in found.items():
        times, cpu = ([run[at] for run in runs] for at in (0, 1))
        ratios, costs = (
            [a[at] / b[at] for a, b in zip(runs, found["files"], strict=True)] for at in (0, 1)
        )
        table.add_row(
            name,
            f"{median(times):.2f}",
            f"{count / median(times):,.0f}",
            f"{median(ratios):.2f}",
            " ".join(f"{ratio:.2f}" for ratio in ratios),
            f"{median(cpu):.2f}",
            f"{median(costs):.2f}",
        )
    results().print(table)


def _timed(way: Land, target: Path, count: int) -> tuple[float, float]:
    """Land once; return the seconds by the clock, and the CPU seconds of all processes."""
    cpu, began = cpu_seconds(), time.perf_counter()
    way(target)
    took = time.perf_counter() - began, cpu_seconds() - cpu
    rows = sum(pq.read_metadata(file).num_rows for file in target.rglob("*.parquet"))
    shutil.rmtree(target)
    if rows != count:
        raise click.ClickException(f"{rows} of {count} rows")
    return took


def reader(url: str, count: int, rounds: int) -> None:
    """Read by one task's work and by a bare socket in turns."""
    table = plain_table("read by", "ours a second", "bare socket", "ratio", "of each round", "CPU")
    for mode in ("direct", "consumer"):
        pairs: list[tuple[dict[str, Any], dict[str, Any]]] = []
        for number in range(rounds):
            order = ("ours", "raw") if number % 2 == 0 else ("raw", "ours")
            run = {who: _process(who, mode, url, count) for who in order}
            pairs.append((run["ours"], run["raw"]))
        ratios = [own["rate"] / limit["rate"] for own, limit in pairs]
        table.add_row(
            mode,
            f"{median(own['rate'] for own, _ in pairs):,.0f}",
            f"{median(limit['rate'] for _, limit in pairs):,.0f}",
            f"{median(ratios):.2f}",
            " ".join(f"{ratio:.2f}" for ratio in ratios),
            f"{median(own['cpu_us'] for own, _ in pairs):.2f} µs",
        )
    results().print(table)


def _process(who: str, mode: str, url: str, count: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.spark_reader", who, mode, url, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise click.ClickException(f"{who}, {mode}: {done.stderr[-1500:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    if found["count"] != count:
        raise click.ClickException(f"{who}, {mode}: {found['count']} of {count} messages")
    return found


@click.command()
@click.option("--messages", default=1_000_000, show_default=True, type=click.IntRange(min=1000))
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(min=1))
@click.option("--only", multiple=True, type=click.Choice(PARTS))
def bench(messages: int, rounds: int, only: tuple[str, ...]) -> None:
    """Measure the Spark source."""
    chosen = only or PARTS
    with tempfile.TemporaryDirectory() as name, NatsServer() as server:
        folder = Path(name)
        fill(server.url, messages, folder / "json")
        if "reader" in chosen:
            reader(server.url, messages, rounds)
        if "landing" in chosen:
            landing(server.url, folder, messages, rounds)


if __name__ == "__main__":
    bench()
