"""A program that writes rows behind a shuffle, round after round, while its tasks die.

`python shuffled_writes.py SERVER SOURCE TARGET FOLDER MODE WAY ROUNDS SEED` runs on two executors.
In each round the plan before the sink is the next of `PLANS`, and the task that first comes so far
dies when it has published some of its rows: by an exception (`error`), or because the JVM of its
executor is killed (`executor`), with the blocks of the shuffle that it holds. Rows of round N
have the subjects `<target>.N.<id>`. Prints a line for each round.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.spark.patience import finished
from twinstream.spark.session.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS: Final = 6000
"""Rows of each round, in two tasks."""

PLANS: Final = ["repartition", "sort", "join", "aggregation"]
MASTER: Final = "local-cluster[2,1,1024]"
_SETTINGS: Final = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # Small batches, so that most rows before the middle are stored in the middle.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def rows_of(spark: SparkSession, plan: str) -> DataFrame:
    """Return a batch of ids behind a shuffle."""
    ids = spark.range(0, ROWS, 1, 12)
    if plan == "repartition":
        return ids.repartition(2)
    if plan == "sort":
        return ids.orderBy(ids["id"] % 97)
    return ids.join(spark.range(0, 2 * ROWS, 1, 6), "id")


def counted(spark: SparkSession, source: dict[str, str]) -> DataFrame:
    """Return a streaming aggregation that gives each id once: its last row closes the window."""
    from pyspark.sql.functions import window

    rows = spark.readStream.format("jetstream").options(**source).load()
    rows = rows.selectExpr("CAST(CAST(data AS string) AS bigint) id")
    rows = rows.selectExpr("id", f"timestamp_seconds(IF(id < {ROWS}, 1, 1000000)) at")
    rows = rows.withWatermark("at", "0 seconds")
    counts: DataFrame = rows.groupBy(window("at", "1 hour"), "id").count()
    return counts


def messages(rows: DataFrame, prefix: str) -> DataFrame:
    return rows.selectExpr(f"concat('{prefix}.', id) subject", "CAST(id AS string) data")


def main(
    server: str, source: str, target: str, folder: str, mode: str, way: str, rounds: str, seed: str
) -> None:
    spark = local_session("shuffled", master=MASTER, settings=_SETTINGS)
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(dying_source())
    dice = random.Random(int(seed))
    connection = {"nats.servers": server}
    read = {**connection, "stream": source, "startingOffsets": "earliest", "minPartitions": "2"}
    for number in range(int(rounds)):
        plan = PLANS[(number + int(seed)) % len(PLANS)]
        sink = {**connection, "stream": target, "idempotence": mode, "maxInFlight": "100"}
        if mode == "ledger":
            sink["ledgerSubject"] = f"{target.lower()}.ledger"
        mark = str(Path(folder, f"{number}.died"))
        sink |= {"way": way, "at": str(dice.randrange(200, 2400)), "mark": mark}
        prefix = f"{target.lower()}.{number}"
        if plan == "aggregation":
            written = messages(counted(spark, read), prefix).writeStream.format("dying")
            written = written.options(**sink, checkpointLocation=str(Path(folder, str(number))))
            finished(written.trigger(availableNow=True).start)
        else:
            rows = messages(rows_of(spark, plan), prefix)
            rows.write.format("dying").options(**sink).mode("append").save()
        print("Wrote", number, plan, flush=True)
    spark.stop()


def dying_source() -> type:
    """Return the source under the name `dying`, one of whose tasks dies in the middle.

    Made in a function, so that it goes to the workers by value: they do not have this module.
    """
    from twinstream.spark.data_source import JetStreamDataSource
    from twinstream.spark.sink.options import SinkOptions
    from twinstream.spark.sink.sink import JetStreamStreamWriter, JetStreamWriter

    class Dying:
        """What is mixed into both writers."""

        way = mark = ""
        at = 0

        def write(self, iterator: Any) -> Any:
            return super().write(self.until(iterator))  # type: ignore[misc]

        def until(self, iterator: Any) -> Any:
            rows = 0
            for batch in iterator:
                if rows >= self.at and self.once():
                    self.die()
                rows += batch.num_rows
                yield batch

        def once(self) -> bool:
            """Return whether no attempt of this write has died yet."""
            import os

            try:
                os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return False
            return True

        def die(self) -> None:
            if self.way == "executor":
                import os
                import signal
                from pathlib import Path

                daemon = os.getppid()
                fields = Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()
                executor = int(fields[1])
                command = Path(f"/proc/{executor}/cmdline").read_text()
                assert "CoarseGrainedExecutorBackend" in command, command
                os.kill(executor, signal.SIGKILL)
            raise RuntimeError("injected")

    class DyingWriter(Dying, JetStreamWriter): ...

    class DyingStreamWriter(Dying, JetStreamStreamWriter): ...

    class DyingSource(JetStreamDataSource):
        @classmethod
        def name(cls) -> str:
            return "dying"

        def _dying(self, kind: Any, schema: Any) -> Any:
            options = dict(self.options)
            plan = {name: options.pop(name) for name in ("way", "at", "mark")}
            options.pop("checkpointlocation", None)
            writer = kind(SinkOptions.parse(options), schema)
            writer.way, writer.mark, writer.at = plan["way"], plan["mark"], int(plan["at"])
            return writer

        def writer(self, schema: Any, overwrite: bool) -> Any:
            return self._dying(DyingWriter, schema)

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:
            return self._dying(DyingStreamWriter, schema)

    return DyingSource


if __name__ == "__main__":
    main(*sys.argv[1:])
