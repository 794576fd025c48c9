"""What a pipeline keeps beside its tables: journal, checkpoint, identity, lock. No Spark runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from tests.huge import huge
from twinstream.lake.stream_mark import Mark
from twinstream.spark.errors import (
    CheckpointError,
    DataLossError,
    JournalError,
    OptionError,
    PipelineBusy,
    SparkSourceError,
)
from twinstream.spark.landing.batch_folders import batch_folders
from twinstream.spark.landing.lock import locked
from twinstream.spark.pipeline.land_batch import BatchLander
from twinstream.spark.pipeline.run_errors import is_lasting, sentence
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.pipeline.settings.folders import Folders, SourceFolder
from twinstream.spark.pipeline.state.batch_log import BatchEntry, BatchLog, TableEntry
from twinstream.spark.pipeline.state.checkpoint import Bounds, Checkpoint
from twinstream.spark.pipeline.state.identity import Identity
from twinstream.spark.pipeline.tables import swap
from twinstream.spark.pipeline.tables.parquet_sink import ParquetSink
from twinstream.spark.pipeline.tables.table_lock import TableLock
from twinstream.spark.source.offsets import Position
from twinstream.spark.source.stream_state import StreamState

SOURCE = SourceConfig(name="orders", stream="ORDERS", table="orders")
STATE = StreamState("ORDERS", first=5, next=21, created="today")


def entry(number: int, start: int = 1, end: int = 11) -> BatchEntry:
    return BatchEntry(
        batch=number, start=start, end=end, created="today", query_id="q", began="2026-01-01T00:00",
        messages=10, tables={"orders": TableEntry(rows=10, files=1, bytes=99)}, mark=Mark(end, "t"),
    )  # fmt: skip


def test_journal_keeps_the_last_entry_of_each_batch(tmp_path: Path) -> None:
    log = BatchLog(tmp_path / "source" / "journal.jsonl")
    assert (log.last(), log.known(0), log.entries()) == (None, None, {})
    log.begin(entry(0))
    assert (log.last(), log.known(0)) == (None, entry(0))
    log.landed(entry(0))
    log.landed(entry(1, 11, 21))
    log.replayed(evolve(entry(0), replays=1, messages=9))
    log.begin(entry(2, 21, 31))
    assert log.last() == entry(1, 11, 21)
    assert [each.messages for each in log.entries().values()] == [9, 10]
    assert log.known(2) == entry(2, 21, 31)


def test_a_line_that_a_crash_cut_short_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    log = BatchLog(file)
    log.landed(entry(0))
    with file.open("ab") as out:
        out.write(b'{"kind": "landed", "bat')
    assert log.last() == entry(0)
    log.landed(entry(1, 11, 21))
    assert list(log.entries()) == [0, 1]
    file.write_bytes(b"nonsense\n" + file.read_bytes())
    with pytest.raises(JournalError, match="has a line that cannot be read"):
        log.entries()


@pytest.mark.parametrize(
    "table",
    ["../other", "/etc", "..", ".", "", "a/b", "_dead_letters/..", "_staging", "a/../../b", "a\0"],
)
def test_a_table_of_a_journal_is_a_folder_of_the_pipeline(tmp_path: Path, table: str) -> None:
    log = BatchLog(tmp_path / "journal.jsonl")
    tables = {table: TableEntry(rows=1, files=1, bytes=1)}
    log.landed(evolve(entry(0), tables=tables))
    with pytest.raises(JournalError, match="is not the name of a table"):
        log.entries()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch", "../x"), ("batch", -1), ("batch", True), ("batch", 2**64), ("start", 1.5),
        ("end", None), ("seconds", float("nan")), ("seconds", 10**400), ("created", 7),
        ("tables", []), ("mark", {"seq": "x", "time": "t"}), ("filter", 7), ("more", 1),
    ],
)  # fmt: skip
def test_members_of_another_kind_are_refused(tmp_path: Path, name: str, value: object) -> None:
    file = tmp_path / "journal.jsonl"
    BatchLog(file).landed(entry(0))
    members = json.loads(file.read_text()) | {name: value}
    file.write_text(json.dumps(members) + "\n")
    with pytest.raises(JournalError, match="has a line that cannot be read"):
        BatchLog(file).last()


def test_the_end_of_a_long_journal_is_enough(tmp_path: Path) -> None:
    log = BatchLog(tmp_path / "journal.jsonl")
    log.landed(entry(700))
    for number in range(600):
        log.replayed(entry(number))
    assert log.last() == entry(700)
    assert log.known(700) == entry(700)


def write_checkpoint(folder: Path, *ends: int, committed: int) -> Checkpoint:
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    (folder / "metadata").write_text('{"id": "q"}')
    for number, end in enumerate(ends):
        place = {"next": end, "created": "today", "filter": "", "parts": 1}
        offset = {"v": 1, "streams": {"ORDERS": place}}
        (folder / "offsets" / str(number)).write_text(f"v1\n{{}}\n{json.dumps(offset)}")
        (folder / "offsets" / f".{number}.crc").write_bytes(b"\xe0")
    for number in range(committed):
        (folder / "commits" / str(number)).write_text("v1\n{}")
    return Checkpoint(folder, "ORDERS")


def test_the_bounds_of_batches_come_from_the_checkpoint(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "c", 11, 21, committed=1)
    assert (checkpoint.query_id(), checkpoint.last_begun(), checkpoint.last_committed()) == (
        "q", 1, 0,
    )  # fmt: skip
    assert checkpoint.bounds(0, 3) == Bounds(3, Position(11, "today"))
    assert checkpoint.bounds(1, 3) == Bounds(11, Position(21, "today"))
    with pytest.raises(CheckpointError, match=r"offsets/2 cannot be read"):
        checkpoint.bounds(2, 3)
    for name in ("offsets/1", "metadata"):
        huge(tmp_path / "c" / name)
    with pytest.raises(CheckpointError, match="more than 64 MiB"):
        checkpoint.bounds(1, 3)
    with pytest.raises(CheckpointError, match="more than 64 MiB"):
        checkpoint.query_id()
    (tmp_path / "c" / "offsets" / "1").write_text("v9\n{}\n{}")
    with pytest.raises(CheckpointError, match="does not support format 'v9'"):
        checkpoint.bounds(1, 3)
    (tmp_path / "c" / "offsets" / "\u00b2").touch()
    assert checkpoint.last_begun() == 1
    none = Checkpoint(tmp_path / "none", "ORDERS")
    assert (none.query_id(), none.last_begun(), none.last_committed()) == (None, -1, -1)


def test_only_what_spark_did_not_finish_is_cleared(tmp_path: Path) -> None:
    unfinished = ".0.876819d8-a4df-468e-94f5-e4c9f04821eb.tmp"
    offsets = tmp_path / "c" / "offsets"

    def cleared(*given: str) -> list[str]:
        offsets.mkdir(parents=True, exist_ok=True)
        for name in (*given, unfinished, f".{unfinished}.crc"):
            (offsets / name).touch()
        Checkpoint(tmp_path / "c", "ORDERS").clear_unfinished()
        return sorted(file.name for file in offsets.iterdir())

    Checkpoint(tmp_path / "none", "ORDERS").clear_unfinished()
    assert cleared() == []
    assert cleared("notes.tmp") == ["notes.tmp"]
    # Batches have begun: Spark passes over the file, and so do we.
    assert cleared("0") == [f".{unfinished}.crc", unfinished, "0", "notes.tmp"]


@pytest.mark.parametrize(("start", "origin"), [("earliest", 5), ("latest", 21), (7, 7), (21, 21)])
def test_a_source_decides_once_where_it_begins(
    tmp_path: Path, start: str | int, origin: int
) -> None:
    folder = SourceFolder(tmp_path)
    stored = Identity.first(evolve(SOURCE, start=start), STATE).save(folder)
    assert stored.origin == origin
    assert Identity.load(folder) == stored
    assert stored.of_query("q", folder).query_id == "q"
    assert Identity.load(folder) == evolve(stored, query_id="q")


def test_a_source_cannot_begin_beyond_the_end() -> None:
    with pytest.raises(OptionError, match="is 22, beyond the end of stream ORDERS"):
        Identity.first(evolve(SOURCE, start=22), STATE)


def test_another_checkpoint_or_stream_is_refused(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "c", 11, committed=1)
    identity = Identity.first(SOURCE, STATE)
    identity.check(SOURCE, checkpoint, landed=False)
    evolve(identity, query_id="q").check(SOURCE, checkpoint, landed=True)
    with pytest.raises(CheckpointError, match="is not the one of its"):
        evolve(identity, query_id="other").check(SOURCE, checkpoint, landed=True)
    with pytest.raises(CheckpointError, match="is missing; restore it"):
        evolve(identity, query_id="q").check(
            SOURCE, Checkpoint(tmp_path / "none", "ORDERS"), landed=True
        )
    with pytest.raises(CheckpointError, match="landed stream ORDERS before, now it names B"):
        identity.check(evolve(SOURCE, stream="B"), checkpoint, landed=True)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    program = f"""
