"""Running pipelines: every message once in its table, whatever the sink, over runs and crashes."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

import pytest
from attrs import evolve, frozen
from click.testing import CliRunner
from py4j.protocol import Py4JNetworkError

from js_sync import JetStream, Stream
from tests.hooked import hooked, once
from tests.spark.pipelines import (
    ENGINE,
    MAX_DELIVER,
    SINKS,
    config_of,
    counted,
    files_of,
    rows_of,
    write_config,
)
from twinstream.cli.groups import twinstream
from twinstream.spark.errors import DataLossError, SparkSourceError
from twinstream.spark.pipeline.maintenance.compact import compact
from twinstream.spark.pipeline.maintenance.replay import replay
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.pipeline_events import Ended, Failed, Happening, Landed, Released
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.settings.config import PipelineConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.settings.toml_config import read_config
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[..., Stream]
Fill = Callable[..., None]


@pytest.fixture(autouse=True, params=["spark", "local"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The engine of all pipelines; a session of Spark is not used by the local one."""
    monkeypatch.setenv(ENGINE, request.param)
    return str(request.param)


@pytest.fixture
def runs(spark: SparkSession) -> Callable[..., list[Happening]]:
    """Runs a pipeline to the end of its streams, which must go well."""

    def once(config: PipelineConfig, **options: bool) -> list[Happening]:
        heard: list[Happening] = []
        failed = run(spark, config, once=True, tell=heard.append, **options)
        assert failed == {}, heard
        return heard

    return once


def orders(stream: Stream, more: str = "") -> str:
    return f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\nformat = "json"\n' + (
        f'schema = "order.json"\n{more}'
    )


@pytest.mark.parametrize("sink", SINKS)
def test_lands_several_streams_and_continues(
    sink: str,
    runs: Callable[..., list[Happening]],
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
) -> None:
    typed, events = make_stream(), make_stream()
    fill(typed, [b"broken" if at == 25 else {"id": at} for at in range(50)])
    typed.delete_message(40)
    fill(events, [{**MAX_DELIVER, "stream_seq": at} for at in range(5)])
    config = config_of(
        tmp_path,
        sink,
        server.url,
        orders(typed, 'max_messages = 20\ncommit = "bookmark"'),
        f'stream = "{events.name}"\nname = "events"\nformat = "advisory"\ncommit = "purge"',
    )
    heard = runs(config)
    batches = [each.entry for each in heard if isinstance(each, Landed) and each.source == "orders"]
    # With gaps in the stream, a batch may be up to a tenth below the limit.
    assert [each.batch for each in batches] == [0, 1, 2]
    assert [each.start for each in batches] == [1, *(each.end for each in batches[:-1])]
    assert batches[-1].end == 51
    assert all(18 <= each.end - each.start <= 21 for each in batches[:-1])
    assert [each.dead_letters for each in batches] == [0, 1, 0]
    assert sum(each.messages for each in batches) == 49
    lake = tmp_path / "lake"
    assert counted(lake / "orders", sink) == (48, 48)
    (letter,) = rows_of(lake / "dead_letters" / "source=orders", sink)
    assert (letter["_seq"], letter["_raw"], letter["_batch_id"]) == (26, b"broken", 1)
    assert sorted(row["stream_seq"] for row in rows_of(lake / "max_deliver", sink)) == [*range(5)]

    assert typed.get_consumer("orders-orders").info().num_pending == 0, "the bookmark is at the end"
    assert events.info().state.messages == 0, "what is landed was purged"
    assert Released("events", "purge", 6, 5) in heard

    fill(typed, [{"id": 50}])
    assert typed.get_consumer("orders-orders").info().num_pending == 1, "the lag is in any tool"
    fill(events, [{**MAX_DELIVER, "stream_seq": 5}])
    runs(config)
    assert counted(lake / "orders", sink) == (49, 49)
    assert counted(lake / "max_deliver", sink) == (6, 6)
    verdicts = list(verify(config))
    assert [(each.problems, each.rows, each.gaps) for each in verdicts] == [([], 50, 1), ([], 6, 0)]
    assert not (lake / "_staging").exists()


