"""Read a stream into a typed table with Spark, and write a summary as Parquet.

    python examples/spark_table.py nats://127.0.0.1:4222 sales.parquet

It needs the extra `spark`, and `java` on machines without a Java runtime. A batch has the messages
that were stored when it began; rows that do not fit the schema are kept, with the reason.

It prints:

    eu: 2 sales, 12.50
    us: 1 sales, 7.00
    not a sale: 4 b'free tea'
"""

from __future__ import annotations

import json
import sys

import js_sync
from js_sync import StreamConfig
from twinstream.spark import local_session

SCHEMA = {
    "type": "object",
    "required": ["region", "amount"],
    "properties": {"region": {"type": "string"}, "amount": {"type": "number"}},
}
SALES = [("eu", 3.5), ("us", 7.0), ("eu", 9.0)]


def publish(server: str) -> None:
    """Store three sales, and a message that is none."""
    with js_sync.connect(server, name="shop") as nc:
        jet = nc.jetstream(timeout=30)
        config = StreamConfig(name="RECEIPTS", subjects=["receipts.>"], allow_direct=True)
        jet.create_stream(config)
        for region, amount in SALES:
            sale = json.dumps({"region": region, "amount": amount})
            jet.publish(f"receipts.{region}", sale.encode())
        jet.publish("receipts.eu", b"free tea")


def main(server: str, path: str = "sales.parquet") -> None:
    """Summarize the sales of each region."""
    publish(server)
    spark = local_session()
    options = {
        "nats.servers": server,
        "stream": "RECEIPTS",
        "valueFormat": "json",
        "jsonSchema": json.dumps(SCHEMA),
    }
    receipts = spark.read.format("jetstream").options(**options).load().cache()
    sales = receipts.where("_error IS NULL")
    summary = sales.groupBy("region").agg({"amount": "sum", "*": "count"})
    summary.toDF("region", "total", "count").write.mode("overwrite").parquet(path)
    for row in spark.read.parquet(path).orderBy("region").collect():
        print(f"{row['region']}: {row['count']} sales, {row['total']:.2f}")
    for row in receipts.where("_error IS NOT NULL").collect():
        print("not a sale:", row["_seq"], row["_raw"])
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
