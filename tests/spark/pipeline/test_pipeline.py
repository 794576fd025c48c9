"""Landing: every message once in a table or among the dead letters, whatever interrupts it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from js_sync import JetStream, Stream
from tests.hooked import hooked
from twinstream.lake.journal import Journal
from twinstream.lake.local_store import LocalStore
from twinstream.spark.errors import (
    DataLossError,
    JournalError,
    OptionError,
    PipelineBusy,
    SchemaError,
)
from twinstream.spark.landing.lock import locked
from twinstream.spark.pipeline import LandReport, land, summary
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[..., Stream]
Fill = Callable[..., None]
SCHEMA = json.dumps(
    {
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"type": "integer"},
            "at": {"type": "string", "format": "date-time"},
        },
    }
)


def messages_of(lake: Path, stream: Stream, batch: int) -> int:
    """Return how many messages a batch has, by the journal."""
    entry = Journal(LocalStore(lake / "journal"), stream.name).entry(batch)
    assert entry is not None
    return entry.messages


@pytest.fixture
def lands(spark: SparkSession, server: NatsServer, tmp_path: Path) -> Callable[..., LandReport]:
    def run(stream: Stream, **options: Any) -> LandReport:
        return land(
            spark, servers=server.url, stream=stream.name, path=str(tmp_path / "lake"), **options
        )

    return run


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Rows of a table as a reader outside of Spark sees them."""
    return pq.read_table(path).to_pylist()


def test_batches_continue_where_the_last_ended(
    lands: Callable[..., LandReport], make_stream: Make, fill: Fill, tmp_path: Path
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} for at in range(100)])
    stream.delete_message(50)
    first = lands(stream, options={"minPartitions": "3"})
    assert (first.batch_id, first.start, first.end) == (0, 1, 101)
    assert (first.messages, first.rows, first.dead_letters) == (99, 99, 0)
    assert (first.distinct_seqs, first.first_seq, first.last_seq) == (99, 1, 100)
    assert first.files == 3
    nothing = lands(stream)
    assert (nothing.batch_id, nothing.messages, nothing.files) == (-1, 0, 0)
    fill(stream, [{"id": 100}])
    second = lands(stream)
    assert (second.batch_id, second.start, second.end, second.rows) == (1, 101, 102, 1)
    table = tmp_path / "lake" / stream.name.lower()
    rows = rows_of(table)
    assert sorted(row["seq"] for row in rows) == [s for s in range(1, 102) if s != 50]
    assert {row["batch_id"] for row in rows} == {0, 1}
    assert not (tmp_path / "lake" / "_staging").exists()
    assert messages_of(tmp_path / "lake", stream, 1) == second.messages


def test_typed_rows_and_dead_letters(
    lands: Callable[..., LandReport], make_stream: Make, fill: Fill, tmp_path: Path
) -> None:
    stream = make_stream()
    payloads: list[object] = [{"id": at, "at": "0001-01-01T00:00:00Z"} for at in range(20)]
    payloads[7] = b"broken"
    payloads[9] = {"id": "nine"}
    fill(stream, payloads)
    report = lands(stream, value_format="json", json_schema=SCHEMA, table="orders")
    assert (report.messages, report.rows, report.dead_letters) == (20, 18, 2)
    rows = rows_of(tmp_path / "lake" / "orders")
    assert sorted(row["id"] for row in rows) == [at for at in range(20) if at not in {7, 9}]
    assert {row["at"].year for row in rows} == {1}
    letters = rows_of(tmp_path / "lake" / "dead_letters")
    assert {row["source"] for row in letters} == {stream.name}
    found = {row["_seq"]: (row["_error"], row["_raw"]) for row in letters}
    assert found == {
        8: ("not JSON: Expecting value at line 1, column 1", b"broken"),
        10: ("id: expected an integer, got text 'nine'", b'{"id": "nine"}'),
    }


def test_events_become_one_table_a_kind(
    lands: Callable[..., LandReport], jet: JetStream, make_stream: Make, fill: Fill, tmp_path: Path
) -> None:
    stream = make_stream()
    event = {"type": "io.nats.jetstream.advisory.v1.max_deliver", "id": "i"}
    event |= {"timestamp": "2024-01-01T00:00:00Z", "stream": "S", "consumer": "C"}
    good: list[object] = [{**event, "stream_seq": at, "deliveries": 3} for at in (1, 2)]
    unknown = {"type": "io.nats.jetstream.advisory.v1.unheard_of", "x": 1}
    fill(stream, [*good, unknown, {**event, "stream_seq": "x", "deliveries": 1}])
    report = lands(stream, value_format="advisory")
    assert {each.name: each.rows for each in report.tables} == {
        "max_deliver": 2,
        "other_events": 1,
        f"dead_letters/source={stream.name}": 1,
    }
    assert (report.messages, report.rows, report.dead_letters) == (4, 3, 1)
    rows = rows_of(tmp_path / "lake" / "max_deliver")
    assert [(row["stream_seq"], row["deliveries"], row["consumer"]) for row in rows] == [
        (1, 3, "C"),
        (2, 3, "C"),
    ]
    other = rows_of(tmp_path / "lake" / "other_events")[0]
    assert (other["kind"], json.loads(other["_extra"])) == ("unheard_of", unknown)


