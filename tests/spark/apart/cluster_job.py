"""The driver program of the cluster tests: `cluster_job.py MASTER SERVER FOLDER [PACKAGE]`.

Reads a stream as a batch and as a streaming query, lands it, writes it into another one, and prints
what it found as JSON. With a zip, executors have PySpark, pyarrow and what is in it; an archive is
unpacked for them as `env`, the environment to run in.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from tests.spark.patience import finished
from twinstream.spark.pipeline import land
from twinstream.spark.session.session import local_session


def main(master: str, server: str, folder: str, package: str = "") -> dict[str, Any]:
    """Run and return what was found."""
    settings = {"spark.executor.memory": "700m", "spark.cores.max": "2"}
    if package:
        if package.endswith(".zip"):
            settings["spark.submit.pyFiles"] = package
        else:
            settings["spark.archives"] = f"{package}#env"
    spark = local_session("cluster", master=master, settings=settings)
    options = {"nats.servers": server, "stream": "ORDERS", "minPartitions": "4"}
    rows = spark.read.format("jetstream").options(**options).load()
    batch = rows.selectExpr("count(*) AS n", "count(DISTINCT seq) AS seqs").collect()[0]
    # The driver keeps blocks too, and counts as one.
    executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    writer = (
        spark.readStream.format("jetstream")
        .options(**options, startingOffsets="earliest", maxMessagesPerTrigger="3000")
        .load()
        .writeStream.format("parquet")
        .option("path", f"{folder}/table")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
    )
    finished(writer.start)
    landed = spark.read.parquet(f"{folder}/table")
    streamed = landed.selectExpr("count(*) AS n", "count(DISTINCT seq) AS seqs").collect()[0]
    report = land(spark, servers=server, stream="ORDERS", path=f"{folder}/lake", options=options)
    copy = rows.selectExpr("concat('copy.', seq) AS subject", "data")
    sink = {"nats.servers": server, "stream": "COPY", "idempotence": "insert"}
    copy.write.format("jetstream").options(**sink).mode("append").save()
    spark.stop()
    return {
        "batch": list(batch),
        "streamed": list(streamed),
        "landed": [report.messages, report.distinct_seqs, report.files],
        "executors": executors,
        "driver_python": os.environ["PYSPARK_DRIVER_PYTHON"],
    }


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