def test_file_of_a_stream_has_the_schemas_of_its_tables(
    runs: Callable[..., list[Happening]],
    server: NatsServer,
    jet: JetStream,
    make_stream: Make,
    tmp_path: Path,
) -> None:
    name = make_stream().name
    subject = name.lower()
    for number in range(3):
        jet.publish(f"{subject}.placed", b'{"id": %d}' % number)
        jet.publish(f"{subject}.refunds", b'{"cents": %d}' % number)
    contracts = tmp_path / "stream.yaml"
    contracts.write_text(
        f"name: {name}\nsubjects: [{subject}.>]\npayloads:\n  {subject}.placed: order.json\n"
        f"  {subject}.refunds: {{properties: {{cents: {{type: integer}}}}, required: [cents]}}\n"
    )
    sources = [
        f'stream = "{name}"\nname = "{table}"\ntable = "{table}"\nformat = "json"\n'
        f'payloads = "stream.yaml"\nsubjects = ["{subject}.{table}"]'
        for table in ("placed", "refunds")
    ]
    runs(config_of(tmp_path, "parquet", server.url, *sources))
    for table, column in (("placed", "id"), ("refunds", "cents")):
        rows = rows_of(tmp_path / "lake" / table, "parquet")
        assert sorted(row[column] for row in rows) == [0, 1, 2]
    assert not files_of(tmp_path / "lake" / "dead_letters", "parquet")


@pytest.mark.parametrize("sink", SINKS)
def test_tables_are_replayed_compacted_and_vacuumed(
    sink: str,
    spark: SparkSession,
    runs: Callable[..., list[Happening]],
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at, "item": "x"} if at % 2 else {"id": at} for at in range(30)])
    file = write_config(tmp_path, sink, server.url, orders(stream, "max_messages = 10"))
    schema = tmp_path / "order.json"
    wanted = schema.read_text()
    schema.write_text('{"required": ["item"], "properties": {"item": {"type": "string"}}}')
    runs(read_config(file))
    lake = tmp_path / "lake"
    table, letters = lake / "orders", lake / "dead_letters" / "source=orders"
    assert (counted(table, sink), counted(letters, sink)) == ((15, 15), (15, 15))

    # With the right schema the dead letters of two batches find their way into the table, which
    # gets the new column; doing it again changes nothing.
    schema.write_text(wanted)
    config = read_config(file)
    for _ in range(2):
        again = replay(spark, config, config.sources[0], 5, 15)
        assert [(each.batch, each.dead_letters) for each in again] == [(0, 0), (1, 0)]
        assert (counted(table, sink), counted(letters, sink)) == ((25, 25), (5, 5))
    ids = {row["_seq"]: row.get("id") for row in rows_of(table, sink)}
    assert [ids.get(seq) for seq in (1, 2, 21, 22)] == [0, 1, None, None]

    fill(stream, [{"id": 30}])
    runs(config)
    before = len(files_of(table, sink))
    joined = {each.table: (each.before, each.after) for each in compact(config)}
    assert joined["orders"] == (before, 1)
    assert len(files_of(table, sink)) == 1
    assert counted(table, sink) == (26, 26)
    (verdict,) = verify(config)
    assert (verdict.problems, verdict.rows, verdict.batches) == ([], 31, 4)

    # The command uses the session of its process.
    words = ["pipeline", "replay", "--config", str(file), "--from", "21", "--to", "21", "--yes"]
    result = CliRunner().invoke(twinstream, words)
    assert result.stdout.endswith(" in 1 batch again, 0 dead letters\n"), result.stderr
    assert (counted(table, sink), counted(letters, sink)[0]) == ((31, 31), 0)
    assert vacuum(config, dry_run=True) == []
    gone = vacuum(config, keep=0)
    assert gone
    assert not any(each.path.exists() for each in gone)
    assert counted(table, sink) == (31, 31)

    stream.delete_message(3)
    with pytest.raises(DataLossError, match="the first has sequence 3"):
        replay(spark, config, config.sources[0], 1, 5)
    assert counted(table, sink) == (31, 31)


def test_continues_after_replaced_messages(
    runs: Callable[..., list[Happening]],
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
) -> None:
    stream = make_stream(max_msgs_per_subject=1, max_age=timedelta(hours=1))
    config = config_of(tmp_path, "parquet", server.url, orders(stream))
    for _ in range(3):
        fill(stream, [{"id": at} for at in range(9)])
        runs(config)
        (verdict,) = verify(config)
        assert verdict.problems == []
    fill(stream, [{"id": at} for at in range(9)])
    runs(config)
    assert counted(tmp_path / "lake" / "orders", "parquet") == (12, 12)


