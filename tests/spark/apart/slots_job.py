"""Reads on a session of its own, with more task slots than most machines have cores.

`slots_job.py SLOTS SERVER FOLDER` prints the number of partitions of each read as JSON. The
stream LARGE has messages for all slots, and SMALL for one.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from tests.spark.patience import finished
from twinstream.spark.pipeline import land
from twinstream.spark.session.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(slots: str, server: str, folder: str) -> dict[str, Any]:
    """Run and return what was found."""
    spark = local_session("slots", master=f"local[{slots},4]")
    options = {"nats.servers": server, "stream": "LARGE"}

    def partitions(**more: str) -> int:
        rows = spark.read.format("jetstream").schema("seq bigint").options(**options | more)
        return rows.load().rdd.getNumPartitions()

    try:
        return {
            "batch": partitions(),
            "three": partitions(minPartitions="3"),
            "limited": partitions(maxMessagesPerPartition="10000"),
            "small": partitions(stream="SMALL"),
            "streaming": streamed(spark, options, folder),
            "landed": land(spark, servers=server, stream="LARGE", path=f"{folder}/lake").files,
        }
    finally:
        spark.stop()


def streamed(spark: SparkSession, options: dict[str, str], folder: str) -> int:
    """Return the number of partitions of the only batch of a streaming query."""
    reader = spark.readStream.format("jetstream").schema("seq bigint").options(**options)
    found: list[int] = []
    writer = (
        reader.option("startingOffsets", "earliest")
        .load()
        .writeStream.foreachBatch(lambda rows, _: found.append(rows.rdd.getNumPartitions()))
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
    )
    finished(writer.start)
    (count,) = found
    return count


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
