"""Writes in threads that the program began: Spark knows no session there, nor the batch."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import inheritable_thread_target
from pyspark.errors import PySparkException

from js_sync import Stream
from tests.spark.patience import finished
from twinstream.spark import local_session, register
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def in_thread(work: Callable[[], object]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def _not_at_all(work: Callable[[str], None]) -> Callable[[str], None]:
    return work


@pytest.mark.parametrize("prepare", [register, lambda _: local_session()])
def test_thread_can_write_after_registering_the_session(
    prepare: Callable[[SparkSession], object],
    spark: SparkSession,
    server: NatsServer,
    make_stream: Callable[..., Stream],
) -> None:
    stream = make_stream()
    rows = spark.range(3).selectExpr(f"'{stream.name.lower()}.x' AS subject", "'x' AS data")
    writer = rows.write.format("jetstream").options(
        **{"nats.servers": server.url, "stream": stream.name, "idempotence": "none"}
    )

    def write() -> None:
        prepare(spark)
        writer.mode("append").save()

    in_thread(write)
    assert stream.info().state.messages == 3


@pytest.mark.parametrize("wrapped", [True, False])
def test_wrapped_threads_of_a_batch_know_it(
    wrapped: bool,
    spark: SparkSession,
    server: NatsServer,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
    tmp_path: Path,
) -> None:
    source, target = make_stream(), make_stream(duplicate_window=timedelta(minutes=5))
    fill(source, range(6))
    servers = {"nats.servers": server.url}

    def both(rows: DataFrame, _batch: int) -> None:
        found = rows.selectExpr(f"'{target.name.lower()}.x' AS subject", "data")

        def write(name: str) -> None:
            register(rows.sparkSession)
            options: dict[str, Any] = {**servers, "stream": target.name, "writeId": name}
            found.write.format("jetstream").options(**options).mode("append").save()

        wrap = inheritable_thread_target(rows.sparkSession) if wrapped else _not_at_all
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(wrap(write), ["a", "b"]))

    writer = (
        spark.readStream.format("jetstream")
        .options(**servers, stream=source.name)
        .options(startingOffsets="earliest", maxMessagesPerTrigger="3")
        .load()
        .writeStream.foreachBatch(both)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
    )
    if wrapped:
        finished(writer.start)
    else:
        with pytest.raises(PySparkException, match="or in a thread of your own"):
            finished(writer.start)
    assert target.info().state.messages == (12 if wrapped else 0)