def test_verify_finds_what_is_wrong_and_purge_keeps_it(
    spark: SparkSession, server: NatsServer, make_stream: Make, fill: Fill, tmp_path: Path
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} for at in range(20)])
    source = orders(stream, "max_messages = 10\nstart = 3\ncommit = 'purge'")
    config = config_of(tmp_path, "parquet", server.url, source)
    failed = run(spark, config, once=True)
    assert "2 messages, the first with sequence 1, that no table has" in failed["orders"]
    assert stream.info().state.messages == 20, "nothing was purged"
    assert [each.problems for each in verify(config)] == [[]]

    table = tmp_path / "lake" / "orders"
    (table / "batch_id=0").rename(tmp_path / "away")
    (verdict,) = verify(config)
    assert verdict.missing == 10
    assert "10 messages of the stream are in no table: 3, 4, 5, 6, 7, …" in verdict.problems
    assert "batch 0 has 0 rows in the tables, the journal has 10" in verdict.problems
    (tmp_path / "away").rename(table / "batch_id=0")
    shutil.copytree(table / "batch_id=0", table / "batch_id=7")
    (verdict,) = verify(config)
    assert verdict.problems[0] == "sequences with more than one row: 3, 4, 5, 6, 7"


def on_fire() -> NoReturn:
    raise RuntimeError("disk on fire")


@pytest.mark.parametrize("sink", SINKS)
def test_failed_batch_is_finished_and_a_lost_journal_refused(
    sink: str,
    spark: SparkSession,
    runs: Callable[..., list[Happening]],
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} if at else b"broken" for at in range(10)])
    config = config_of(tmp_path, sink, server.url, orders(stream))
    with hooked("journal: before landed", once(on_fire)):
        heard = runs(config)
    assert [each for each in heard if isinstance(each, Failed)] == [
        Failed("orders", "disk on fire", 0.1, "RuntimeError")
    ]
    table = tmp_path / "lake" / "orders"
    assert counted(table, sink) == (9, 9)
    assert counted(tmp_path / "lake" / "dead_letters" / "source=orders", sink) == (1, 1)

    # The tables have a batch that the journal has only planned.
    fill(stream, [{"id": at} for at in range(10, 15)])
    with hooked("journal: before landed", lambda _: on_fire()):
        assert run(spark, config, once=True) == {"orders": "disk on fire"}
    assert counted(table, sink) == (14, 14)
    state, away = Folders(config.path).state / "orders", tmp_path / "away"
    shutil.move(state, away)
    failed = run(spark, config, once=True)
    assert "table orders has rows of batch 0 or later" in failed["orders"]
    assert counted(table, sink) == (14, 14)
    shutil.rmtree(state)
    shutil.move(away, state)
    fill(stream, [{"id": 15}])
    runs(config)
    assert counted(table, sink) == (15, 15)
    assert [(each.problems, each.rows) for each in verify(config)] == [([], 16)]
    runs(config)
    assert counted(table, sink) == (15, 15)