from pathlib import Path
from typing import Any
from twinstream.spark.pipeline.land_batch import BatchLander
from twinstream.spark.landing.lock import locked
try:
    with locked(Path({str(file)!r}), Path({str(tmp_path)!r}), "other"):
        print("got it")
except Exception as error:
    print(error)
"""

    def other() -> str:
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout

    with (
        locked(file, tmp_path, "run of orders"),
        pytest.raises(PipelineBusy, match="'run of orders'"),
    ):
        with locked(file, tmp_path, "verify"):
            pass
    with locked(file, tmp_path, "run of orders"):
        assert "is in use by 'run of orders' (process" in other()
    assert other() == "got it\n"


def test_a_folder_that_is_no_batch_is_named(tmp_path: Path) -> None:
    for name in ("batch_id=10", "batch_id=2"):
        (tmp_path / name).mkdir()
    assert list(batch_folders(tmp_path)) == [2, 10]
    (tmp_path / "batch_id=2.old").mkdir()
    with pytest.raises(JournalError, match=r"batch_id=2\.old is not a batch folder"):
        batch_folders(tmp_path)


@pytest.mark.parametrize("exchange", [swap.exchange, swap.exchange_in_steps])
def test_folders_are_exchanged(tmp_path: Path, exchange: Callable[[Path, Path], None]) -> None:
    for name in ("new", "current"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    exchange(tmp_path / "new", tmp_path / "current")
    assert (tmp_path / "current" / "file").read_text() == "new"
    assert (tmp_path / "new" / "file").read_text() == "current"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["current", "new"]


class MortalPath(type(Path())):  # type: ignore[misc]
    """A path whose process dies after some renames of such paths."""

    renames = 0

    def rename(self, target: Any) -> Any:
        if not MortalPath.renames:
            raise KeyboardInterrupt
        MortalPath.renames -= 1
        return super().rename(target)


@pytest.mark.parametrize("renames", range(1, 4))
def test_an_exchange_that_was_interrupted_anywhere_can_be_repeated(
    renames: int, tmp_path: Path
) -> None:
    new, current = tmp_path / "new", tmp_path / "current"
    for folder in (new, current):
        folder.mkdir()
        (folder / "file").write_text(folder.name)
    MortalPath.renames = renames
    with pytest.raises(KeyboardInterrupt):
        swap.exchange_in_steps(MortalPath(new), MortalPath(current))
    swap.finish(current)
    assert [path.name for path in tmp_path.iterdir() if path != new] == ["current"]
    new.mkdir(exist_ok=True)
    (new / "file").write_text("newer")
    swap.exchange_in_steps(new, current)
    assert (current / "file").read_text() == "newer"


def test_an_interrupted_exchange_is_finished(tmp_path: Path) -> None:
    (tmp_path / "_new.current").mkdir()
    swap.finish(tmp_path / "current")
    assert [path.name for path in tmp_path.iterdir()] == ["current"]
    with pytest.raises(OSError, match="No such file"):
        swap.exchange(tmp_path / "none", tmp_path / "current")


def test_transient_errors_are_distinguished_from_permanent_ones() -> None:
    assert is_lasting(DataLossError("x"))
    assert not is_lasting(SparkSourceError("x"))
    assert not is_lasting(ConnectionRefusedError("x"))
    text = (
        "[STREAM_FAILED] Traceback (most recent call last):\n  File x\n"
        "twinstream.spark.errors.DataLossError: stream S: gone; do that\n\n\tat org.apache.spark"
    )
    assert is_lasting(RuntimeError(text))
    assert sentence(RuntimeError(text)) == "stream S: gone; do that"
    passing = RuntimeError("twinstream.errors.ConnectionLost: the link broke\n at x")
    assert (is_lasting(passing), sentence(passing)) == (False, "the link broke")
    full = RuntimeError(
        "An exception was thrown from the Python worker:\n\n  Traceback of Spark's\n"
        "Traceback (most recent call last):\n  File x, line 1, in f\n    write()\n    ~~~~~^^\n"
        "OSError: [Errno 28] No space left on device\n\n\tat org.apache.spark"
    )
    assert sentence(full) == "OSError: [Errno 28] No space left on device"
    assert sentence(RuntimeError("\n first\nsecond")) == "first"
    assert sentence(RuntimeError()) == "RuntimeError"


def test_a_batch_is_begun_once_with_the_same_bounds(tmp_path: Path) -> None:
    source = evolve(SOURCE, options={"nats.servers": "nats://h", "stream": "ORDERS"})
    log = BatchLog(tmp_path / "journal.jsonl")
    checkpoint = write_checkpoint(tmp_path / "c", 11, 21, committed=1)
    sink, lock = ParquetSink(Folders(tmp_path)), TableLock(Folders(tmp_path))

    def plan(batch: int, *, base: int = 0, origin: int = 1) -> BatchEntry:
        identity = evolve(Identity.first(SOURCE, STATE), origin=origin, base=base)
        lander = BatchLander(source, identity, checkpoint, log, sink, lock, lambda _: None)
        return lander.plan(batch)

    first = plan(0)
    assert (first.batch, first.start, first.end) == (0, 1, 11)
    assert (plan(0).end, plan(0).began != "") == (11, True)
    log.landed(first)
    plan(0)
    with pytest.raises(CheckpointError, match="plans batch 0 as sequences 2 to 10"):
        plan(0, origin=2)
    # Begun with a checkpoint that was lost since: not in the tables, so its bounds may differ.
    log.begin(evolve(entry(1, 11, 99), query_id="lost"))
    second = plan(1)
    assert (second.batch, second.start, second.end) == (1, 11, 21)
    log.landed(second)
    # Landed with a checkpoint of later: this one was restored to an earlier state.
    log.landed(evolve(entry(5, 21, 31), query_id="q"))
    with pytest.raises(CheckpointError, match="the journal has batch 5 with 21 to 30"):
        plan(1, base=2)


def test_a_batch_does_not_begin_where_tables_have_it(tmp_path: Path) -> None:
    source = evolve(SOURCE, options={"nats.servers": "nats://h", "stream": "ORDERS"})
    checkpoint = write_checkpoint(tmp_path / "c", 11, committed=0)
    log, sink = BatchLog(tmp_path / "journal.jsonl"), ParquetSink(Folders(tmp_path))
    identity = Identity.first(SOURCE, STATE)
    lock = TableLock(Folders(tmp_path))
    lander = BatchLander(source, identity, checkpoint, log, sink, lock, lambda _: None)
    folder = tmp_path / "orders" / "batch_id=3"
    folder.mkdir(parents=True)
    with pytest.raises(JournalError, match="table orders has rows of batch 0 or later"):
        lander.plan(0)
    assert log.known(0) is None
    folder.rmdir()
    begun = lander.plan(0)
    folder.with_name("batch_id=0").mkdir()
    assert lander.plan(0).end == begun.end  # put there by the attempt before
