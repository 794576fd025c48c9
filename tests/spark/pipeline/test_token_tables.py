"""Tables by a token of the subject: their names, their limit, and each message in one of them.

Neither Spark nor a server has a part in most of them: see `tests.spark.drivers`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from attrs import evolve

from js_sync import Stream
from tests.hooked import hooked
from tests.mortal_store import Died
from tests.spark.drivers import (
    SOURCE,
    FakeEngine,
    FakeLeader,
    changed,
    journal_in,
    land_all,
    landed,
    relaxed,
)
from tests.spark.pipelines import SINKS, config_of, counted, rows_of
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.errors import ConfigError, JournalError, OptionError
from twinstream.spark.landing.token_tables import named
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.declarative import write_project
from twinstream.spark.pipeline.letters.replay import replay_letters
from twinstream.spark.pipeline.maintenance.compact import all_tables, compact
from twinstream.spark.pipeline.maintenance.replay import replay
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.settings.config import NAME
from twinstream.spark.pipeline.state.landed_rows import possible_tables, read_landed, tables_of
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BY_TOKEN = SOURCE.replace('"orders"\nformat', '"orders_{subject[2]}"\nformat')


@pytest.fixture(params=SINKS)
def config(request: pytest.FixtureRequest, tmp_path: Path) -> PipelineConfig:
    return config_of(tmp_path, request.param, "nats://127.0.0.1:1", BY_TOKEN)


def of_subjects(*subjects: str) -> FakeEngine:
    """Return an engine whose messages have the subjects in turn, from sequence 1 on."""
    return FakeEngine(subject=lambda seq: subjects[(seq - 1) % len(subjects)])


def names_in(config: PipelineConfig) -> list[str]:
    return open_sink(config).existing("")


def test_no_two_tokens_have_the_same_table() -> None:
    signs = "ab_AB-0é.é"
    tokens = [
        "".join(each) for size in range(1, 5) for each in itertools.product(signs, repeat=size)
    ]
    tokens += ["x" * size for size in range(80, 120)] + ["None", "none", "none_", "É" * 40]
    names = {named("orders_", each) for each in set(tokens)} | {named("orders_", None)}
    assert len({each.lower() for each in names}) == len(set(tokens)) + 1
    assert all(NAME.fullmatch(each) for each in names)
    assert named("o_", "new-york2") == "o_new-york2"
    assert [named("o_", each) for each in ("EU", "a_b", "é", None)] == [
        *("o__e_u", "o_a__b", "o__195_169", "o_none_"),
    ]


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("{subject[2]}", 'needs a name before the token, as in "orders_{subject'),
        ("a_{subject[0]}", "tokens are counted from 1"),
        ("a_{subject[1]}_b", "not a name with a token of the subject at its end"),
        ("a_{subject[1]}{subject[2]}", "'a_{subject.1.}' may contain only letters"),
        ("a_{region}", "not a name with a token"),
        ("_a{subject[1]}", "may contain only letters"),
        ("a" * 51 + "{subject[1]}", "more than 50 characters before the token"),
    ],
)
def test_wrong_names(tmp_path: Path, table: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"orders: table: .*{reason}"):
        config_of(
            tmp_path, "delta", "nats://h", SOURCE.replace('table = "orders"', f'table = "{table}"')
        )


def test_names_of_other_tables(tmp_path: Path) -> None:
    for other in ("orders_x", "Orders_Y_{subject[1]}", "orders_"):
        with pytest.raises(ConfigError, match=r"table: .*(choose another|used more than once)"):
            config_of(tmp_path, "delta", "nats://h", BY_TOKEN, f'stream = "T"\ntable = "{other}"')
    with pytest.raises(ConfigError, match="as the table 'dead_letters' does"):
        config_of(tmp_path, "delta", "nats://h", BY_TOKEN.replace("orders_{", "dead_{"))
    with pytest.raises(ConfigError, match="max_tables: is for tables by a token"):
        config_of(tmp_path, "delta", "nats://h", SOURCE + "max_tables = 3")
    assert config_of(tmp_path, "delta", "nats://h", BY_TOKEN, 'stream = "T"\ntable = "orders"')


def test_tables_appear_with_their_first_message(config: PipelineConfig) -> None:
    leader, before = FakeLeader(10), ["s.eu", "s.EU", "s"]
    land_all(config, leader, engine=of_subjects(*before))
    assert names_in(config) == [
        "_pipeline",
        "dead_letters",
        "orders__e_u",
        "orders_eu",
        "orders_none_",
    ]
    leader.last = 20
    land_all(config, leader, engine=of_subjects("s.us.x"))
    assert landed(config) == (20, 20)
    assert isinstance(config.path, Path)
    subjects = {
        table.name: {row["_subject"] for row in rows_of(table, config.sink)}
        for table in config.path.glob("orders*")
    }
    assert subjects == {
        "orders_eu": {"s.eu"}, "orders__e_u": {"s.EU"}, "orders_none_": {"s"},
        "orders_us": {"s.us.x"},
    }  # fmt: skip
    last = journal_in(config).last()
    assert last is not None
    assert set(last.tables) == {"orders_us", "dead_letters/source=orders"}
    check(config, 20)


def check(config: PipelineConfig, last: int) -> None:
    """Compare all rows with the stream, as verify does."""
    (source,) = config.sources
    entries = journal_in(config).entries()
    tables = tables_of(source, entries.values())
    assert set(possible_tables(source, open_sink(config))) == set(tables)
    rows = read_landed(open_sink(config), source, tables, 0, 10_000)
    assert (rows.count, rows.distinct) == (last, last)
    assert rows.by_batch() == {number: each.messages for number, each in entries.items()}


def test_maintenance_of_all_tables(config: PipelineConfig) -> None:
    land_all(config, FakeLeader(30), engine=of_subjects("s.eu", "s.us"))
    assert set(all_tables(config)) == {"orders_eu", "orders_us", "dead_letters/source=orders"}
    assert {each.table: each.after for each in compact(config)} == {
        "orders_eu": 1, "orders_us": 1, "dead_letters/source=orders": 1,
    }  # fmt: skip
    vacuum(config, keep=0)
    check(config, 30)
    local = relaxed(config)
    report = replay_letters(None, local, local.sources[0])
    assert (report.letters, report.left) == (3, 0)
    check(config, 30)
    assert counted(config.path / "orders_us", config.sink) == (15, 15)


def test_more_tables_than_allowed(config: PipelineConfig) -> None:
    """The tables of earlier batches count, too; nothing is lost."""
    few = changed(config, max_tables=3)
    land_all(few, FakeLeader(10), engine=of_subjects("s.a", "s.b"))
    engine = of_subjects("s.c", "s.d")
    reason = "has more than 3 values, each with a table orders_…, the last one orders_d"
    with pytest.raises(OptionError, match=reason):
        land_all(few, FakeLeader(20), engine=engine)
    assert landed(config) == (10, 10)
    assert "orders_c" not in names_in(config)
    land_all(changed(config, max_tables=4), FakeLeader(20), engine=engine)
    check(config, 20)
    assert len(journal_in(config).entries()) == 2
    many = of_subjects(*(f"s.x{at}" for at in range(10)))
    with pytest.raises(OptionError, match="has more than 4 values"):
        land_all(changed(config, max_tables=4), FakeLeader(30), engine=many)


@pytest.mark.parametrize("at", range(7))
def test_a_driver_that_dies_between_two_tables(config: PipelineConfig, at: int) -> None:
    engine, left = of_subjects("s.a", "s.b", "s.c"), [at]

    def die(_: object) -> None:
        if not left[0]:
            raise Died
        left[0] -= 1

    with hooked("staging: before put", die), pytest.raises(Died):
        land_all(config, FakeLeader(25), engine=engine)
    land_all(config, FakeLeader(25), engine=engine)
    check(config, 25)


def test_a_table_that_the_stream_no_longer_has(config: PipelineConfig) -> None:
    """An earlier attempt has added a table, and this one has no message of it any more."""
    left = [1]

    def die(_: object) -> None:
        if not left[0]:
            raise Died
        left[0] -= 1

    with hooked("staging: before put", die), pytest.raises(Died):
        land_all(config, FakeLeader(10), engine=of_subjects("s.a", "s.b"))
    assert "orders_a" in names_in(config)
    with pytest.raises(JournalError, match=r"batch 0 .* has 15 rows of 10 sequences"):
        land_all(config, FakeLeader(10), engine=of_subjects("s.b"))


def test_a_table_of_another_writer(config: PipelineConfig, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    source = SOURCE.replace('"orders"', '"orders_x"')
    foreign = evolve(config_of(other, config.sink, "nats://127.0.0.1:1", source), path=config.path)
    land_all(foreign, FakeLeader(10))
    with pytest.raises(JournalError, match="table orders_x has rows of batch 0 or later"):
        land_all(config, FakeLeader(10))


def test_partitions_and_tables_by_subject(config: PipelineConfig) -> None:
    (source,) = config_of(
        Path(str(config.path)).parent, config.sink, "nats://127.0.0.1:1",
        BY_TOKEN + 'partition_by = ["subject[3]", "month(_timestamp)"]\nmax_partitions = 4\n',
    ).sources  # fmt: skip
    both = evolve(config, sources=(source,))
    land_all(both, FakeLeader(25), engine=of_subjects("s.a.x", "s.b.x", "s.b.y"))
    check(both, 25)
    with pytest.raises(OptionError, match="more than 4 partitions"):
        land_all(both, FakeLeader(35), engine=of_subjects(*(f"s.{at}.{at}" for at in range(5))))


def test_on_s3(tmp_path: Path, bucket: ObjectFolder) -> None:
    config = evolve(config_of(tmp_path, "delta", "nats://127.0.0.1:1", BY_TOKEN), path=bucket)
    leader = FakeLeader(20)
    land_all(config, leader, engine=of_subjects("s.a", "s.b"))
    leader.last = 30
    land_all(config, leader, engine=of_subjects("s.b", "s.c"))
    check(config, 30)
    assert open_sink(config).existing("orders_") == ["orders_a", "orders_b", "orders_c"]
    assert {each.after for each in compact(config) if each.table != "orders_c"} == {1}
    check(config, 30)


def test_raw_messages(tmp_path: Path) -> None:
    source = 'stream = "S"\nname = "orders"\ntable = "raw_{subject[1]}"\nmax_messages = 10\n'
    config = config_of(tmp_path, "parquet", "nats://127.0.0.1:1", source)
    land_all(config, FakeLeader(10), engine=of_subjects("a.b", "c.b"))
    assert counted(tmp_path / "lake" / "raw_a", "parquet", "seq") == (5, 5)
    assert counted(tmp_path / "lake" / "raw_c", "parquet", "seq") == (5, 5)
    assert json.loads(rows_of(tmp_path / "lake" / "raw_c", "parquet")[0]["data"]) == {"id": 2}


def test_no_project_for_spark_has_them(config: PipelineConfig, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a table by a token of the subject, which the project"):
        write_project(config, tmp_path / "project")


@pytest.mark.parametrize("sink", SINKS)
def test_a_stream_is_landed_verified_and_purged(
    tmp_path: Path,
    sink: str,
    server: NatsServer,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} if at % 7 else {} for at in range(40)], subjects=("eu.1", "US", "x_y"))
    source = (
        f'stream = "{stream.name}"\nname = "orders"\nformat = "json"\nschema = "order.json"\n'
        'table = "orders_{subject[2]}"\npartition_by = ["subject[3]"]\ncommit = "purge"\n'
        "max_messages = 15\noptions = {minPartitions = 2}\n"
    )
    config = config_of(tmp_path, sink, server.url, source, engine="local")
    assert run(None, config, once=True) == {}
    assert names_in(config) == [
        *("_pipeline", "dead_letters", "orders__u_s", "orders_eu", "orders_x__y"),
    ]
    assert stream.info().state.messages == 0
    assert landed(config) == (40, 40)
    fill(stream, [{"id": at} for at in range(10)], subjects=("de",))
    kept = changed(config, commit="none")
    assert run(None, kept, once=True) == {}
    assert landed(config) == (50, 50)
    (verdict,) = verify(kept)
    assert (verdict.rows, verdict.held, verdict.problems) == (50, 10, [])
    again = replay(None, kept, kept.sources[0], 41, None)
    assert [each.messages for each in again] == [10]
    (verdict,) = verify(kept)
    assert (verdict.rows, verdict.problems) == (50, [])


@pytest.mark.parametrize("sink", SINKS)
def test_spark_lands_partitions_and_tables(
    tmp_path: Path,
    sink: str,
    spark: SparkSession,
    server: NatsServer,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} for at in range(30)], subjects=("eu.x", "us.y"))
    source = (
        f'stream = "{stream.name}"\nname = "orders"\nformat = "json"\nschema = "order.json"\n'
        'table = "orders_{subject[2]}"\npartition_by = ["subject[3]", "day(_timestamp)"]\n'
        "max_tables = 2\nmax_messages = 30\noptions = {minPartitions = 2}\n"
    )
    config = config_of(tmp_path, sink, server.url, source, engine="spark")
    assert run(spark, config, once=True) == {}
    assert landed(config) == (30, 30)
    last = journal_in(config).last()
    assert last is not None
    assert {name: each.files for name, each in last.tables.items()} == {
        "orders_eu": 2, "orders_us": 2,
    }  # fmt: skip
    fill(stream, [{"id": 1}], subjects=("de.x",))
    (error,) = run(spark, config, once=True).values()
    assert (
        "token 2 of the subject or key has more than 2 values, each with a table orders_" in error
    )
    assert run(spark, changed(config, max_tables=3), once=True) == {}
    assert landed(config) == (31, 31)
    (verdict,) = verify(config)
    assert (verdict.rows, verdict.problems) == (31, [])
