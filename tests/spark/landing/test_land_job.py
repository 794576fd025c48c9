"""What tasks write when they land a range: files by table, each message in one of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import evolve

from js_sync import JetStream, Stream
from tests.spark.pipelines import MAX_DELIVER, SCHEMA
from tests.tuned import Tuned
from twinstream.lake.stream_mark import Mark
from twinstream.lake.task_report import files_by_table
from twinstream.spark.errors import DataLossError, OptionError
from twinstream.spark.landing.land_job import LandJob, ranges_of
from twinstream.spark.landing.resume import start_behind
from twinstream.spark.landing.split_tables import TableNames
from twinstream.spark.landing.staging import Staging, remove_attempts
from twinstream.spark.pipeline import land, summary
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.offsets import Position
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import SequenceRange
from twinstream.spark.source.stream_state import StreamState
from twinstream.testing import NatsServer

Make = Callable[..., Stream]
Fill = Callable[..., None]
NAMES = TableNames(table="orders", dead_letters="dead", prefix="on_")


def job(
    server: NatsServer, stream: Stream, folder: Path, batch: int | None = None, **given: str
) -> LandJob:
    options = {"nats.servers": server.url, "stream": stream.name, **given}
    return LandJob(SourceOptions.parse(options), NAMES, folder, batch)


def test_events_go_to_a_table_of_their_own_and_strangers_to_another(
    server: NatsServer, make_stream: Make, fill: Fill, tmp_path: Path
) -> None:
    stream = make_stream()
    namesake = {"type": "io.example.max_deliver", "x": 1}
    known = {**MAX_DELIVER, "stream_seq": 5, "unheard": True}
    fill(stream, [known, namesake, {"type": "io.example.kind"}, b"broken", {"no": "type"}])
    landing = job(server, stream, tmp_path, batch=7, valueFormat="advisory", includeHeaders="true")
    files = files_by_table([landing.land(SequenceRange(stream.name, 1, 6, "direct"))])
    found = {table: pq.read_table(file.path).to_pylist() for table, (file,) in files.items()}
    assert {table: [row["_seq"] for row in rows] for table, rows in found.items()} == {
        "dead": [4, 5],
        "on_max_deliver": [1],
        "on_other_events": [2, 3],
    }
    (event,) = found["on_max_deliver"]
    assert (event["stream_seq"], json.loads(event["_extra"])) == (5, {"unheard": True})
    assert json.loads(found["on_other_events"][0]["_extra"]) == namesake
    assert [row["_raw"] for row in found["dead"]] == [b"broken", b'{"no": "type"}']
    for table, rows in found.items():
        assert {row["_batch_id"] for row in rows} == {7}
        assert {row["_stream"] for row in rows} == {stream.name}
        assert landing.columns(table).names == list(rows[0])
        assert landing.columns(table).field("_batch_id").type == pa.int64()


def test_a_large_range_becomes_row_groups_in_order(
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
    tuned: Tuned,
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} if at % 10 else b"broken" for at in range(100)])
    tuned("held rows", 2000)
    given = {"valueFormat": "json", "jsonSchema": json.dumps(SCHEMA), "fetchMessages": "10"}
    report = job(server, stream, tmp_path, **given).land(
        SequenceRange(stream.name, 1, 101, "direct")
    )
    files = report.files
    assert (report.start, report.end, report.rows) == (1, 101, 100)
    assert {each.table: (each.rows, each.first, each.last) for each in files} == {
        "orders": (90, 2, 100),
        "dead": (10, 1, 91),
    }
    rows = {each.table: pq.read_table(each.path) for each in files}
    assert rows["orders"].column("id").to_pylist() == [at for at in range(100) if at % 10]
    assert rows["dead"].column("_seq").to_pylist() == list(range(1, 101, 10))
    (orders,) = (each.path for each in files if each.table == "orders")
    assert 2 < pq.read_metadata(orders).num_row_groups < 10


def test_only_files_reported_by_an_attempt_are_accepted(
    server: NatsServer, make_stream: Make, fill: Fill, tmp_path: Path
) -> None:
    stream = make_stream()
    fill(stream, [b"1", b"2", b"3"])
    staging = Staging(tmp_path / "staging", "writer")
    part = SequenceRange(stream.name, 1, 4, "direct")
    landing = job(server, stream, staging.folder)
    lost = landing.land(part).files
    (taken,) = landing.land(part).files
    target = tmp_path / "orders" / "batch_id=0"
    (file,) = staging.put([taken.path], target)
    assert pq.read_table(file).column("seq").to_pylist() == [1, 2, 3]
    assert all(each.path.exists() for each in lost)
    staging.close()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [file.name]
    # What a worker still writes that nobody waits for any more comes to nothing.
    with pytest.raises(FileNotFoundError):
        landing.land(part)


@pytest.mark.parametrize(("name", "neighbour"), [("writer", "other"), ("A[12]", "A1")])
def test_attempts_that_were_killed_are_cleared_but_not_those_of_others(
    tmp_path: Path, name: str, neighbour: str
) -> None:
    killed = Staging(tmp_path / "staging", name)
    other = Staging(tmp_path / "staging", neighbour)
    (killed.folder / "left.parquet").touch()
    remove_attempts(tmp_path / "staging", name)
    mine = Staging(tmp_path / "staging", name)
    assert not killed.folder.exists()
    mine.close()
    assert other.folder.exists()
    other.close()
    assert not (tmp_path / "staging").exists()


def test_what_was_planned_is_compared_with_the_stream(
    server: NatsServer, jet: JetStream, make_stream: Make, fill: Fill
) -> None:
    stream = make_stream()
    fill(stream, [b""] * 9)
    options = SourceOptions.parse({"nats.servers": server.url, "stream": stream.name})
    lenient = SourceOptions.parse(
        {"nats.servers": server.url, "stream": stream.name, "failOnDataLoss": "false"}
    )
    with Leader(options) as leader:
        (state,) = leader.states()
        end = Position(8, state.created, mark=state.mark)
        (part,) = ranges_of(leader, options, 3, end)
        assert (part.start, part.end) == (3, 8)
        assert ranges_of(leader, options, 10, evolve(end, next=10)) == []
        stream.purge(before_seq=5)
        with pytest.raises(DataLossError, match="from 3 to 4"):
            ranges_of(leader, options, 3, end)
        (part,) = ranges_of(leader, lenient, 3, end)
        assert (part.start, part.end) == (5, 8)
        other = evolve(end, created="1970-01-01T00:00:00Z", mark=None)
        with pytest.raises(DataLossError, match="deleted and re-created"):
            ranges_of(leader, options, 5, other)
        assert ranges_of(leader, lenient, 5, other) == []


def test_going_on_behind_a_journal_notices_a_stream_that_was_put_back() -> None:
    def start(end: int, mark: Mark | None = None, *, strict: bool = True) -> int:
        times = {9: "evening"}
        behind = Position(end, "monday", mark=mark)
        return start_behind(state, behind, lambda _, seq: times.get(seq), strict=strict)

    state = StreamState("S", first=3, next=11, created="monday")
    assert (start(11), start(10, Mark(9, "evening"))) == (11, 10)
    with pytest.raises(DataLossError, match="stream S ends at 10 and had sequence 20 before"):
        start(21)
    with pytest.raises(DataLossError, match="stream S has at 9 a message stored at evening"):
        start(10, Mark(9, "noon"))
    assert start(21, strict=False) == start(10, Mark(9, "noon"), strict=False) == 3


@pytest.mark.parametrize("path", ["s3a://lake/x", "hdfs://host/x", "dbfs:/x", Path("s3a://lake/x")])
def test_other_file_systems_are_refused_before_anything_is_written(
    path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    none: Any = None  # no session is needed to refuse it
    with pytest.raises(OptionError, match=r"option 'path': .* is not supported, only folders of"):
        land(none, servers="nats://127.0.0.1:1", stream="S", path=path)
    with pytest.raises(OptionError, match=r"option 'path': .* is not supported, only folders of"):
        summary(none, path)
    assert list(tmp_path.iterdir()) == []
