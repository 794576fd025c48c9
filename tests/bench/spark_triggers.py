"""`python -m tests.bench.spark_triggers`: what stays behind in a streaming query that runs long.

One query over a stream, as many micro-batches as asked for, and the memory of each process every
so many of them: the driver's Python, the process beside it that plans the batches of the source,
the workers, and the JVM (all of it, and what its heap holds after a collection). The slope over
the second half, when caches are full, tells whether anything grows.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import linear_regression
from typing import TYPE_CHECKING, Any, Final

import click

import js_sync
from tests.bench.processes import family
from twinstream.cli.screen import notes, plain_table, results
from twinstream.models import StreamConfig
from twinstream.spark import local_session
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

STREAM: Final = "TICKS"
MIB: Final = 2**20
KINDS: Final = {
    "driver": "Python driver",
    "planner": "source's process",
    "workers": "workers",
    "jvm": "JVM",
    "heap": "its heap",
}
"""What is measured, in MiB, and its title."""


def fill(url: str, count: int) -> None:
    """Make the stream, with as many messages."""
    with js_sync.connect(url) as nc:
        jet = nc.jetstream(timeout=60)
        jet.create_stream(StreamConfig(name=STREAM, subjects=["ticks"], allow_direct=True))
        requests = (js_sync.PublishRequest(subject="ticks", data=b"x" * 200) for _ in range(count))
        for outcome in jet.publish_many(requests):
            if isinstance(outcome, js_sync.PublishFailure):
                raise outcome.error


def start(spark: SparkSession, url: str, size: int, folder: Path) -> StreamingQuery:
    """Start the query: `size` messages a trigger, until it has read what is there."""
    options = {
        "nats.servers": url,
        "stream": STREAM,
        "startingOffsets": "earliest",
        "maxMessagesPerTrigger": str(size),
    }
    rows = spark.readStream.format("jetstream").options(**options).load()
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(folder))
    return writer.trigger(availableNow=True).start()


def watch(
    spark: SparkSession, query: StreamingQuery, triggers: int, every: int
) -> Iterator[dict[str, float]]:
    """Yield the memory after the first trigger and after every so many."""
    due, before, began = 1, 0, time.perf_counter()
    while before < triggers and query.isActive:
        progress = query.lastProgress
        done = 0 if progress is None else int(progress["batchId"]) + 1
        if done >= due:
            now = time.perf_counter()
            yield {
                "triggers": done,
                "seconds": (now - began) / (done - before),
                **memory(spark),
            }
            before, began, due = done, now, (done // every + 1) * every
        time.sleep(0.02)
    error = query.exception()
    if error is not None:
        raise error
    query.stop()


def memory(spark: SparkSession) -> dict[str, float]:
    """Return the MiB of each kind of process."""
    found = dict.fromkeys(KINDS, 0.0)
    for each in family():
        kind = "driver" if each.pid == os.getpid() else _kind(each.command)
        if kind is not None:
            found[kind] += each.resident / MIB
    jvm: Any = spark._jvm
    jvm.System.gc()
    runtime = jvm.Runtime.getRuntime()
    found["heap"] = (runtime.totalMemory() - runtime.freeMemory()) / MIB
    return found


def _kind(command: str) -> str | None:
    if "org.apache.spark" in command:
        return "jvm"
    if "streaming_source_runner" in command:
        return "planner"
    return "workers" if "pyspark" in command else None


def slope(rows: Sequence[Mapping[str, float]], kind: str) -> float:
    """Return by how many KiB a trigger a kind grows over the second half (least squares)."""
    half = rows[len(rows) // 2 :]
    if len(half) < 2:
        return 0.0
    return linear_regression(
        [row["triggers"] for row in half], [row[kind] * 1024 for row in half]
    ).slope


@click.command()
@click.option("--triggers", default=1000, show_default=True, type=click.IntRange(min=4))
@click.option("--every", default=50, show_default=True, type=click.IntRange(min=1))
@click.option("--messages", default=50, show_default=True, help="Messages a trigger.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def bench(triggers: int, every: int, messages: int, as_json: bool) -> None:
    """Measure what a streaming query keeps."""
    rows: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as name, NatsServer() as server:
        # More than is looked at: a query that has read everything ends its processes.
        fill(server.url, (triggers + every) * messages)
        spark = local_session("triggers", master="local[2]")
        try:
            query = start(spark, server.url, messages, Path(name) / "checkpoint")
            for row in watch(spark, query, triggers, every):
                rows.append(row)
                notes().print(f"{row['triggers']:.0f} triggers, {row['seconds']:.2f} s each")
        finally:
            spark.stop()
    slopes = {kind: slope(rows, kind) for kind in KINDS}
    if as_json:
        json.dump({"rows": rows, "kib_a_trigger": slopes}, sys.stdout)
        return
    table = plain_table("triggers", "s each", *(f"{title}, MiB" for title in KINDS.values()))
    for row in rows:
        memories = [f"{row[kind]:.1f}" for kind in KINDS]
        table.add_row(f"{row['triggers']:.0f}", f"{row['seconds']:.2f}", *memories)
    table.add_row("KiB a trigger", "2nd half", *(f"{slopes[kind]:+.2f}" for kind in KINDS))
    results().print(table)


if __name__ == "__main__":
    bench()
