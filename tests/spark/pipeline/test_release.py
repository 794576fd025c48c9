"""Letting go of what is landed: the stream keeps all that no table has. No Spark runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from js_sync import JetStream, Stream
from tests.spark.pipelines import SINKS, config_of
from twinstream.lake.entry import BatchEntry
from twinstream.models import ConsumerConfig, RetentionPolicy
from twinstream.spark.errors import CheckpointError, OptionError
from twinstream.spark.pipeline.release import release_of
from twinstream.spark.pipeline.settings.config import PipelineConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.state.source_state import journal_of
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.testing import NatsServer

Fill = Callable[..., None]


class Landed:
    """A source whose batches of four messages are written by Arrow."""

    def __init__(self, config: PipelineConfig, sink: str, stream: Stream) -> None:
        (self.source,) = config.sources
        self.log = journal_of(Folders(config.path), self.source)
        self.release = release_of(self.source, open_sink(config), self.log)
        self.table = config.path / "orders"
        self._sink, self._stream = sink, stream

    def land(self, batch: int, seqs: list[int]) -> BatchEntry:
        times = [self._stream.get_message(seq).time.ns // 1000 for seq in seqs]
        rows = pa.table(
            {
                "seq": pa.array(seqs, pa.int64()),
                "timestamp": pa.array(times, pa.timestamp("us", "UTC")),
                "_batch_id": pa.array([batch] * len(seqs), pa.int64()),
            }
        )
        if self._sink == "delta":
            write_deltalake(str(self.table), rows, mode="append")
        else:
            (self.table / f"batch_id={batch}").mkdir(parents=True)
            pq.write_table(rows, self.table / f"batch_id={batch}" / "part.parquet")
        entry = BatchEntry(
            batch=batch, start=batch * 4 + 1, end=batch * 4 + 5, began="b",
            created=self._stream.info().created.rfc3339(), messages=len(seqs),
        )  # fmt: skip
        self.log.landed(entry)
        return entry


@pytest.fixture
def landed(server: NatsServer, tmp_path: Path) -> Callable[..., Landed]:
    def make(stream: Stream, sink: str = "parquet", more: str = "") -> Landed:
        text = f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\n{more}'
        return Landed(config_of(tmp_path, sink, server.url, text), sink, stream)

    return make


@pytest.mark.parametrize("sink", SINKS)
def test_a_purge_removes_what_is_in_the_tables(
    sink: str,
    landed: Callable[..., Landed],
    jet: JetStream,
    make_stream: Callable[..., Stream],
    fill: Fill,
) -> None:
    stream = make_stream(retention=RetentionPolicy.WORKQUEUE)
    fill(stream, [b""] * 12)
    pipeline = landed(stream, sink, 'commit = "purge"')
    pipeline.release.prepare(jet, 1)
    assert pipeline.release.release(jet, pipeline.land(0, [1, 2, 3, 4])) == 4
    second = pipeline.land(1, [5, 6, 8])
    with pytest.raises(CheckpointError, match="has 1 messages, the first with sequence 7,"):
        pipeline.release.release(jet, second)
    assert stream.info().state.messages == 8
    stream.delete_message(7)
    assert pipeline.release.release(jet, second) == 3
    assert pipeline.release.release(jet, second) == 0, "it can be repeated"
    again = landed(stream, sink, 'commit = "purge"')
    assert again.release.release(jet, again.land(2, [9, 10, 11, 12])) == 4
    assert stream.info().state.messages == 0


def test_a_purge_keeps_to_its_subjects(
    landed: Callable[..., Landed], jet: JetStream, make_stream: Callable[..., Stream], fill: Fill
) -> None:
    stream = make_stream()
    fill(stream, [b""] * 8, subjects=["a", "b", "c", "d"])
    prefix = stream.name.lower()
    more = f'commit = "purge"\nsubjects = ["{prefix}.a", "{prefix}.c"]'
    pipeline = landed(stream, "parquet", more)
    assert pipeline.release.release(jet, pipeline.land(0, [1, 3])) == 2
    assert [stream.get_message(seq).subject[-1] for seq in (2, 4, 5)] == ["b", "d", "a"]
    assert stream.info().state.messages == 6


def test_rows_of_an_earlier_stream_of_the_name_do_not_count(
    landed: Callable[..., Landed], jet: JetStream, make_stream: Callable[..., Stream], fill: Fill
) -> None:
    stream = make_stream()
    fill(stream, [b""] * 4)
    landed(stream).land(0, [1, 2, 3, 4])
    jet.delete_stream(stream.name)
    fill(jet.create_stream(stream.cached_info.config), [b""] * 8)
    pipeline = landed(stream, "parquet", 'commit = "purge"')
    with pytest.raises(CheckpointError, match="has 4 messages, the first with sequence 1,"):
        pipeline.release.release(jet, pipeline.land(1, [5, 6, 7, 8]))
    assert stream.info().state.messages == 8


def test_a_stream_that_was_put_back_is_not_purged(
    landed: Callable[..., Landed], jet: JetStream, make_stream: Callable[..., Stream], fill: Fill
) -> None:
    stream = make_stream()
    fill(stream, [b""] * 2)  # as it was before the other two that were landed
    pipeline = landed(stream, "parquet", 'commit = "purge"')
    with pytest.raises(CheckpointError, match=r"nothing was purged: stream .* restored"):
        pipeline.release.release(jet, entry := pipeline.land(0, [1, 2]))
    more = 'commit = "purge"\noptions = { failOnDataLoss = false }'
    assert landed(stream, "parquet", more).release.release(jet, entry) == 0
    assert stream.info().state.messages == 2


@pytest.mark.parametrize("setting", ["deny_purge", "sealed"])
def test_streams_that_cannot_be_purged_are_refused(
    setting: str, landed: Callable[..., Landed], jet: JetStream, make_stream: Callable[..., Stream]
) -> None:
    stream = make_stream(**({"deny_purge": True} if setting == "deny_purge" else {}))
    if setting == "sealed":
        stream.seal()
    pipeline = landed(stream, "parquet", 'commit = "purge"')
    with pytest.raises(OptionError, match=f"is set to {setting}"):
        pipeline.release.prepare(jet, 1)


@pytest.mark.since("2.14")
def test_bookmark_moves_and_releases_messages_without_interest(
    landed: Callable[..., Landed], jet: JetStream, make_stream: Callable[..., Stream], fill: Fill
) -> None:
    stream = make_stream(retention=RetentionPolicy.INTEREST)
    pipeline = landed(stream, "parquet", 'commit = "bookmark"\nbookmark = "mark"')
    pipeline.release.prepare(jet, 1)
    fill(stream, [b""] * 8)
    assert stream.get_consumer("mark").info().num_pending == 8
    first, second = pipeline.land(0, [1, 2, 3, 4]), pipeline.land(1, [5, 6, 7, 8])
    for entry, left in ((first, 4), (first, 4), (second, 0)):
        pipeline.release.release(jet, entry)
        assert stream.get_consumer("mark").info().num_pending == left
    assert stream.info().state.messages == 0, "nobody else wants them"


@pytest.mark.since("2.14")
def test_bookmark_accepts_overlapping_subjects(
    landed: Callable[..., Landed], jet: JetStream, make_stream: Callable[..., Stream]
) -> None:
    stream = make_stream()
    prefix = stream.name.lower()
    more = f'commit = "bookmark"\nsubjects = ["{prefix}.a", "{prefix}.*"]\nbookmark = "mark"'
    landed(stream, "parquet", more).release.prepare(jet, 1)
    config = stream.get_consumer("mark").info().config
    assert (config.filter_subjects or [config.filter_subject]) == [f"{prefix}.*"]


@pytest.mark.since("2.14")
def test_a_consumer_that_somebody_uses_is_no_bookmark(
    landed: Callable[..., Landed], jet: JetStream, make_stream: Callable[..., Stream]
) -> None:
    stream = make_stream()
    stream.create_consumer(ConsumerConfig(durable_name="mark"))
    pipeline = landed(stream, "parquet", 'commit = "bookmark"\nbookmark = "mark"')
    with pytest.raises(OptionError, match="has a consumer 'mark' that is no bookmark"):
        pipeline.release.prepare(jet, 1)