@pytest.mark.parametrize("sink", SINKS)
def test_column_keeps_its_type_when_columns_are_added(
    sink: str,
    spark: SparkSession,
    runs: Callable[..., list[Happening]],
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    config = config_of(tmp_path, sink, server.url, orders(stream))

    def schema(**members: str) -> PipelineConfig:
        kinds = {name: {"type": kind} for name, kind in members.items()}
        (tmp_path / "order.json").write_text(json.dumps({"type": "object", "properties": kinds}))
        return read_config(tmp_path / "orders.toml")

    fill(stream, [{"id": 1, "item": "a"}])
    runs(config)
    fill(stream, [{"id": "two", "item": "b", "count": 2}, b"broken"])
    failed = run(spark, schema(id="string", count="integer"), once=True)
    assert "column 'id' of the table orders was landed as" in failed["orders"]
    table, dead = tmp_path / "lake" / "orders", tmp_path / "lake" / "dead_letters/source=orders"
    assert counted(table, sink) == (1, 1)
    # With a schema that fits, the batch that was begun is finished.
    runs(schema(id="integer", count="integer"))
    assert (counted(table, sink), counted(dead, sink)) == ((1, 1), (2, 2))
    fill(stream, [{"id": 3, "count": 3}])
    runs(schema(id="integer", count="integer"))
    assert counted(table, sink) == (2, 2)


@pytest.mark.parametrize("sink", SINKS)
def test_another_schema_does_not_finish_a_batch_unnoticed(
    sink: str,
    spark: SparkSession,
    runs: Callable[..., list[Happening]],
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
) -> None:
    """A message that fits only now would be in neither table: one is left as it was put."""
    stream = make_stream()
    fill(stream, [{"id": 1}, {"item": "no id"}])
    config = config_of(tmp_path, sink, server.url, orders(stream))
    strict = (tmp_path / "order.json").read_text()

    def die_at_dead_letters(target: Path) -> None:
        if "dead_letters" in str(target):
            on_fire()

    with hooked("staging: before put", die_at_dead_letters):
        assert run(spark, config, once=True) == {"orders": "disk on fire"}
    (tmp_path / "order.json").write_text(strict.replace('["id"]', "[]"))
    failed = run(spark, read_config(tmp_path / "orders.toml"), once=True)
    assert "the stream 2 messages: it was begun with another schema" in failed["orders"]
    (tmp_path / "order.json").write_text(strict)
    runs(read_config(tmp_path / "orders.toml"))
    assert counted(tmp_path / "lake" / "orders", sink) == (1, 1)
    assert counted(tmp_path / "lake" / "dead_letters" / "source=orders", sink) == (1, 1)


@pytest.mark.parametrize("sink", SINKS)
def test_two_pipelines_do_not_land_into_one_table(
    sink: str,
    spark: SparkSession,
    runs: Callable[..., list[Happening]],
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
) -> None:
    one, other = make_stream(), make_stream()
    fill(one, [{"id": 1}])
    fill(other, [{"id": at} for at in range(5)])
    runs(config_of(tmp_path, sink, server.url, orders(one)))
    table = tmp_path / "lake" / "orders"
    second = orders(other).replace('name = "orders"', 'name = "second"')
    failed = run(spark, config_of(tmp_path, sink, server.url, second), once=True)
    assert "table orders has rows of batch 0 or later, which source second" in failed["second"]
    assert counted(table, sink) == (1, 1)
    runs(config_of(tmp_path, sink, server.url, second.replace('table = "orders"', 'table = "o2"')))
    assert counted(tmp_path / "lake" / "o2", sink) == (5, 5)


@pytest.mark.parametrize("sink", SINKS)
def test_rows_of_an_attempt_count_after_their_messages_were_removed(
    sink: str,
    runs: Callable[..., list[Happening]],
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} if at else b"broken" for at in range(10)])
    lenient = "options = { failOnDataLoss = false }\n"
    config = config_of(tmp_path, sink, server.url, orders(stream, lenient))
    runs(config)
    fill(stream, [{"id": at} if at else b"broken" for at in range(10)])

    def purge_and_fail() -> None:
        stream.purge()
        on_fire()

    with hooked("journal: before landed", once(purge_and_fail)):
        heard = runs(config)
    assert Failed("orders", "disk on fire", 0.1, "RuntimeError") in heard
    (entry,) = [each.entry for each in heard if isinstance(each, Landed)]
    assert (entry.messages, entry.dead_letters) == (10, 1)
    assert counted(tmp_path / "lake" / "orders", sink) == (18, 18)
    assert counted(tmp_path / "lake" / "dead_letters" / "source=orders", sink) == (2, 2)


class Dying:
    """A session whose Java ends when it runs the tasks of a batch: other calls return itself."""

    defaultParallelism = 2  # noqa: N815  # the name of PySpark

    def __init__(self, started: Callable[[], object]) -> None:
        self.started = started

    def __getattr__(self, name: str) -> Dying:
        return self

    def __call__(self, *_: object, **__: object) -> Dying:
        return self

    def collect(self) -> object:
        self.started()
        raise ConnectionRefusedError(111, "Connection refused")

    def cancelJobGroup(self, group: str) -> None:  # the name of PySpark
        raise Py4JNetworkError("Error while sending or receiving")


