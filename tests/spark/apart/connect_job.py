"""A program on Spark Connect: it reads and writes streams on a Spark that runs elsewhere.

`connect_job.py URL NATS FOLDER` prints what it found as JSON. The streams are ORDERS, which has
messages, and COPY, which takes them up under `copy.>`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from tests.soak import LONGEST
from tests.spark.patience import begun, finished, patiently

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def main(url: str, nats: str, folder: str) -> dict[str, Any]:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote(url).getOrCreate()
    try:
        found = without_the_package(spark, nats, folder)
        return {
            **found,
            "foreign": "twinstream.spark" not in sys.modules,
            **with_it(spark, nats, folder),
        }
    finally:
        spark.stop()


def without_the_package(spark: SparkSession, nats: str, folder: str) -> dict[str, Any]:
    options = {"nats.servers": nats, "stream": "ORDERS"}
    orders = spark.read.format("jetstream").options(**options).load()
    told = orders.selectExpr("'copy.told' AS subject", "CAST(seq AS STRING) AS data")
    told.where("seq <= 10").write.format("jetstream").options(
        **{"nats.servers": nats, "stream": "COPY"}
    ).mode("append").save()
    copied(spark, nats, folder)
    return {
        "read": orders.count(),
        "in_batch": patiently(lambda: written_in_batches(spark, nats, folder)),
        "joined": joined(spark, nats, folder),
    }


def with_it(spark: SparkSession, nats: str, folder: str) -> dict[str, Any]:
    import twinstream.spark
    from twinstream.spark.pipeline import PipelineConfig, land
    from twinstream.spark.pipeline.runner import run

    twinstream.spark.register(spark)
    spark.sql(
        "CREATE TEMPORARY VIEW orders USING jetstream"
        f" OPTIONS (nats.servers '{nats}', stream 'ORDERS')"
    )
    try:
        run(spark, PipelineConfig(name="p", path=Path(folder) / "p", sources=()))
        refused = ""
    except twinstream.spark.SparkSourceError as error:
        refused = str(error)
    return {
        "registered": spark.sql("SELECT max(seq) FROM orders").collect()[0][0],
        "landed": land(spark, servers=nats, stream="ORDERS", path=f"{folder}/lake").distinct_seqs,
        "session": twinstream.spark.local_session() is spark,
        "refused": refused,
    }


def copied(spark: SparkSession, nats: str, folder: str) -> None:
    server = {"nats.servers": nats}
    orders = spark.readStream.format("jetstream").options(
        **server, stream="ORDERS", startingOffsets="earliest"
    )
    writer = (
        orders.load()
        .selectExpr("concat('copy.', subject) AS subject", "data")
        .writeStream.format("jetstream")
        .options(**server, stream="COPY", idempotence="ledger", ledgerSubject="copy.ledger")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
    )
    finished(writer.start)


def joined(spark: SparkSession, nats: str, folder: str) -> list[tuple[str, str | None]]:
    """Join a query with a stream of names that gets another name after the first micro-batch."""
    server = {"nats.servers": nats, "stream": "COPY"}

    def store(subject: str, data: str) -> None:
        rows = spark.createDataFrame([(subject, data)], "subject string, data string")
        write = rows.write.format("jetstream").options(**server, idempotence="none")
        write.mode("append").save()

    def read(reader: Any, kind: str) -> DataFrame:
        return reader.format("jetstream").options(**server, subject=f"copy.{kind}").load()

    names = read(spark.read, "name").selectExpr("CAST(data AS STRING) AS name")
    store("copy.name", "first")
    writer = (
        read(spark.readStream, "sold")
        .selectExpr("CAST(data AS STRING) AS name", "seq")
        .join(names.selectExpr("name", "name AS found"), "name", "left")
        .writeStream.format("memory")
        .queryName("joined")
    )
    query = begun(lambda at: writer.option("checkpointLocation", at).start(), Path(folder))
    try:
        store("copy.sold", "first")
        query.processAllAvailable()
        store("copy.name", "second")
        store("copy.sold", "second")
        query.processAllAvailable()
        return [(row["name"], row["found"]) for row in spark.table("joined").sort("seq").collect()]
    finally:
        query.stop()


def written_in_batches(spark: SparkSession, nats: str, folder: str) -> str:
    """Write each batch of a query under one name, and return why that is refused."""
    server = {"nats.servers": nats}

    def write(rows: DataFrame, batch: int) -> None:
        again = rows.selectExpr("'copy.again' AS subject", "data").write.format("jetstream")
        again.options(**server, stream="COPY", writeId="again").mode("append").save()

    orders = spark.readStream.format("jetstream").options(
        **server, stream="ORDERS", startingOffsets="earliest", maxMessagesPerTrigger="150"
    )
    query = (
        orders.load()
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", f"{folder}/batches")
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(LONGEST)
    except PySparkException as error:
        if "does not identify" in str(error):
            return str(error)
        raise
    return str(query.exception())


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