def test_an_interrupted_batch_is_finished_with_its_own_bounds(
    lands: Callable[..., LandReport],
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} if at else b"broken" for at in range(10)])
    typed = {"value_format": "json", "json_schema": SCHEMA}

    def die(_: object) -> None:
        raise KeyboardInterrupt

    with hooked("journal: before landed", die), pytest.raises(KeyboardInterrupt):
        lands(stream, **typed)
    left = tmp_path / "lake" / "_staging" / f"{stream.name}.killed"
    left.mkdir(parents=True)
    fill(stream, [{"id": 10}])
    resumed = lands(stream, **typed)
    assert not left.exists()
    assert (resumed.batch_id, resumed.end, resumed.messages) == (0, 11, 10)
    assert resumed.dead_letters == 1
    last = lands(stream, **typed)
    assert (last.batch_id, last.start, last.end) == (1, 11, 12)
    rows = rows_of(tmp_path / "lake" / stream.name.lower())
    assert sorted(row["_seq"] for row in rows) == list(range(2, 12))


def test_rows_count_after_their_messages_were_removed(
    lands: Callable[..., LandReport],
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} if at else b"broken" for at in range(10)])
    typed = {"value_format": "json", "json_schema": SCHEMA, "options": {"failOnDataLoss": "false"}}

    def die(_: object) -> None:
        stream.purge()
        raise KeyboardInterrupt

    with hooked("journal: before landed", die), pytest.raises(KeyboardInterrupt):
        lands(stream, **typed)
    resumed = lands(stream, **typed)
    assert (resumed.batch_id, resumed.messages, resumed.rows, resumed.dead_letters) == (0, 10, 9, 1)
    assert [table.rows for table in resumed.tables] == [9, 1]
    assert messages_of(tmp_path / "lake", stream, 0) == resumed.messages


def test_a_folder_of_the_earlier_layout_is_refused(
    lands: Callable[..., LandReport], make_stream: Make, tmp_path: Path
) -> None:
    stream = make_stream()
    file = tmp_path / "lake" / "journal" / stream.name / "batch_id=0.json"
    file.parent.mkdir(parents=True)
    file.touch()
    with pytest.raises(JournalError, match=r"batch_id=0\.json is of an earlier layout"):
        lands(stream)


def test_two_streams_do_not_land_into_one_table(
    lands: Callable[..., LandReport], make_stream: Make, fill: Fill, tmp_path: Path
) -> None:
    one, other = make_stream(), make_stream()
    fill(one, [{"id": 1}])
    fill(other, [{"id": 1}, {"id": 2}])
    assert lands(one, table="orders").messages == 1
    with pytest.raises(
        JournalError, match=f"stream {one.name} lands into the table orders; give another table"
    ):
        lands(other, table="orders")
    assert lands(other, table="others").messages == 2
    assert len(rows_of(tmp_path / "lake" / "orders")) == 1

    advisory = {"value_format": "advisory"}
    events = [make_stream(), make_stream()]
    for stream in events:
        fill(stream, [{"type": "com.example.strange"}])
    assert lands(events[0], **advisory).rows == 1
    with pytest.raises(JournalError, match=f"stream {events[0].name} lands into the table"):
        lands(events[1], **advisory)


def test_what_another_filter_passed_over_is_not_forgotten(
    lands: Callable[..., LandReport], make_stream: Make, fill: Fill
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} for at in range(6)])
    a, c = f"{stream.name.lower()}.a", f"{stream.name.lower()}.c"
    assert lands(stream, subject=f"{a},{c}").messages == 4
    assert lands(stream, subject=f"{c},{a}").messages == 0
    with pytest.raises(
        OptionError, match=r"was created with the filter .*c', now it is '>'; messages that"
    ):
        lands(stream)
    fill(stream, [{"id": 6}])
    assert lands(stream, options={"failOnDataLoss": "false"}).messages == 1


def test_a_stream_is_landed_by_one_at_a_time(
    lands: Callable[..., LandReport], make_stream: Make, fill: Fill, tmp_path: Path
) -> None:
    stream = make_stream()
    fill(stream, [{"id": 1}])
    lake = tmp_path / "lake"
    with locked(lake / "journal" / stream.name / "_lock", lake, "a landing"):
        with pytest.raises(PipelineBusy, match="is in use by 'a landing'"):
            lands(stream)
    assert lands(stream).messages == 1


def test_recreated_stream_is_noticed(
    lands: Callable[..., LandReport], jet: JetStream, make_stream: Make, fill: Fill
) -> None:
    stream = make_stream()
    fill(stream, [b"1", b"2", b"3"])
    lands(stream)
    jet.delete_stream(stream.name)
    again = jet.create_stream(stream.cached_info.config)
    fill(again, [b"other"])
    with pytest.raises(DataLossError, match="deleted and re-created"):
        lands(again)
    report = lands(again, options={"failOnDataLoss": "false"})
    assert (report.start, report.messages) == (1, 1)