@pytest.mark.parametrize("asks", [False, True])
def test_end_of_java_is_reported_as_such(
    spark: SparkSession,
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
    asks: bool,
    engine: str,
) -> None:
    if engine == "local":
        pytest.skip("has no Java")
    asked, heard = threading.Event(), list[Happening]()
    streams = [make_stream(), make_stream()]
    for each in streams:
        fill(each, [b"1"])
    sources = [
        f'stream = "{each.name}"\nname = "{name}"' for each, name in zip(streams, "AB", strict=True)
    ]
    config = config_of(tmp_path, "parquet", server.url, *sources)
    dying = cast(Any, Dying(asked.set if asks else lambda: None))
    with pytest.raises(SparkSourceError, match="Spark's Java process has ended; the next run"):
        run(dying, config, tell=heard.append, asked=asked)
    assert Ended("A") not in heard


def test_json_output_has_the_class_of_a_failed_source(
    spark: SparkSession, server_factory: Callable[..., NatsServer], tmp_path: Path
) -> None:
    server = server_factory("no_auth_user: a\naccounts {A {users: [{user: a, password: b}]}}\n")
    file = write_config(tmp_path, "parquet", server.url, 'stream = "A"\nname = "orders"')
    arguments = ["pipeline", "run", "--config", str(file), "--once", "--json"]
    result = CliRunner().invoke(twinstream, arguments)
    assert result.exit_code == 1
    details = {"kind": "JetStreamNotEnabled", "err_code": 10039}
    failure, last = json.loads(result.stderr), json.loads(result.stdout.splitlines()[-1])
    assert failure == {"error": f"source orders: {last['error']}", **details}
    assert last.items() >= {**details, "event": "failed", "retry_in": None}.items()


def test_runs_until_somebody_asks_to_stop(
    spark: SparkSession, server: NatsServer, make_stream: Make, fill: Fill, tmp_path: Path
) -> None:
    stream = make_stream()
    fill(stream, [b"1"])
    config = config_of(
        tmp_path, "parquet", server.url, f'stream = "{stream.name}"\ntable = "t"', every="200ms"
    )
    # What is there is landed at once, however long the pauses are.
    asked = threading.Event()
    rare = evolve(config, every=300 * 3600.0)
    assert run(spark, rare, tell=lambda each: _set_when_landed(asked, each), asked=asked) == {}
    fill(stream, [b"more"])
    asked = threading.Event()
    seen: list[int] = []

    def follow(happening: Happening) -> None:
        if isinstance(happening, Landed):
            seen.append(happening.entry.end)
            if len(seen) == 3:
                asked.set()
            else:
                fill(stream, [b"more"])

    assert run(spark, config, tell=follow, asked=asked) == {}
    assert seen == [3, 4, 5]
    assert counted(tmp_path / "lake" / "t", "parquet", "seq") == (4, 4)


def _set_when_landed(asked: threading.Event, happening: Happening) -> None:
    if isinstance(happening, Landed):
        asked.set()


@frozen
class _Asked:
    """A request to stop that is made as soon as a folder has a file."""

    folder: Path

    def is_set(self) -> bool:
        return self.folder.exists() and any(self.folder.iterdir())


@pytest.mark.parametrize("once", [True, False])
def test_stops_between_two_of_many_batches(
    once: bool,
    spark: SparkSession,
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
) -> None:
    """While messages wait, one batch follows the other without a pause."""
    stream = make_stream()
    fill(stream, [{"id": at} for at in range(40)])
    config = config_of(tmp_path, "parquet", server.url, orders(stream, "max_messages = 2"))
    heard = list[Happening]()
    often = evolve(config, every=0.1)
    # Events are reported later than batches land.
    asked = _Asked(config.path / "_pipeline" / "orders" / "landed")
    assert run(spark, often, once=once, tell=heard.append, asked=asked) == {}
    landed = [each.entry.batch for each in heard if isinstance(each, Landed)]
    assert heard[-1] == Ended("orders")
    assert landed == [0]

    assert run(spark, config, once=True, tell=heard.append) == {}
    assert [each.entry.batch for each in heard if isinstance(each, Landed)] == list(range(20))
    assert counted(config.path / "orders", "parquet") == (40, 40)
    assert [each.problems for each in verify(config)] == [[]]
