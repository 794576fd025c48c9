"""A batch that is written again when the stream has forgotten the message ids of its first time."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

from js_sync import JetStream, Stream
from tests._sync.flow import eventually
from tests.soak import LONGEST
from tests.spark.patience import finished
from tests.unhurried import READ_PATIENTLY
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[..., Stream]
ROWS = 2500
SOON = timedelta(milliseconds=100)


@pytest.fixture
def forgotten(jet: JetStream) -> Callable[[Stream], None]:
    """Returns when the stream has forgotten all message ids that it knows now."""

    def wait(stream: Stream) -> None:
        subject = f"{stream.name.lower()}.probe"
        jet.publish(subject, msg_id="probe")
        # The probe is younger than the others, and a repeat does not make it so again.
        eventually(lambda: not jet.publish(subject, msg_id="probe").duplicate, patience=LONGEST)

    return wait


@pytest.fixture
def write(spark: SparkSession, server: NatsServer) -> Callable[..., None]:
    def run(stream: Stream, data: str = "to_json(struct(id))", **options: str) -> None:
        subject = f"concat('{stream.name.lower()}.n.', id) subject"
        rows = spark.range(0, ROWS, 1, 2).selectExpr(subject, f"{data} data")
        given = {"nats.servers": server.url, "stream": stream.name, "writeId": "job"}
        given |= {**READ_PATIENTLY, **options}
        rows.write.format("jetstream").options(**given).mode("append").save()

    return run


def ids_of(stream: Stream, subject: str = "n.*") -> list[int]:
    found = stream.read(subjects=f"{stream.name.lower()}.{subject}")
    return sorted(json.loads(each.data)["id"] for each in found)


def test_message_ids_do_not_outlive_their_window(
    make_stream: Make, write: Callable[..., None], forgotten: Callable[[Stream], None]
) -> None:
    stream = make_stream(duplicate_window=SOON)
    with pytest.raises(PySparkException, match=r"forgets message IDs after 0\.1 s"):
        write(stream)
    assert ids_of(stream) == [], "refused before anything was sent"
    write(stream, minDuplicateWindow="100ms")
    forgotten(stream)
    write(stream, minDuplicateWindow="100ms")
    assert ids_of(stream) == sorted([*range(ROWS), *range(ROWS)]), "as the refusal says"


def test_inserts_are_refused_for_as_long_as_the_messages_are_there(
    make_stream: Make, write: Callable[..., None], forgotten: Callable[[Stream], None]
) -> None:
    stream = make_stream(duplicate_window=SOON)
    write(stream, idempotence="insert")
    forgotten(stream)
    write(stream, idempotence="insert")
    assert ids_of(stream) == list(range(ROWS))


def test_ledger_identifies_rows_by_their_hash(
    make_stream: Make, write: Callable[..., None], forgotten: Callable[[Stream], None]
) -> None:
    stream = make_stream(duplicate_window=SOON, allow_atomic=True)
    ledger = {"idempotence": "ledger", "ledgerSubject": f"{stream.name.lower()}.ledger"}
    write(stream, **ledger)
    forgotten(stream)
    write(stream, **ledger)
    assert ids_of(stream) == list(range(ROWS))
    with pytest.raises(PySparkException, match="are not among the"):
        write(stream, "to_json(struct(id, rand() AS other))", **ledger)
    assert ids_of(stream) == list(range(ROWS))


def test_a_streaming_batch_is_replayed_from_its_checkpoint(
    spark: SparkSession,
    server: NatsServer,
    make_stream: Make,
    fill: Callable[..., None],
    forgotten: Callable[[Stream], None],
    tmp_path: Path,
) -> None:
    one, two = make_stream(), make_stream(duplicate_window=SOON, allow_atomic=True)
    fill(one, [{"id": at} for at in range(300)])
    prefix = two.name.lower()

    def run(data: str = "data") -> None:
        options: dict[str, Any] = {"nats.servers": server.url}
        rows = spark.readStream.format("jetstream").options(**options, stream=one.name)
        writer = (
            rows.option("startingOffsets", "earliest")
            .load()
            .selectExpr(f"'{prefix}.n.copy' subject", data)
            .writeStream.format("jetstream")
            .options(**options, stream=two.name, idempotence="ledger")
            .option("ledgerSubject", f"{prefix}.ledger")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
        )
        finished(writer.start)

    def lose_the_commit() -> None:
        for name in ("0", ".0.crc"):
            (tmp_path / "checkpoint" / "commits" / name).unlink()

    run()
    lose_the_commit()
    forgotten(two)
    run()
    assert ids_of(two) == list(range(300))
    lose_the_commit()
    with pytest.raises(StreamingQueryException, match="are not among the"):
        run("concat(cast(data AS string), ' ') data")
    assert ids_of(two) == list(range(300))
