"""Writes through Spark: what is stored, under failures and repeats, in every mode."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from js_sync import JetStream, Stream
from tests._sync.flow import eventually
from tests.spark.patience import finished
from tests.unhurried import READ_PATIENTLY
from twinstream.models import StreamSource
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

Make = Callable[..., Stream]
Write = Callable[..., None]
ROWS = 12_000
FAILS_AT = 5_500


@pytest.fixture
def write(server: NatsServer) -> Write:
    def run(rows: DataFrame, stream: Stream, mode: str = "append", **options: Any) -> None:
        given = {"nats.servers": server.url, "stream": stream.name, **READ_PATIENTLY, **options}
        rows.write.format("jetstream").options(**given).mode(mode).save()

    return run


def numbered(spark: SparkSession, stream: Stream, rows: int = ROWS) -> DataFrame:
    """Rows with an `id` and 400 bytes more, one subject each, in two partitions."""
    subject = f"concat('{stream.name.lower()}.n.', id) AS subject"
    data = "to_json(struct(id, repeat('x', 400) AS more)) AS data"
    return spark.range(0, rows, 1, 2).selectExpr(subject, data, "id")


def failing_once(rows: DataFrame) -> DataFrame:
    """The same rows; the first attempt of the first partition ends in an error near its end.

    Rows pass through buffers of half a MiB, so many are stored by then and some are not.
    """

    def run(partition: Iterable[Row]) -> Iterator[Row]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        fails = context.partitionId() == 0 and context.attemptNumber() == 0
        for at, row in enumerate(partition):
            if fails and at == FAILS_AT:
                raise RuntimeError("injected")
            yield row

    return rows.sparkSession.createDataFrame(rows.rdd.mapPartitions(run), rows.schema)


def ids_of(read: Callable[..., DataFrame], stream: Stream, subject: str) -> list[int]:
    rows = read(stream.name, subject=f"{stream.name.lower()}.{subject}").collect()
    return sorted(json.loads(row["data"])["id"] for row in rows)


def test_rows_arrive_whole(
    spark: SparkSession, make_stream: Make, write: Write, read: Callable[..., DataFrame]
) -> None:
    stream = make_stream()
    prefix = stream.name.lower()
    rows = spark.sql(
        f"SELECT '{prefix}.a' subject, X'00ff' data, map('K', array('1', 'ü')) headers,"
        f" 'id-1' msg_id, CAST(NULL AS BIGINT) ttl UNION ALL"
        f" SELECT NULL, NULL, NULL, NULL, NULL"
    )
    write(rows, stream, subject=f"{prefix}.rest")
    found = {row["subject"]: row for row in read(stream.name, includeHeaders="true").collect()}
    first, second = found[f"{prefix}.a"], found[f"{prefix}.rest"]
    assert bytes(first["data"]) == b"\x00\xff"
    assert first["headers"]["K"] == ["1", "ü"]
    assert first["headers"]["Nats-Msg-Id"] == ["id-1"]
    assert bytes(second["data"]) == b""
    assert second["headers"]["Nats-Msg-Id"][0].endswith("-0")


def test_what_was_read_can_be_written_on(
    make_stream: Make, fill: Callable[..., None], write: Write, read: Callable[..., DataFrame]
) -> None:
    one = make_stream()
    two = make_stream(subjects=[f"copy.{one.name.lower()}.>"])
    fill(one, [b"x"] * 10)
    write(read(one.name).selectExpr("concat('copy.', subject) subject", "data", "seq"), two)
    assert two.info().state.messages == 10


@pytest.mark.parametrize("mode", ["msgId", "ledger"])
def test_rows_of_messages_from_servers_can_be_copied_with_headers(
    jet: JetStream, make_stream: Make, write: Write, read: Callable[..., DataFrame], mode: str
) -> None:
    """Messages of a stream with sources, and those that a schedule made."""
    plan = make_stream(allow_msg_schedules=True)
    subject = plan.name.lower()
    at = {"Nats-Schedule": "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target": f"{subject}.made"}
    jet.publish(f"{subject}.plan", b"made", headers={**at, "K": "v"})
    fan = make_stream(subjects=None, sources=[StreamSource(name=plan.name)])
    eventually(lambda: list(fan.subjects(f"{subject}.made")))
    target = make_stream(allow_atomic=True)
    to = target.name.lower()
    rows = read(fan.name, subject=f"{subject}.made", includeHeaders="true").drop("subject")
    ledger = {"ledgerSubject": f"{to}.ledger"} if mode == "ledger" else {}
    write(rows, target, idempotence=mode, subject=f"{to}.copy", **ledger)
    copy = target.get_last_message(f"{to}.copy")
    own = {name: value for name, value in copy.headers.items() if not name.startswith("Nats-")}
    assert (copy.data, own) == (b"made", {"K": "v"})
    assert not {"Nats-Stream-Source", "Nats-Scheduler", "Nats-Schedule-Next"} & set(copy.headers)


def test_sql_inserts_into_a_view(
    spark: SparkSession, server: NatsServer, make_stream: Make, read: Callable[..., DataFrame]
) -> None:
    stream = make_stream()
    options = f"nats.servers '{server.url}', stream '{stream.name}'"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW js_copy USING jetstream OPTIONS ({options})")
    subject = f"{stream.name.lower()}.a"
    spark.sql(f"INSERT INTO js_copy (subject, data) VALUES ('{subject}', X'2a')")
    assert [bytes(row["data"]) for row in read(stream.name, subject=subject).collect()] == [b"*"]


@pytest.mark.parametrize(
    ("mode", "config", "exact"),
    [
        ("none", {}, False),
        ("msgId", {}, True),
        ("insert", {}, True),
        ("ledger", {"allow_atomic": True, "duplicate_window": timedelta(milliseconds=100)}, True),
    ],
)
def test_a_task_that_fails_in_the_middle(
    spark: SparkSession,
    make_stream: Make,
    write: Write,
    read: Callable[..., DataFrame],
    mode: str,
    config: dict[str, Any],
    exact: bool,
) -> None:
    stream = make_stream(**config)
    # Small batches and windows, so that some rows are stored when the task fails.
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    rows = failing_once(numbered(spark, stream).drop("id"))
    options = {"maxInFlight": "100"}
    if mode == "ledger":
        options["ledgerSubject"] = f"{stream.name.lower()}.ledger"
    try:
        write(rows, stream, idempotence=mode, **options)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    found = ids_of(read, stream, "n.*")
    assert set(found) == set(range(ROWS))
    assert (len(found) == ROWS) is exact


def test_a_write_with_an_identity_can_be_run_again(
    spark: SparkSession, make_stream: Make, write: Write, read: Callable[..., DataFrame]
) -> None:
    stream = make_stream(allow_atomic=True)
    rows = numbered(spark, stream, 2500).drop("id")
    ledger = {"idempotence": "ledger", "ledgerSubject": f"{stream.name.lower()}.ledger"}
    write(rows, stream, writeId="job-7", **ledger)
    write(rows, stream, writeId="job-7", **ledger)
    assert ids_of(read, stream, "n.*") == list(range(2500))
    entries = read(stream.name, subject=f"{stream.name.lower()}.ledger.job-7.*").collect()
    assert len(entries) == 4, "two partitions of 1250 rows in chunks of 999"
    other = numbered(spark, stream, 2500).selectExpr("subject", "concat(data, ' ') data")
    with pytest.raises(PySparkException, match="are not among the"):
        write(other, stream, writeId="job-7", **ledger)
    assert ids_of(read, stream, "n.*") == list(range(2500))


@pytest.mark.parametrize("mode", ["msgId", "ledger"])
def test_a_repeat_may_have_the_rows_of_its_tasks_in_another_order(
    spark: SparkSession,
    make_stream: Make,
    write: Write,
    read: Callable[..., DataFrame],
    mode: str,
) -> None:
    """Every third row is equal to others, of its own task and of the other one."""
    stream = make_stream(allow_atomic=True)
    subject = stream.name.lower()
    rows = spark.range(0, 5000, 1, 2).selectExpr(
        f"'{subject}.n' subject", "to_json(struct(IF(id % 3 = 0, 0, id) AS id)) data", "id"
    )
    options = {"idempotence": mode, "writeId": "job"}
    if mode == "ledger":
        options["ledgerSubject"] = f"{subject}.ledger"
    write(rows.drop("id"), stream, **options)
    expected = sorted(0 if at % 3 == 0 else at for at in range(5000))
    assert ids_of(read, stream, "n") == expected
    write(rows.sortWithinPartitions(rows["id"].desc()).drop("id"), stream, **options)
    assert ids_of(read, stream, "n") == expected


def test_a_repeat_with_fewer_tasks_fails(
    spark: SparkSession, make_stream: Make, write: Write
) -> None:
    """The rows of the task that is missing are in another one, which cannot know that."""
    stream = make_stream(allow_atomic=True)
    rows = numbered(spark, stream, 100).drop("id")
    options = {"idempotence": "ledger", "ledgerSubject": f"{stream.name.lower()}.ledger"}
    write(rows, stream, writeId="job", **options)
    with pytest.raises(PySparkException, match=r"ledger\.job\.1: an earlier attempt of batch 0"):
        write(rows.coalesce(1), stream, writeId="job", **options)


def test_id_column_identifies_rows_in_any_order(
    spark: SparkSession, make_stream: Make, write: Write
) -> None:
    stream = make_stream()
    rows = numbered(spark, stream, 100)
    write(rows, stream, idColumn="id")
    write(rows.orderBy(rows["id"].desc()), stream, idColumn="id")
    assert stream.info().state.messages == 100


def test_a_streaming_copy_over_restarts(
    spark: SparkSession,
    server: NatsServer,
    make_stream: Make,
    fill: Callable[..., None],
    read: Callable[..., DataFrame],
    tmp_path: Path,
) -> None:
    one = make_stream()
    two = make_stream(subjects=[f"copy.{one.name.lower()}.>"], allow_atomic=True)
    prefix = f"copy.{one.name.lower()}"

    def run(checkpoint: str) -> None:
        options = {"nats.servers": server.url}
        rows = spark.readStream.format("jetstream").options(
            **options, stream=one.name, startingOffsets="earliest", maxMessagesPerTrigger="150"
        )
        writer = (
            rows.load()
            .selectExpr("concat('copy.', subject) subject", "data")
            .writeStream.format("jetstream")
            .options(**options, stream=two.name, idempotence="ledger")
            .option("ledgerSubject", f"{prefix}.ledger")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
        )
        finished(writer.start)

    checkpoint = tmp_path / "checkpoint"
    fill(one, [{"id": at} for at in range(200)])
    run(str(checkpoint))
    # The last batch was stored, but its commit was lost: it is written again after a restart.
    for name in ("1", ".1.crc"):
        (checkpoint / "commits" / name).unlink()
    fill(one, [{"id": at} for at in range(200, 300)])
    run(str(checkpoint))
    rows = read(two.name, subject=f"{prefix}.*").collect()
    assert sorted(json.loads(row["data"])["id"] for row in rows) == list(range(300))


@pytest.mark.parametrize("named", [True, False])
def test_two_writes_within_one_batch_need_names(
    spark: SparkSession,
    server: NatsServer,
    make_stream: Make,
    fill: Callable[..., None],
    write: Write,
    tmp_path: Path,
    named: bool,
) -> None:
    one, two = make_stream(), make_stream()
    fill(one, [{"id": at} for at in range(10)])

    def both(rows: DataFrame, batch: int) -> None:
        for part in (0, 1):
            half = rows.where(f"seq % 2 = {part}").selectExpr("data")
            options = {"writeId": f"part{part}"} if named else {}
            write(half, two, subject=f"{two.name.lower()}.x", **options)

    rows = spark.readStream.format("jetstream").options(
        **{"nats.servers": server.url}, stream=one.name, startingOffsets="earliest"
    )
    writer = (
        rows.load()
        .writeStream.foreachBatch(both)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
    )
    if named:
        finished(writer.start)
    else:
        with pytest.raises(PySparkException, match="'writeId': is required"):
            finished(writer.start)
    assert two.info().state.messages == (10 if named else 0)


@pytest.mark.parametrize(
    ("config", "options", "reason"),
    [
        ({}, {"subject": "s", "mode": "overwrite"}, "'overwrite' is not possible"),
        ({}, {"idempotence": "ledger", "ledgerSubject": "x"}, "needs allow_atomic"),
        ({}, {"minDuplicateWindow": "1h"}, "forgets message IDs after 120 s"),
    ],
)
def test_promises_that_cannot_be_kept_are_refused(
    spark: SparkSession,
    make_stream: Make,
    write: Write,
    config: dict[str, Any],
    options: dict[str, str],
    reason: str,
) -> None:
    stream = make_stream(**config)
    rows = numbered(spark, stream, 2).drop("id")
    with pytest.raises(PySparkException, match=reason):
        write(rows, stream, **options)
    assert stream.info().state.messages == 0


@pytest.mark.parametrize("mode", ["none", "msgId", "insert", "ledger"])
def test_rows_for_no_stream_are_refused_before_they_are_sent(
    spark: SparkSession, make_stream: Make, write: Write, mode: str
) -> None:
    stream = make_stream(allow_atomic=True)
    prefix = stream.name.lower()
    rows = spark.sql(
        f"SELECT concat(IF(id = 7, 'nowhere.', '{prefix}.'), id) subject, '' data FROM range(0, 9)"
    ).coalesce(1)
    options = {"ledgerSubject": f"{prefix}.ledger"} if mode == "ledger" else {}
    with pytest.raises(PySparkException, match=r"'nowhere\.7', which belongs to no stream"):
        write(rows, stream, idempotence=mode, **options)
    assert stream.info().state.messages == 0, "the batch that holds the row was not begun"


def test_rows_may_be_for_several_streams(
    spark: SparkSession, server: NatsServer, make_stream: Make
) -> None:
    one, two = make_stream(), make_stream()
    rows = spark.sql(
        f"SELECT concat(IF(id % 2 = 0, '{one.name.lower()}', '{two.name.lower()}'), '.', id)"
        " subject, '' data FROM range(0, 10)"
    ).coalesce(1)
    writer = rows.write.format("jetstream").option("nats.servers", server.url)
    writer.option("idempotence", "none").mode("append").save()
    assert (one.info().state.messages, two.info().state.messages) == (5, 5)