def test_messages_that_went_before_they_were_landed_are_noticed(
    lands: Callable[..., LandReport], make_stream: Make, fill: Fill
) -> None:
    stream = make_stream()
    fill(stream, [b""] * 5)
    lands(stream)
    fill(stream, [b""] * 5)
    stream.purge(before_seq=8)
    with pytest.raises(
        DataLossError, match="sequences 6 to 7 were removed before they were landed"
    ):
        lands(stream)
    assert lands(stream, options={"failOnDataLoss": "false"}).first_seq == 8


def test_messages_that_were_replaced_before_they_were_landed_are_no_loss(
    lands: Callable[..., LandReport], make_stream: Make, fill: Fill
) -> None:
    stream = make_stream(max_msgs_per_subject=1, max_age=timedelta(hours=1))
    fill(stream, [b""] * 3)
    assert lands(stream).messages == 3
    fill(stream, [b""] * 6)
    report = lands(stream)
    assert (report.start, report.messages) == (7, 3)


def test_summary_counts_by_subject(
    lands: Callable[..., LandReport],
    spark: SparkSession,
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} for at in range(5)])
    lands(stream, value_format="json", json_schema=SCHEMA)
    prefix = stream.name.lower()
    found = summary(spark, str(tmp_path / "lake" / prefix))
    assert [(each.subject, each.rows, each.first_seq, each.last_seq) for each in found] == [
        (f"{prefix}.a", 2, 1, 4),
        (f"{prefix}.b", 2, 2, 5),
        (f"{prefix}.c", 1, 3, 3),
    ]
    assert found[0].first_time < found[0].last_time


def test_members_do_not_take_the_name_that_folders_have(
    lands: Callable[..., LandReport], make_stream: Make
) -> None:
    schema = json.dumps({"type": "object", "properties": {"batch_id": {"type": "integer"}}})
    with pytest.raises(SchemaError, match="a member 'batch_id', which is also a column"):
        lands(make_stream(), value_format="json", json_schema=schema)


@pytest.mark.parametrize("start", ["latest", "{%s: -1}"])
def test_a_landing_does_not_begin_at_the_end_again_and_again(
    lands: Callable[..., LandReport], make_stream: Make, start: str
) -> None:
    stream = make_stream()
    options = {"startingOffsets": start.replace("%s", f'"{stream.name}"')}
    with pytest.raises(OptionError, match="'startingOffsets': may not be latest"):
        lands(stream, options=options)


def test_a_first_landing_begins_within_the_stream(
    lands: Callable[..., LandReport], make_stream: Make, fill: Fill
) -> None:
    """What is refused leaves no batch behind that every later landing would have to finish."""
    stream = make_stream()
    fill(stream, [{"id": at} for at in range(10)])
    stream.purge(before_seq=6)
    with pytest.raises(DataLossError, match="is sequence 2, but the first sequence left is 6"):
        lands(stream, options={"startingOffsets": json.dumps({stream.name: 2})})
    with pytest.raises(OptionError, match="is sequence 12, but the stream ends at 10"):
        lands(stream, options={"startingOffsets": json.dumps({stream.name: 12})})
    report = lands(stream)
    assert (report.batch_id, report.start, report.messages) == (0, 6, 5)


def test_tables_keep_to_their_folder(lands: Callable[..., LandReport], make_stream: Make) -> None:
    for name in ("journal", "dead_letters", "../x", "_hidden", "a=b"):
        with pytest.raises(OptionError, match="cannot be a table's folder"):
            lands(make_stream(), table=name)


def test_deleted_keys_are_rows_and_no_dead_letters(
    lands: Callable[..., LandReport],
    jet: JetStream,
    make_stream: Make,
    tmp_path: Path,
) -> None:
    stream = make_stream(max_msgs_per_subject=1)
    subject = f"{stream.name.lower()}.key"
    typed = {"value_format": "json", "json_schema": SCHEMA}
    jet.publish(subject, b'{"id": 1}')
    first = lands(stream, **typed)
    jet.publish(subject, b"", headers={"KV-Operation": "DEL"})
    second = lands(stream, **typed)
    jet.publish(subject, b"", headers={"A": "b"})
    third = lands(stream, **typed)
    assert [each.dead_letters for each in (first, second, third)] == [0, 0, 1]
    rows = rows_of(tmp_path / "lake" / stream.name.lower())
    found = [(row["_seq"], row["id"], row["_operation"]) for row in rows]
    assert found == [(1, 1, None), (2, None, "DEL")]
    (letter,) = rows_of(tmp_path / "lake" / "dead_letters")
    assert letter["_seq"] == 3
    assert "_operation" not in letter


def test_tasks_follow_the_session_not_the_machine_of_the_driver(
    lands: Callable[..., LandReport],
    make_stream: Make,
    fill: Fill,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert spark.sparkContext.defaultParallelism == 2
    stream = make_stream(storage="memory")
    fill(stream, [b""] * 40_001)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    report = lands(stream)
    assert (report.messages, report.files) == (40_001, 2)
