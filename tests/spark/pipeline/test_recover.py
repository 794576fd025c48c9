"""Going on behind the journal: one unfinished batch leaves the tables, nothing else does."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import evolve
from deltalake import write_deltalake

from tests.spark.pipelines import SINKS, rows_of
from twinstream.lake.stream_mark import Mark
from twinstream.spark.errors import DataLossError, JournalError
from twinstream.spark.pipeline.recover import accepted, recovered
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.state.batch_log import BatchEntry, BatchLog, of_one_stream
from twinstream.spark.pipeline.state.identity import Identity
from twinstream.spark.pipeline.tables.parquet_sink import ParquetSink
from twinstream.spark.pipeline.tables.sink import Sink
from twinstream.spark.source.stream_identity import why_other
from twinstream.spark.source.stream_state import StreamState

OPTIONS = {"nats.servers": "nats://h", "stream": "ORDERS"}
SOURCE = SourceConfig(name="orders", stream="ORDERS", table="orders", options=OPTIONS)
STATE = StreamState("ORDERS", first=1, next=100, created="today")


class Lake:
    """Four batches of a message each in one file, as `compact` leaves them, and their journal."""

    def __init__(self, root: Path, kind: str) -> None:
        self.folders = Folders(root)
        self.sink: Sink = ParquetSink(self.folders)
        self._table, self._kind = root / "orders", kind
        rows = pa.table({"seq": pa.array(range(1, 5)), "_batch_id": pa.array(range(4))})
        if kind == "delta":
            from twinstream.spark.pipeline.tables.delta_sink import DeltaSink

            self.sink = DeltaSink(self.folders)
            write_deltalake(str(self._table), rows)
        else:
            home = self._table / "batch_id=3"
            home.mkdir(parents=True)
            pq.write_table(rows, home / "part-0.parquet")

    def recover(self, last: int, state: StreamState = STATE) -> Identity:
        folder = self.folders.source("orders")
        log = BatchLog(folder.journal)
        for batch in range(last + 1):
            log.landed(
                BatchEntry(
                    batch=batch, start=batch + 1, end=batch + 2, created="today", query_id="q",
                    began="2026-01-01T00:00",
                )
            )  # fmt: skip
        identity = evolve(Identity.first(SOURCE, STATE), query_id="q")
        return recovered(SOURCE, identity, folder, self.sink, state, lambda *_: None)

    def accept(self, state: StreamState, mark: Mark | None, time: str | None = None) -> Identity:
        """Accept a stream after batch 2; `time` is when it got its message 3."""
        folder = self.folders.source("orders")
        BatchLog(folder.journal).landed(
            BatchEntry(
                batch=2, start=3, end=4, created="today", query_id="q", began="2026-01-01T00:00",
                mark=mark,
            )
        )  # fmt: skip
        identity = evolve(Identity.first(SOURCE, STATE), query_id="q")
        return accepted(SOURCE, identity, folder, self.sink, state, lambda *_: time)

    @property
    def journal(self) -> BatchLog:
        return BatchLog(self.folders.source("orders").journal)

    @property
    def batches(self) -> list[int]:
        return sorted(row["_batch_id"] for row in rows_of(self._table, self._kind))


@pytest.mark.parametrize("kind", SINKS)
def test_other_batches_in_a_file_are_kept(tmp_path: Path, kind: str) -> None:
    lake = Lake(tmp_path, kind)
    again = lake.recover(last=2)
    assert (again.base, again.origin) == (3, 4)
    assert lake.batches == [0, 1, 2]


@pytest.mark.parametrize("kind", SINKS)
@pytest.mark.parametrize("last", [-1, 1])
def test_a_journal_older_than_the_tables_is_refused(tmp_path: Path, kind: str, last: int) -> None:
    lake = Lake(tmp_path, kind)
    with pytest.raises(JournalError, match=f"ends before batch {last + 1}: it was restored"):
        lake.recover(last)
    assert lake.batches == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", SINKS)
def test_nothing_is_removed_that_the_stream_has_lost(tmp_path: Path, kind: str) -> None:
    lake = Lake(tmp_path, kind)
    with pytest.raises(
        DataLossError, match="sequences 4 to 9 were removed before they were landed"
    ):
        lake.recover(2, evolve(STATE, first=10))
    assert lake.batches == [0, 1, 2, 3]


MARK = Mark(3, "noon")
LATER = evolve(STATE, created="tomorrow", mark=Mark(99, "evening"))


@pytest.mark.parametrize("kind", SINKS)
def test_a_stream_is_accepted_as_a_copy_with_a_line_in_the_journal(
    tmp_path: Path, kind: str
) -> None:
    lake = Lake(tmp_path, kind)
    again = lake.accept(LATER, MARK)
    assert (again.base, again.origin, again.created, again.query_id) == (3, 4, "tomorrow", None)
    assert lake.batches == [0, 1, 2], "what was begun with the stream before is landed again"
    line = json.loads(lake.folders.source("orders").journal.read_text().splitlines()[-1])
    assert (line["kind"], line["batch"], line["created"]) == ("accepted", 2, "tomorrow")
    last = lake.journal.last()
    assert last is not None
    assert why_other(last.position, LATER, lambda *_: None) is None, "once is enough"


def test_only_what_may_be_a_copy_is_accepted(tmp_path: Path) -> None:
    lake = Lake(tmp_path, "parquet")
    for state, time in (
        (LATER, "midnight"),
        (evolve(LATER, next=3, mark=Mark(2, "evening")), None),
        (evolve(STATE, next=3, mark=Mark(2, "evening")), None),
    ):
        with pytest.raises(DataLossError, match="cannot be accepted as a copy"):
            lake.accept(state, MARK, time)
    for state, time in ((LATER, "noon"), (evolve(LATER, created="today"), None)):
        assert lake.accept(state, MARK, time).query_id == "q", "it shows that it is the same"
    assert lake.batches == [0, 1, 2, 3]
    assert "accepted" not in lake.folders.source("orders").journal.read_text()


def test_batches_of_copies_are_of_one_stream() -> None:
    def batch(number: int, start: int, end: int, created: str) -> BatchEntry:
        return BatchEntry(
            batch=number, start=start, end=end, created=created, query_id="q", began="now"
        )

    entries = [
        batch(0, 1, 5, "sunday"),
        batch(1, 1, 3, "monday"),
        batch(2, 3, 9, "monday"),
        batch(3, 9, 12, "tuesday"),
    ]
    assert list(of_one_stream({each.batch: each for each in entries})) == [1, 2, 3]
    assert of_one_stream({}) == {}
