"""Step 5: Spark reads both streams by ranges of sequences, and writes typed Parquet tables."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from examples.demo.scene import EVENTS, STREAM, Scene, SubjectRow
from js_sync import JetStream
from twinstream.cli.screen import plain_table, progress, remark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from twinstream.spark.landing.report import LandReport, TableReport

PARTITIONS = 4
"""The number of sequence ranges that Spark reads in parallel."""


def land(scene: Scene, _: JetStream) -> None:
    """Land the orders with typed columns, and the advisories in one table for each kind."""
    # The import of PySpark takes a second, and a demo without Spark does not need it.
    from twinstream.spark.session.session import local_session

    started = time.monotonic()
    remark(scene.console, "Starting Spark takes some seconds.")
    spark = local_session("twinstream demo")
    try:
        # Show the progress only now: Java prints to the terminal while it starts.
        with progress(scene.console) as display:
            task = display.add_task("land the orders", total=3)
            orders = _orders(scene, spark)
            display.update(task, advance=1, description="land the advisories")
            events = _advisories(scene, spark)
            display.update(task, advance=1, description="sum up from Parquet")
            table = next(table for table in orders.tables if table.name == STREAM.lower())
            scene.subjects = by_subject(spark, table)
            display.update(task, advance=1, description="landed in Parquet")
    finally:
        spark.stop()
    scene.spark_seconds = time.monotonic() - started
    _keep(scene, orders, events)
    _show(scene, orders, events)


def by_subject(spark: SparkSession, table: TableReport) -> list[SubjectRow]:
    """Return the number of orders and the sums of their columns by subject, sorted by subject."""
    from pyspark.sql import functions as f

    rows = (
        spark.read.parquet(table.path)
        .groupBy("_subject")
        .agg(f.count("*").alias("orders"), f.sum("items"), f.sum("amount"))
        .orderBy("_subject")
        .collect()
    )
    return [SubjectRow(subject=r[0], orders=r[1], items=r[2], amount=r[3]) for r in rows]


def _orders(scene: Scene, spark: SparkSession) -> LandReport:
    from twinstream.spark.pipeline import land as land_stream

    settings = scene.settings
    return land_stream(
        spark,
        servers=scene.url,
        stream=STREAM,
        path=str(settings.output),
        value_format="json",
        json_schema=str(settings.examples / "order.schema.json"),
        options={"minPartitions": str(PARTITIONS)},
    )


def _advisories(scene: Scene, spark: SparkSession) -> LandReport:
    from twinstream.spark.pipeline import land as land_stream

    return land_stream(
        spark,
        servers=scene.url,
        stream=EVENTS,
        path=str(scene.settings.output),
        value_format="advisory",
    )


def _keep(scene: Scene, orders: LandReport, events: LandReport) -> None:
    scene.in_parquet = orders.rows + orders.dead_letters
    scene.distinct_in_parquet = orders.distinct_seqs
    scene.dead_letters = orders.dead_letters
    scene.advisories_stored = events.end - events.start
    scene.advisories_in_parquet = events.rows


def _show(scene: Scene, orders: LandReport, events: LandReport) -> None:
    remark(
        scene.console,
        f"{orders.rows:,} orders in {orders.files} files, {orders.dead_letters} dead letters"
        f" (with their bytes and the reason); {events.rows:,} advisories in"
        f" {len(events.tables)} tables; {scene.spark_seconds:.0f} s with Spark's start.",
    )
    numbers = ("orders", "items", "€")
    table = plain_table("subject", *numbers, numbers=numbers)
    for row in scene.subjects:
        table.add_row(row.subject, f"{row.orders:,}", f"{row.items:,}", f"{row.amount:,.2f}")
    scene.console.print(table)
