"""A program that copies one stream into others, once in every mode of the sink, to be killed.

`python copy_all.py SERVER SOURCE FOLDER MODE=TARGET...` ends when each copy has all that the
source holds. A query that fails is started again, as a supervisor would. Prints a line for each
thing that happens, so that whoever kills it can choose the moment.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from twinstream.spark.session.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MOST: Final = 30
"""Failures of one copy: on a busy machine Spark gives up on processes that start slowly."""


class Copy:
    """One copy: its query, and how it went."""

    def __init__(self, mode: str, source: dict[str, str], sink: dict[str, str], folder: str):
        self.ended = False
        self._mode: Final = mode
        self._source: Final = source
        self._sink: Final = sink
        self._folder: Final = folder
        self._query: StreamingQuery | None = None
        self._failures = 0
        self._batch = -1

    @property
    def is_starting(self) -> bool:
        """Whether Spark is making the query just now."""
        query = self._query
        return query is not None and query.status["message"].startswith("Initializing")

    def step(self, spark: SparkSession, *, may_start: bool) -> None:
        """Start, tell of a batch, notice the end."""
        query = self._query
        if query is None:
            if may_start:
                self._query = self._start(spark)
                print("Started", self._mode, flush=True)
            return
        running = query.isActive
        progress = query.lastProgress
        if progress is not None and progress["batchId"] > self._batch:
            self._batch = progress["batchId"]
            print("Stored", self._mode, self._batch, flush=True)
        if running:
            return
        error = query.exception()
        self._query, self.ended = None, error is None
        if error is not None:
            self._failures += 1
            print("Failed", self._mode, str(error).splitlines()[0], flush=True)
            assert self._failures <= MOST, error

    def _start(self, spark: SparkSession) -> StreamingQuery:
        # A subject of its own for each row, which `insert` needs.
        prefix = self._sink["stream"].lower()
        rows = spark.readStream.format("jetstream").options(**self._source).load()
        checkpoint = Path(self._folder, self._mode)
        _clear_unfinished(checkpoint / "offsets")
        writer = rows.selectExpr(f"concat('{prefix}.n.', seq) subject", "data").writeStream
        return (
            writer.format("jetstream")
            .options(**self._sink, idempotence=self._mode)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )


def _clear_unfinished(folder: Path) -> None:
    """Remove what Spark left that was killed while it planned batch 0, with which it never starts.

    Since 4.1, Spark requires an empty folder for a new query.
    """
    if folder.is_dir() and not (folder / "0").exists():
        for left in folder.glob(".*"):
            left.unlink()


def main(server: str, stream: str, folder: str, *targets: str) -> None:
    spark = local_session("killed", master="local[2,4]")
    spark.sparkContext.setLogLevel("OFF")
    connection = {"nats.servers": server}
    source = {"stream": stream, "startingOffsets": "earliest", "maxMessagesPerTrigger": "4000"}
    source |= {"minPartitions": "2", **connection}
    copies = []
    for target in targets:
        mode, _, name = target.partition("=")
        sink = {"stream": name, **connection}
        if mode == "ledger":
            sink["ledgerSubject"] = f"{name.lower()}.ledger"
        copies.append(Copy(mode, source, sink, folder))
    while not all(each.ended for each in copies):
        for each in copies:
            if not each.ended:
                # Spark gives a query's process ten seconds to start: one after the other.
                each.step(spark, may_start=not any(other.is_starting for other in copies))
        time.sleep(0.05)
    spark.stop()
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
