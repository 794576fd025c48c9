"""Three nodes whose leaders step down while Spark reads and writes: nothing lost, nothing twice.

`make soak` runs until there were 60 changes of a leader for each test.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import js_sync
from js_sync import JetStream, PublishRequest, Stream
from tests._sync.flow import eventually
from tests.soak import LONGEST, rounds, state
from tests.spark.patience import finished
from tests.spark.unrest import Unrest
from tests.unhurried import connected
from twinstream.models import KeyValueConfig, StreamConfig
from twinstream.testing import NatsCluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NUMBERS = count(1)
CHANGES = 3
ROWS = 8000
KEYS = 3000

Make = Callable[..., Stream]


@pytest.fixture
def jet(cluster: NatsCluster) -> Iterator[JetStream]:
    with connected(cluster.url) as nc:
        yield nc.jetstream()


@pytest.fixture
def make_stream(jet: JetStream) -> Iterator[Make]:
    """Makes streams with three copies, which end with the test."""
    made: list[Stream] = []

    def make(**config: Any) -> Stream:
        name = f"UNREST{next(_NUMBERS)}"
        given = {"subjects": [f"{name.lower()}.>"], "allow_direct": True, **config}
        made.append(jet.create_stream(StreamConfig(name=name, num_replicas=3, **given)))
        return made[-1]

    yield make
    for each in made:
        jet.delete_stream(each.name)


def ids_of(stream: Stream, subject: str) -> list[int]:
    """Return the ids in a stream, ascending, read to an end that its leader confirms."""
    found = stream.read(subjects=[subject])
    ids = sorted(json.loads(message.data)["id"] for message in found)
    assert found.report.is_complete
    return ids


@pytest.mark.parametrize("mode", ["direct", "consumer"])
def test_soak_batches_are_read_whole(
    mode: str, spark: SparkSession, cluster: NatsCluster, jet: JetStream, make_stream: Make
) -> None:
    stream = make_stream()
    publish(jet, stream, 0)
    options = {"nats.servers": cluster.url, "stream": stream.name, "readMode": mode}
    rows = spark.read.format("jetstream").options(**options, fetchMessages="200", minPartitions="2")
    rows = rows.schema("seq bigint")
    assert rows.load().count() == ROWS, "in peace, and so that Spark's workers are there"
    wanted, seed, reads = rounds(CHANGES, 60), random.randrange(2**32), 0
    with Unrest(cluster.url, stream.name, most=wanted, seed=seed) as unrest:
        while not unrest.is_over:
            found = [row["seq"] for row in rows.load().collect()]
            assert sorted(found) == list(range(1, ROWS + 1)), f"seed {seed}"
            reads += 1
    state(f"read by {mode}: {reads} x {ROWS} rows exact over {unrest.changes} changes of leaders")
    assert unrest.changes == wanted


def test_soak_buckets_are_read_whole(
    spark: SparkSession, cluster: NatsCluster, jet: JetStream
) -> None:
    """While keys are written, each of them is one row."""
    name, wanted, seed, reads = "UNREST", rounds(CHANGES, 60), random.randrange(2**32), 0
    jet.create_key_value(KeyValueConfig(bucket=name, num_replicas=3))
    eventually(lambda: write_keys(jet, name) == 0, patience=LONGEST)
    expected = sorted(f"k{at}" for at in range(KEYS))
    options = {"nats.servers": cluster.url, "bucket": name, "fetchMessages": "200"}
    rows = spark.read.format("jetstream").options(**options, minPartitions="2")
    rows = rows.schema("key string")
    assert rows.load().count() == KEYS, "in peace, and so that Spark's workers are there"
    with (
        Unrest(cluster.url, f"KV_{name}", most=wanted, seed=seed) as unrest,
        ThreadPoolExecutor() as pool,
    ):
        while not unrest.is_over:
            writing = pool.submit(write_keys, jet, name)
            found = [row["key"] for row in rows.load().collect()]
            assert sorted(found) == expected, f"seed {seed}"
            writing.result()
            reads += 1
    jet.delete_key_value(name)
    state(f"buckets: {reads} x {KEYS} keys over {unrest.changes} changes of leaders")
    assert unrest.changes == wanted


def write_keys(jet: JetStream, bucket: str) -> int:
    """Write all keys, and return how many were perhaps not stored."""
    subjects = (f"$KV.{bucket}.k{at}" for at in range(KEYS))
    requests = (PublishRequest(subject=each, data=b"x") for each in subjects)
    with jet.publish_many(requests, timeout=20, raise_failures=False) as outcomes:
        return sum(isinstance(each, js_sync.PublishFailure) for each in outcomes)


WRITES = {
    "none": {},
    "msgId": {},
    "insert": {},
    "ledger": {"allow_atomic": True, "duplicate_window": timedelta(milliseconds=100)},
}


@pytest.mark.parametrize("mode", WRITES)
def test_soak_batches_are_written_as_promised(
    mode: str, spark: SparkSession, cluster: NatsCluster, make_stream: Make
) -> None:
    stream = make_stream(**WRITES[mode])
    prefix = stream.name.lower()
    options = {"nats.servers": cluster.url, "stream": stream.name, "idempotence": mode}
    if mode == "ledger":
        options["ledgerSubject"] = f"{prefix}.ledger"
    # Rows that may not be sent again wait for a lost answer, and Spark tries a task four times.
    wanted = rounds(2, 10) if mode == "none" else rounds(CHANGES, 60)
    seed, writes = random.randrange(2**32), 0
    with Unrest(cluster.url, stream.name, most=wanted, seed=seed) as unrest:
        while not unrest.is_over:
            rows = numbered(spark, prefix, writes * ROWS)
            rows.write.format("jetstream").options(**options).mode("append").save()
            writes += 1
    found = ids_of(stream, f"{prefix}.n.*")
    state(
        f"written by {mode}: {writes} x {ROWS} rows, {len(found)} stored, {len(set(found))}"
        f" distinct, over {unrest.changes} changes of leaders"
    )
    assert unrest.changes == wanted
    expected = list(range(writes * ROWS))
    assert sorted(set(found)) == expected, f"seed {seed}"
    assert mode == "none" or found == expected, f"seed {seed}"


def numbered(spark: SparkSession, prefix: str, first: int) -> DataFrame:
    subject = f"concat('{prefix}.n.', id) AS subject"
    return spark.range(first, first + ROWS, 1, 2).selectExpr(subject, "to_json(struct(id)) AS data")


def test_soak_a_streaming_copy_is_exact(
    spark: SparkSession, cluster: NatsCluster, jet: JetStream, make_stream: Make, tmp_path: Path
) -> None:
    """Reads and ledger writes of the same query, with unrest in both streams."""
    one, two = make_stream(), make_stream(allow_atomic=True)
    prefix = two.name.lower()
    copies = 0
    wanted, seed = rounds(CHANGES, 60), random.randrange(2**32)
    with Unrest(cluster.url, one.name, two.name, most=wanted, seed=seed) as unrest:
        while not unrest.is_over or not copies:
            # Published in the unrest as well; the checkpoint stays the same.
            publish(jet, one, copies * ROWS)
            copies += 1
            copy(spark, cluster.url, one.name, two.name, tmp_path)
    found = ids_of(two, f"{prefix}.copy")
    state(
        f"streaming copy by ledger: {copies} x {ROWS} rows, {len(found)} stored,"
        f" {len(set(found))} distinct, over {unrest.changes} changes of leaders"
    )
    assert found == list(range(copies * ROWS)), f"seed {seed}"


def publish(jet: JetStream, stream: Stream, first: int) -> None:
    """Publish rows, each once whatever leaders do: some are taken only by the next window."""
    subject = f"{stream.name.lower()}.a"
    requests = [
        PublishRequest(subject=subject, data=b'{"id": %d}' % at, msg_id=str(at))
        for at in range(first, first + ROWS)
    ]
    for _ in range(10):
        with jet.publish_many(requests, retries=15, retry_wait=1, timeout=60) as outcomes:
            failures = [each for each in outcomes if isinstance(each, js_sync.PublishFailure)]
        requests = [each.request for each in failures]
        if not failures:
            return
    raise failures[0].error


def copy(spark: SparkSession, servers: str, one: str, two: str, folder: Path) -> None:
    options = {"nats.servers": servers}
    rows = spark.readStream.format("jetstream").options(
        **options, stream=one, startingOffsets="earliest", maxMessagesPerTrigger=str(ROWS // 2)
    )
    writer = (
        rows.option("fetchMessages", "500")
        .load()
        .selectExpr(f"'{two.lower()}.copy' subject", "data")
        .writeStream.format("jetstream")
        .options(**options, stream=two, idempotence="ledger")
        .option("ledgerSubject", f"{two.lower()}.ledger")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
    )
    finished(writer.start)
