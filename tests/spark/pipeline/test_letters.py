"""Dead letters as a queue: counted, landed again from their files, published."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import evolve

from js_sync import JetStream, Stream
from tests._sync.flow import eventually
from tests.hooked import hooked
from tests.mortal_store import Died, die
from tests.odd_messages import OddMessage, publish_raw
from tests.soak import LONGEST
from tests.spark.pipelines import SINKS, config_of, counted, files_of, rows_of
from twinstream.models import StreamConfig
from twinstream.spark.errors import JournalError, OptionError, PipelineBusy, SchemaError
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.letters.letter_pages import BatchLetters
from twinstream.spark.pipeline.letters.letters_by_batch import letters_by_batch
from twinstream.spark.pipeline.letters.letters_report import LettersReport
from twinstream.spark.pipeline.letters.publish import publish_letters
from twinstream.spark.pipeline.letters.reason_kind import kind_of_reason
from twinstream.spark.pipeline.letters.replay import replay_letters
from twinstream.spark.pipeline.letters.summary import letters_of
from twinstream.spark.pipeline.maintenance.compact import compact
from twinstream.spark.pipeline.maintenance.replay import replay
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.settings.toml_config import read_config
from twinstream.spark.pipeline.state.source_state import journal_of
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[..., Stream]
Fill = Callable[..., None]
LETTERS = "dead_letters/source=orders"


class Lake:
    """A pipeline that lands one stream, whose schema a test may change."""

    def __init__(self, folder: Path, sink: str, server: str, stream: Stream, more: str) -> None:
        source = (
            f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\nformat = "json"\n'
            f'schema = "order.json"\nmax_messages = 25\n{more}'
        )
        self.folder = folder
        self.config = config_of(folder, sink, server, source, engine="local")

    def set_schema(self, **schema: Any) -> None:
        """Replace the schema of the source, as a user does in its file."""
        (self.folder / "order.json").write_text(json.dumps({"type": "object", **schema}))
        self.config = read_config(self.folder / "orders.toml")

    def land(self) -> None:
        assert run(None, self.config, once=True) == {}

    def replay(self, low: int = 0, high: int | None = None) -> LettersReport:
        return replay_letters(None, self.config, self.config.sources[0], low, high)

    def rows(self, table: str = "orders") -> list[dict[str, Any]]:
        """Return the rows of a table, of which no sequence occurs twice."""
        if not (self.config.path / table).is_dir():
            return []
        count, distinct = counted(self.config.path / table, self.config.sink)
        assert count == distinct
        rows = rows_of(self.config.path / table, self.config.sink) if count else []
        return sorted(rows, key=lambda row: row["_seq"])

    def problems(self) -> list[str]:
        return [problem for each in verify(self.config) for problem in each.problems]

    def state(self) -> list[str]:
        """Return the names of all files, which show whether anything was written."""
        return sorted(str(file) for file in self.config.path.rglob("*") if "lock" not in file.name)


NUMBERS = {"id": {"type": "integer"}, "item": {"type": "string"}}


@pytest.fixture(params=SINKS)
def lake_of(
    request: pytest.FixtureRequest, tmp_path: Path, server: NatsServer, make_stream: Make
) -> Callable[..., tuple[Lake, Stream]]:
    """Returns a pipeline and its stream."""

    def make(more: str = "", sink: str = request.param) -> tuple[Lake, Stream]:
        stream = make_stream()
        return Lake(tmp_path, sink, server.url, stream, more), stream

    return make


def without_an_id(numbers: int, each: int = 10) -> list[dict[str, Any]]:
    """Return so many orders, of which each tenth has no id."""
    return [
        {"item": f"i{number}"} if number % each == 0 else {"id": number}
        for number in range(1, numbers + 1)
    ]


def other_file(lake: Lake, stream: Stream) -> PipelineConfig:
    """Return a pipeline of another file with the same tables, and with another source."""
    file = lake.folder / "orders.toml"
    head, _, _ = file.read_text().partition("[[source]]")
    source = f'stream = "{stream.name}"\nname = "two"\nformat = "json"\nschema = "order.json"'
    (lake.folder / "two.toml").write_text(f'{head}[[source]]\n{source}\ntable = "taken"\n')
    return read_config(lake.folder / "two.toml")


def test_letters_are_landed_after_a_purge(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill
) -> None:
    lake, stream = lake_of('commit = "purge"')
    fill(stream, without_an_id(100))
    lake.land()
    assert stream.info().state.messages == 0
    assert (len(lake.rows()), len(lake.rows(LETTERS))) == (90, 10)
    lake.set_schema(properties=NUMBERS)
    done = lake.replay()
    assert (done.letters, done.landed, done.left) == (10, 10, 0)
    assert [each.dead_letters for each in done.batches] == [0, 0, 0, 0]
    rows = lake.rows()
    assert [row["_seq"] for row in rows] == list(range(1, 101))
    landed = [row for row in rows if row["_seq"] % 10 == 0]
    assert {(row["id"], row["item"], row["_batch_id"]) for row in landed} == {
        (None, f"i{seq}", (seq - 1) // 25) for seq in range(10, 101, 10)
    }
    assert lake.rows(LETTERS) == []
    assert letters_of(lake.config, lake.config.sources[0]).letters == 0
    assert lake.problems() == []
    before = lake.state()
    assert lake.replay().letters == 0
    assert lake.state() == before, "a second replay does nothing"
    fill(stream, [{"id": 101}])
    lake.land()
    assert len(lake.rows()) == 101


def test_spark_lands_letters_again(
    spark: SparkSession, lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill
) -> None:
    lake, stream = lake_of('commit = "purge"')
    fill(stream, without_an_id(100))
    lake.land()
    lake.set_schema(properties=NUMBERS)
    config = evolve(lake.config, engine="spark")
    assert replay_letters(spark, config, config.sources[0]).landed == 10
    assert [row["_seq"] for row in lake.rows()] == list(range(1, 101))
    assert (lake.rows(LETTERS), lake.problems()) == ([], [])


def test_letters_that_still_do_not_fit_get_the_reason_of_now(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill
) -> None:
    lake, stream = lake_of()
    bad = [{"item": "a"}, {"id": "x"}, b"no JSON", {"id": 1, "item": 7}]
    fill(stream, [*bad, {"id": 5}])
    lake.land()
    before = {row["_seq"]: row["_error"] for row in lake.rows(LETTERS)}
    assert list(before) == [1, 2, 3, 4]
    lake.set_schema(properties={"id": {"type": "integer"}, "item": {"type": "string"}})
    done = lake.replay()
    assert (done.letters, done.landed, done.left) == (4, 1, 3)
    assert {row["_seq"]: row["_error"] for row in lake.rows(LETTERS)} == {
        seq: before[seq] for seq in (2, 3, 4)
    }
    state = lake.state()
    assert (lake.replay().landed, lake.state()) == (0, state), "nothing would change"
    lake.set_schema(required=["more"], properties={"more": {"type": "string"}, **NUMBERS})
    done = lake.replay()
    assert (done.landed, done.left) == (0, 3)
    reasons = [row["_error"] for row in lake.rows(LETTERS)]
    assert "more: required member is missing" in reasons
    assert reasons != list(before.values())[1:]
    assert lake.problems() == []
    assert [len(row["_raw"]) for row in lake.rows(LETTERS)] == [11, 7, 20]


@pytest.mark.parametrize("next_command", ["run", "compact", "replay"])
def test_the_next_command_finishes_a_replay_that_died(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill, next_command: str
) -> None:
    lake, stream = lake_of('commit = "purge"')
    fill(stream, [*without_an_id(25), *([{}] * 5)])  # the second batch has letters alone
    lake.land()
    strict = lake.config
    lake.set_schema(properties=NUMBERS)
    with hooked("letters: before removal", lambda _: die()), pytest.raises(Died):
        lake.replay()
    source = lake.config.sources[0]
    assert len(lake.rows()) == 30
    assert letters_of(lake.config, source).is_interrupted
    assert any("a replay of dead letters is not finished" in each for each in lake.problems())
    lake.config = strict  # the files are finished, so another schema makes no difference
    if next_command == "run":
        fill(stream, [{"id": 31}])
        lake.land()
        assert len(lake.rows()) == 31
    elif next_command == "compact":
        list(compact(lake.config))
    else:
        done = lake.replay()
        assert (done.landed, done.left) == (7, 0), "it says what it has landed"
        assert [each.dead_letters for each in done.batches] == [0, 0]
    assert [row["_seq"] for row in lake.rows()][:30] == list(range(1, 31))
    assert (lake.rows(LETTERS), lake.problems()) == ([], [])
    assert not list(Folders(lake.config.path).staging.rglob("*"))


def test_a_replay_counts_the_letters_that_an_interrupted_one_left_once(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill
) -> None:
    lake, stream = lake_of()
    fill(stream, [*without_an_id(10), b"junk"])
    lake.land()
    lake.set_schema(properties=NUMBERS)
    with hooked("letters: before removal", lambda _: die()), pytest.raises(Died):
        lake.replay()
    done = lake.replay()
    assert (done.letters, done.landed, done.left) == (2, 1, 1)
    done = lake.replay()
    assert (done.letters, done.landed, done.left) == (1, 0, 1)


def test_letters_stay_if_a_run_has_given_the_table_other_columns_meanwhile(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill
) -> None:
    lake, stream = lake_of()
    before, source, stop = lake.config, lake.config.sources[0], threading.Event()
    journal = journal_of(Folders(lake.folder / "lake"), source)

    def landed(end: int) -> bool:
        last = journal.last()
        return last is not None and last.end == end

    following = threading.Thread(target=lambda: run(None, evolve(before, every=0.01), asked=stop))
    following.start()
    try:
        fill(stream, [{"id": "x"}])
        eventually(lambda: landed(2), patience=LONGEST)
        lake.set_schema(properties={"id": {"type": "string"}})
        with hooked("letters: before tables", lambda _: die()), pytest.raises(Died):
            lake.replay()
        fill(stream, [{"id": 2}])
        eventually(lambda: landed(3), patience=LONGEST)
    finally:
        stop.set()
        following.join()
    lake.config = before
    lake.land()
    assert [row["id"] for row in lake.rows()] == [2]
    assert [row["_seq"] for row in lake.rows(LETTERS)] == [1]
    assert not letters_of(lake.config, source).is_interrupted
    list(compact(lake.config))
    assert lake.problems() == []
    assert not list(Folders(lake.folder / "lake").staging.rglob("*"))


def test_a_plan_with_rows_in_a_table_is_not_dropped(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill
) -> None:
    lake, stream = lake_of()
    fill(stream, without_an_id(20))
    lake.land()
    lake.set_schema(properties=NUMBERS)
    with hooked("letters: before removal", lambda _: die()), pytest.raises(Died):
        lake.replay()
    (file,) = Folders(lake.folder / "lake").staging.rglob("*.parquet")
    rows = pq.read_table(file)
    file.unlink()  # the table has a link to it
    pq.write_table(rows.set_column(0, "id", pa.array(["a", "b"])), file)
    with pytest.raises(SchemaError):
        lake.replay()
    assert letters_of(lake.config, lake.config.sources[0]).is_interrupted


def test_files_of_an_interrupted_replay_are_kept_by_a_pipeline_of_other_sources(
    lake_of: Callable[..., tuple[Lake, Stream]], make_stream: Make, fill: Fill
) -> None:
    lake, stream = lake_of('commit = "purge"')
    fill(stream, without_an_id(20))
    lake.land()
    other = make_stream()
    fill(other, [{}] * 3)
    assert run(None, other_file(lake, other), once=True) == {}
    lake.set_schema(properties=NUMBERS)
    two = read_config(lake.folder / "two.toml")
    with hooked("letters: before removal", lambda _: die()), pytest.raises(Died):
        lake.replay()
    assert vacuum(two) == []
    assert replay_letters(None, two, two.sources[0]).landed == 3
    assert vacuum(two) == []
    lake.land()
    assert [row["_seq"] for row in lake.rows()] == list(range(1, 21))
    assert lake.problems() == []


def test_a_file_of_an_interrupted_replay_that_is_gone_is_named(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill
) -> None:
    lake, stream = lake_of()
    fill(stream, without_an_id(30))
    lake.land()
    lake.set_schema(properties=NUMBERS)
    with hooked("letters: before removal", lambda _: die()), pytest.raises(Died):
        lake.replay()
    (file, *_) = Folders(lake.config.path).staging.rglob("*.parquet")
    file.unlink()
    with pytest.raises(JournalError, match=f"its file {file} is gone: restore it"):
        lake.replay()
    failed = run(None, lake.config, once=True)
    assert "is gone: restore it" in failed["orders"]


def test_two_replays_and_a_running_pipeline_at_once(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill
) -> None:
    lake, stream = lake_of()
    fill(stream, without_an_id(50))
    lake.land()
    lake.set_schema(properties=NUMBERS)
    stop, done, errors = threading.Event(), list[LettersReport](), list[Exception]()

    def replay_once() -> None:
        try:
            done.append(lake.replay())
        except PipelineBusy:
            pass
        except Exception as error:
            errors.append(error)

    commands = [threading.Thread(target=replay_once) for _ in range(2)]
    fast = evolve(lake.config, every=0.01)
    following = threading.Thread(target=lambda: run(None, fast, asked=stop))
    journal = journal_of(Folders(lake.config.path), lake.config.sources[0])
    following.start()
    try:
        fill(stream, [{"id": number} for number in range(51, 201)])
        for each in commands:
            each.start()
        for each in commands:
            each.join()
        eventually(
            lambda: (last := journal.last()) is not None and last.end == 201, patience=LONGEST
        )
    finally:
        stop.set()
        following.join()
    assert errors == []
    assert sum(each.landed for each in done) == 5
    assert ([row["_seq"] for row in lake.rows()], lake.problems()) == (list(range(1, 201)), [])


def test_letters_of_a_range(lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill) -> None:
    lake, stream = lake_of()
    fill(stream, without_an_id(100))
    lake.land()
    lake.set_schema(properties=NUMBERS)
    done = lake.replay(30, 51)
    assert [each.batch for each in done.batches] == [1], "the batch of 26 to 50, with 30, 40 and 50"
    assert (done.letters, done.landed) == (3, 3)
    assert [row["_seq"] for row in lake.rows(LETTERS)] == [10, 20, 60, 70, 80, 90, 100]
    assert lake.problems() == []


def test_a_table_of_another_source_gets_no_rows(
    lake_of: Callable[..., tuple[Lake, Stream]], make_stream: Make, fill: Fill
) -> None:
    lake, stream = lake_of()
    fill(stream, without_an_id(20))
    lake.land()
    other = make_stream()
    fill(other, [{"id": 1}] * 30)
    two = other_file(lake, other)
    assert run(None, two, once=True) == {}
    file = lake.folder / "orders.toml"
    file.write_text(file.read_text().replace('table = "orders"', 'table = "taken"'))
    lake.set_schema(properties=NUMBERS)
    before = lake.state()
    for command in (lake.replay, lambda: replay(None, lake.config, lake.config.sources[0], 1, 21)):
        with pytest.raises(JournalError, match="table taken has rows of source two"):
            command()
    assert lake.state() == before
    assert [each.problems for each in verify(two)] == [[]]


def test_letters_are_landed_after_an_earlier_journal_was_restored(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill, tmp_path: Path
) -> None:
    lake, stream = lake_of('commit = "purge"')
    fill(stream, without_an_id(100))
    lake.land()
    lake.set_schema(properties=NUMBERS)
    state, saved = Folders(lake.config.path).state, tmp_path / "saved"
    shutil.copytree(state, saved)
    assert lake.replay(1, 26).landed == 2
    shutil.rmtree(state)
    saved.rename(state)
    assert lake.replay(26).landed == 8
    assert [row["_seq"] for row in lake.rows()] == list(range(1, 101))
    assert lake.rows(LETTERS) == []


def test_letters_of_compacted_tables_and_batches_of_letters_alone(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill
) -> None:
    lake, stream = lake_of()
    fill(stream, [*without_an_id(25), *([{}] * 25), *without_an_id(25)])
    lake.land()
    assert [each.table for each in compact(lake.config)] == ["orders", LETTERS]
    lake.set_schema(properties=NUMBERS)
    assert lake.replay(1, 26).landed == 2
    assert lake.replay().landed == 27
    assert [row["_seq"] for row in lake.rows()] == list(range(1, 76))
    assert lake.problems() == []
    assert {row["_batch_id"] for row in lake.rows() if row["_seq"] in range(26, 51)} == {1}
    list(compact(lake.config))
    replay(None, lake.config, lake.config.sources[0], 1, 76)
    assert [row["_seq"] for row in lake.rows()] == list(range(1, 76))
    assert lake.problems() == []


@pytest.mark.parametrize("most", [1, 5, 4096])
def test_letters_of_compacted_batches_are_read_together(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill, most: int
) -> None:
    lake, stream = lake_of()
    fill(stream, [*without_an_id(50), *([{}] * 25), *without_an_id(25)])
    lake.land()
    list(compact(lake.config))
    (file,) = map(Path, files_of(lake.config.path / LETTERS, lake.config.sink))
    batches = letters_by_batch([BatchLetters(each, (file,)) for each in range(4)], "_raw", most)
    found: dict[int, list[int]] = {}
    for letters, pages in batches:
        found[letters.batch] = [seq for page in pages for seq in page.messages.seqs.to_pylist()]
        if most == 4096:
            file.unlink(missing_ok=True)  # it is not read again
    assert found == {0: [10, 20], 1: [30, 40, 50], 2: list(range(51, 76)), 3: [85, 95]}


def test_letters_of_which_delta_rewrites_text_as_views(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill
) -> None:
    """Delta writes text as views if it removes some of the rows of a file."""
    lake, stream = lake_of(sink="delta")
    fill(stream, without_an_id(100))
    lake.land()
    list(compact(lake.config))
    lake.set_schema(properties=NUMBERS)
    assert lake.replay(1, 26).landed == 2
    (file,) = files_of(lake.config.path / LETTERS, "delta")
    assert pq.read_schema(file).field("_error").type == pa.string_view()
    assert letters_of(lake.config, lake.config.sources[0]).letters == 8
    assert lake.problems() == []
    assert len(replay(None, lake.config, lake.config.sources[0], 1, 51)) == 2
    assert letters_of(lake.config, lake.config.sources[0]).letters == 5
    assert lake.replay().landed == 5
    assert lake.problems() == []


def test_a_replay_from_the_stream_counts_after_a_replay_of_letters(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill
) -> None:
    lake, stream = lake_of()
    fill(stream, without_an_id(20))
    lake.land()
    lake.set_schema(properties=NUMBERS)
    lake.replay()
    lake.set_schema(required=["id"], properties=NUMBERS)
    (again,) = replay(None, lake.config, lake.config.sources[0], 1, None)
    assert (again.dead_letters, again.replays) == (2, 2)
    assert len(lake.rows(LETTERS)) == 2
    entries = journal_of(Folders(lake.config.path), lake.config.sources[0]).entries()
    assert entries == {0: again}
    lake.set_schema(properties=NUMBERS)
    assert lake.replay().landed == 2
    assert lake.problems() == []


def test_headers_and_large_sequences_are_those_of_the_message(
    lake_of: Callable[..., tuple[Lake, Stream]], jet: JetStream
) -> None:
    lake, stream = lake_of('options = {includeHeaders = "true", uint64 = "decimal"}')
    subject = f"{stream.name.lower()}.a"
    headers = {"Trace": ["a", "b"], "Other": "c: d"}
    for data in (b'{"id": 1}', b"{}"):
        jet.publish(subject, data, headers=headers)
    jet.publish(subject, b"{}")
    lake.land()
    lake.set_schema(properties=NUMBERS)
    assert lake.replay().landed == 2
    first, second, third = lake.rows()
    assert sorted(first["_headers"]) == sorted(second["_headers"])
    assert third["_headers"] is None
    assert dict(second["_headers"])["Trace"] == ["a", "b"]
    from_letters = lake.rows()
    replay(None, lake.config, lake.config.sources[0], 1, None)
    assert [sorted(map(str, row.items())) for row in lake.rows()] == [
        sorted(map(str, row.items())) for row in from_letters
    ], "the same rows as from the stream"


def test_a_header_without_a_name_is_not_a_malformed_block(
    lake_of: Callable[..., tuple[Lake, Stream]], server: NatsServer
) -> None:
    lake, stream = lake_of('options = {includeHeaders = "true"}')
    blocks = b"NATS/1.0\r\n: value\r\nA: b\r\n\r\n", b"NATS/1.0\r\n:\r\n\r\n", b"no version"
    subject, port = f"{stream.name.lower()}.a", int(server.url.rpartition(":")[2])
    publish_raw(port, subject, *(OddMessage(each, b'{"item": "x"}') for each in blocks))
    lake.land()
    lake.set_schema(properties=NUMBERS)
    done = lake.replay()
    assert (done.landed, done.left) == (2, 1)
    landed, left = lake.rows(), lake.rows(LETTERS)
    assert [dict(row["_headers"]) for row in landed] == [{"": ["value"], "A": ["b"]}, {"": [""]}]
    assert left[0]["_error"].startswith("headers: not a NATS header block: b'no vers")
    replay(None, lake.config, lake.config.sources[0], 1, None)
    assert (lake.rows(), lake.rows(LETTERS)) == (landed, left), "the same as from the stream"


def test_letters_that_stay_lose_no_headers(
    lake_of: Callable[..., tuple[Lake, Stream]], jet: JetStream
) -> None:
    lake, stream = lake_of('options = {includeHeaders = "true"}')
    subject = f"{stream.name.lower()}.a"
    for data in (b'{"item": "a"}', b"junk"):
        jet.publish(subject, data, headers={"Trace": "t"})
    lake.land()
    file = lake.folder / "orders.toml"
    file.write_text(file.read_text().replace('"true"', '"false"'))
    lake.set_schema(properties=NUMBERS)
    before = lake.state()
    with pytest.raises(OptionError, match="includeHeaders"):
        lake.replay()
    assert lake.state() == before
    file.write_text(file.read_text().replace('"false"', '"true"'))
    lake.set_schema(properties=NUMBERS)
    assert lake.replay().left == 1
    assert [row["_headers"] for row in lake.rows(LETTERS)] == [[("Trace", ["t"])]]


def test_letters_that_all_fit_need_no_headers(
    lake_of: Callable[..., tuple[Lake, Stream]], jet: JetStream
) -> None:
    lake, stream = lake_of('options = {includeHeaders = "true"}')
    jet.publish(f"{stream.name.lower()}.a", b'{"item": "a"}', headers={"Trace": "t"})
    lake.land()
    file = lake.folder / "orders.toml"
    file.write_text(file.read_text().replace('"true"', '"false"'))
    lake.set_schema(properties=NUMBERS)
    assert (lake.replay().left, lake.problems()) == (0, [])


def test_letters_of_events(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill, jet: JetStream
) -> None:
    """Events have no schema of the user, so letters stay letters."""
    lake, stream = lake_of()
    file = lake.config.path.parent / "orders.toml"
    text = file.read_text().replace('format = "json"\nschema = "order.json"\ntable', "table")
    text = text.replace(
        'table = "orders"\nformat = "json"\nschema = "order.json"', 'format = "advisory"'
    )
    file.write_text(text)
    lake.config = read_config(file)
    fill(stream, [{"type": 7}, b"x"])
    lake.land()
    assert letters_of(lake.config, lake.config.sources[0]).letters == 2
    state = lake.state()
    assert (lake.replay().left, lake.state()) == (2, state)


def test_a_schema_that_does_not_fit_the_table_changes_nothing(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill
) -> None:
    lake, stream = lake_of()
    fill(stream, [{"id": 1}, {"item": "a"}])
    lake.land()
    lake.set_schema(properties={"id": {"type": "number"}, "item": {"type": "string"}})
    with pytest.raises(SchemaError, match="name another table"):
        lake.replay()
    assert (len(lake.rows()), len(lake.rows(LETTERS)), lake.problems()) == (1, 1, [])
    lake.set_schema(properties=NUMBERS)
    assert lake.replay().landed == 1


def test_letters_that_another_program_removed_are_noticed(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill
) -> None:
    lake, stream = lake_of(sink="parquet")
    fill(stream, without_an_id(20))
    lake.land()
    for file in (lake.config.path / LETTERS).rglob("*.parquet"):
        file.unlink()
    with pytest.raises(JournalError, match=r"18 rows and 0 dead letters .* has 18 and 2"):
        lake.replay()


@pytest.mark.parametrize("has_tables", [False, True])
def test_an_interrupted_replay_from_the_stream_is_to_be_done_first(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill, has_tables: bool
) -> None:
    lake, stream = lake_of()
    fill(stream, without_an_id(20))
    lake.land()
    lake.set_schema(properties=NUMBERS)
    source = lake.config.sources[0]

    def die_after_the_table(at: Any) -> None:
        if at != source.table:
            die()

    with ExitStack() as stack:
        if has_tables:
            stack.enter_context(hooked("replay: before journal", lambda _: die()))
        else:
            stack.enter_context(hooked("replay: before table", die_after_the_table))
        with pytest.raises(Died):
            replay(None, lake.config, source, 1, None)
    before = lake.state()
    with pytest.raises(JournalError, match=r"first run .* replay --from 1 --to 20"):
        lake.replay()
    assert lake.state() == before
    replay(None, lake.config, source, 1, 21)
    assert (lake.replay().letters, len(lake.rows()), lake.problems()) == (0, 20, [])


def test_letters_are_counted_by_reason(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill
) -> None:
    lake, stream = lake_of()
    fill(stream, [{"id": "a"}, {"id": 2}, {"id": "b"}, {}, b"x", {"id": "c"}])
    lake.land()
    found = letters_of(lake.config, lake.config.sources[0])
    assert found.letters == 5
    assert not found.is_interrupted
    (first, *others) = found.reasons
    assert (first.reason, first.count) == ("id: expected an integer, got text", 3)
    assert (first.first_seq, first.last_seq) == (1, 6)
    assert first.first_time <= first.last_time
    assert sorted((each.reason, each.first_seq, each.last_seq) for each in others) == [
        ("id: required member is missing", 4, 4), ("not JSON: Expecting value", 5, 5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("b[]: expected an integer, got text 'x, got y'…", "b[]: expected an integer, got text"),
        ("a: expected text, got 1.5", "a: expected text, got a number"),
        ("a: expected text, got an object", "a: expected text, got an object"),
        ("a: 300 does not fit a signed integer", "a: a value does not fit a signed integer"),
        ("a: text '1: 2' is not a timestamp: hour must be", "a: a value is not a timestamp"),
        ("not UTF-8 at byte 7", "not UTF-8"),
        ("not JSON: Extra data at line 1, column 9", "not JSON: Extra data"),
        ("headers: not a NATS header block: b'x'", "headers: not a NATS header block"),
        ("nested too deeply", "nested too deeply"),
    ],
)  # fmt: skip
def test_a_reason_is_counted_without_its_value(reason: str, kind: str) -> None:
    assert kind_of_reason(reason) == kind


def test_letters_are_published_once(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill, jet: JetStream
) -> None:
    lake, stream = lake_of('options = {includeHeaders = "true"}')
    own = stream.name.lower()
    jet.publish(f"{own}.a", b"\xff\x00", headers={"Trace": "t"})
    fill(stream, without_an_id(30))
    lake.land()
    taker = jet.create_stream(StreamConfig(name=f"{stream.name}-BAD", subjects=[f"bad.{own}"]))
    source = lake.config.sources[0]
    done = publish_letters(lake.config, source, f"bad.{own}")
    assert (done.stream, done.published, done.repeated, done.window) == (taker.name, 4, 0, 120.0)
    again = publish_letters(lake.config, source, f"bad.{own}")
    assert (again.published, again.repeated) == (0, 4)
    first, *others = taker.read()
    assert first.data == b"\xff\x00"
    names = ("Dead-Stream", "Dead-Sequence", "Dead-Subject", "Dead-Cause")
    assert [first.headers[name] for name in names] == [stream.name, "1", f"{own}.a", "schema"]
    assert first.headers["Dead-Reason"].startswith("not UTF-8 at byte 0")
    assert '"Trace"' in first.headers["Dead-Headers"]
    assert [each.headers["Dead-Sequence"] for each in others] == ["11", "21", "31"]
    assert len(lake.rows(LETTERS)) == 4, "they stay"


def test_a_letter_that_is_too_large_leaves_the_others(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill, jet: JetStream
) -> None:
    lake, stream = lake_of(sink="parquet")
    fill(stream, [b"x" * (1024 * 1024 - 10), b"a", b"y" * 2000, b"b"])
    lake.land()
    subject = f"bad.{stream.name.lower()}"
    taker = jet.create_stream(
        StreamConfig(name=f"{stream.name}-BAD", subjects=[subject], max_msg_size=1500)
    )
    done = publish_letters(lake.config, lake.config.sources[0], subject)
    assert (done.published, done.repeated, done.refused) == (2, 0, [1, 3])
    assert "the server accepts 1048576" in str(done.reason)
    assert [each.headers["Dead-Sequence"] for each in taker.read()] == ["2", "4"]


def test_letters_go_to_no_stream_that_would_land_them_again(
    lake_of: Callable[..., tuple[Lake, Stream]], fill: Fill
) -> None:
    lake, stream = lake_of()
    fill(stream, [{}])
    lake.land()
    source: Any = lake.config.sources[0]
    with pytest.raises(OptionError, match="would land the letters as new messages"):
        publish_letters(lake.config, source, f"{stream.name.lower()}.a")
    with pytest.raises(OptionError, match="no stream takes"):
        publish_letters(lake.config, source, "of.no.stream")
