"""Tasks that die before, while and after they publish, in every mode of the sink.

Each write has two tasks, and each task dies twice: one before it publishes, the other one in the
middle, then both when all their rows are stored and Spark does not know it yet. The third attempt
ends well, and one is left for what a busy machine may do to a task. They die by an error or by
`kill -9` of their Python worker. Each attempt has its rows in another order, as behind a shuffle.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from js_sync import Stream
from tests.soak import rounds, state
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 6000
SOON = timedelta(milliseconds=100)

MODES: dict[str, dict[str, Any]] = {
    "none": {},
    "msgId": {"duplicate_window": timedelta(hours=1)},
    "insert": {"duplicate_window": SOON},
    "ledger": {"duplicate_window": SOON, "allow_atomic": True},
}


@pytest.fixture
def write(spark: SparkSession, server: NatsServer) -> Callable[..., None]:
    """Writes numbered rows in two tasks, which die as the plan of their attempts says."""
    spark.dataSource.register(dying_source())

    def run(stream: Stream, mode: str, plan: list[list[str]], first: int) -> None:
        prefix = stream.name.lower()
        subject = f"concat('{prefix}.n.', id) AS subject"
        rows = spark.range(first, first + ROWS, 1, 2).selectExpr(
            subject, "to_json(struct(id)) AS data"
        )
        options = {"nats.servers": server.url, "stream": stream.name, "idempotence": mode}
        if mode == "ledger":
            options["ledgerSubject"] = f"{prefix}.ledger"
        writer = rows.write.format("dying").options(**options, maxInFlight="100")
        writer.option("plan", json.dumps(plan)).mode("append").save()

    return run


@pytest.mark.parametrize("mode", MODES)
def test_soak_tasks_that_die_at_any_moment(
    mode: str,
    spark: SparkSession,
    make_stream: Callable[..., Stream],
    write: Callable[..., None],
    read: Callable[..., DataFrame],
) -> None:
    stream = make_stream(**MODES[mode])
    # Small batches and windows, so that most rows before the middle are stored in the middle.
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    seed = random.randrange(2**32)
    dice, writes = random.Random(seed), rounds(1, 5)
    try:
        for number in range(writes):
            write(stream, mode, planned(dice), number * ROWS)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    rows = read(stream.name, subject=f"{stream.name.lower()}.n.*").collect()
    found = sorted(json.loads(row["data"])["id"] for row in rows)
    expected = list(range(writes * ROWS))
    state(
        f"{mode}: {writes} writes of {ROWS} rows, {writes * 4} tasks died: {len(found)} stored,"
        f" {len(set(found))} distinct (seed {seed})"
    )
    if mode == "none":
        assert sorted(set(found)) == expected
        # The second attempt of each task stores all of its rows, and so does the third.
        assert len(found) >= 2 * len(expected), "stored once only: then nothing was shown"
    else:
        assert found == expected


def planned(dice: random.Random) -> list[list[str]]:
    """Return how the attempts of both tasks end: when, and by what."""
    first, second, third, fourth = dice.sample(["error", "kill"] * 2, 4)
    middle = dice.randrange(1000, ROWS // 2 - 500)
    return [[f"before {first}", f"after {second}"], [f"at {middle} {third}", f"after {fourth}"]]


def dying_source() -> type:
    """Return the source under the name `dying`, whose writer dies by plan.

    Made in a function, so that it goes to the workers by value: they do not have this module.
    """
    from twinstream.spark.data_source import JetStreamDataSource
    from twinstream.spark.sink.options import SinkOptions
    from twinstream.spark.sink.sink import JetStreamWriter

    class DyingWriter(JetStreamWriter):
        def __init__(self, plan: list[list[str]], *arguments: Any) -> None:
            super().__init__(*arguments)
            self._plan = plan

        def write(self, iterator: Any) -> Any:
            from pyspark import TaskContext

            context = TaskContext.get()
            assert context is not None
            ends, attempt = self._plan[context.partitionId()], context.attemptNumber()
            moment, *at, way = (ends[attempt] if attempt < len(ends) else "never -").split()
            if moment == "before":
                self.die(way)
            iterator = self.mixed(iterator, attempt)
            message = super().write(self.until(iterator, int(at[0]), way) if at else iterator)
            if moment == "after":
                self.die(way)
            return message

        def mixed(self, iterator: Any, attempt: int) -> Any:
            import pyarrow as pa

            table = pa.Table.from_batches(iterator)
            order = random.Random(attempt).sample(range(table.num_rows), table.num_rows)
            yield from table.take(pa.array(order)).to_batches(100)

        def until(self, iterator: Any, at: int, way: str) -> Any:
            rows = 0
            for batch in iterator:
                if rows >= at:
                    self.die(way)
                rows += batch.num_rows
                yield batch

        def die(self, way: str) -> None:
            if way == "kill":
                import os
                import signal

                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("injected")

    class Dying(JetStreamDataSource):
        @classmethod
        def name(cls) -> str:
            return "dying"

        def writer(self, schema: Any, overwrite: bool) -> Any:
            options = dict(self.options)
            plan = json.loads(options.pop("plan"))
            return DyingWriter(plan, SinkOptions.parse(options), schema)

    return Dying
