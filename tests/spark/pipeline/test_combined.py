"""Partitions, tables by a token, bounds, buckets and rewrites in combination, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from js_sync import JetStream
from tests.mortal_store import Died
from tests.spark.drivers import (
    SOURCE,
    FakeEngine,
    FakeLeader,
    batches_of,
    journal_in,
    land_all,
    landed,
)
from tests.spark.pipelines import SINKS, config_of, files_of, rows_of
from twinstream.lake.land_batch import BatchLander
from twinstream.models import KeyValueConfig
from twinstream.spark.errors import CheckpointError, ConfigError, SchemaError
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.letters.replay import replay_letters
from twinstream.spark.pipeline.maintenance.compact import compact
from twinstream.spark.pipeline.maintenance.replay import replay
from twinstream.spark.pipeline.maintenance.rewrite import rewrite
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.spark.pipeline.tables.source_columns import refuse_old_columns
from twinstream.testing import NatsServer

TEXT = {"type": "string"}
LONG = {"type": "integer"}
INT = {**LONG, "format": "int32"}


def with_members(
    folder: Path, sink: str, members: dict[str, Any], *lines: str, table: str = "orders"
) -> PipelineConfig:
    """Return a pipeline on this machine whose schema has these members."""
    (folder / "typed.json").write_text(json.dumps({"type": "object", "properties": members}))
    source = SOURCE.replace("order.json", "typed.json").replace('"orders"\nf', f'"{table}"\nf')
    return config_of(folder, sink, "nats://127.0.0.1:1", source + "\n".join(lines), engine="local")


def of_values(*values: dict[str, Any], **more: Any) -> FakeEngine:
    """Return an engine whose messages have the values in turn, from sequence 1 on."""
    return FakeEngine(
        payload=lambda seq: json.dumps(values[(seq - 1) % len(values)]).encode(), **more
    )


def folder_of(config: PipelineConfig, table: str = "orders") -> Path:
    assert isinstance(config.path, Path)
    return config.path / table


def by_seq(config: PipelineConfig, table: str = "orders") -> list[dict[str, Any]]:
    """Return the rows of a table, with the values of its partitions."""
    folder = folder_of(config, table)
    if config.sink == "delta":
        found = DeltaTable(str(folder)).to_pyarrow_table().to_pylist()
    else:
        # Without types, pyarrow cannot read partitions whose values are all null.
        texts = pa.schema([(each, pa.string()) for each in ("region", "subject_3")])
        known = pa.schema([("batch_id", pa.int64()), *texts])
        hive = ds.partitioning(known, flavor="hive")
        found = ds.dataset(folder, partitioning=hive).to_table().to_pylist()
    return sorted(found, key=lambda row: int(row["_seq"]))


REGIONS: dict[str, Any] = {"region": TEXT, "n": INT}
BY_REGION = 'partition_by = "region"'


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize(
    ("members", "lines", "reason"),
    [
        (REGIONS, (), "with the partitions region, and .* without partitions now"),
        (REGIONS, ('partition_by = "n"',), "with the partitions region, .* the partitions n now"),
        ({**REGIONS, "n": LONG}, (), "with the partitions region, and .* without partitions now"),
        (
            {"area": TEXT, "n": INT},
            ('partition_by = "area"', 'rename = {region = "area"}'),
            "partitions by other columns than .*'region' becomes 'area'.*so name another table",
        ),
        (
            {"area": TEXT, "n": LONG},
            ('partition_by = "area"', 'rename = {region = "area"}'),
            "partitions by other columns than .*'n' is int32 and becomes int64",
        ),
        ({**REGIONS, "region": LONG}, (BY_REGION,), "'region' .* landed as string and is int64"),
    ],
)
def test_other_partitions_are_refused_before_anything_is_done(
    tmp_path: Path, sink: str, members: dict[str, Any], lines: tuple[str, ...], reason: str
) -> None:
    config = with_members(tmp_path, sink, REGIONS, BY_REGION)
    land_all(config, FakeLeader(10), engine=of_values({"region": "eu", "n": 1}, {"n": "letter"}))
    before = by_seq(config)
    other = with_members(tmp_path, sink, members, *lines)
    (source,) = other.sources
    with pytest.raises(SchemaError, match=reason):
        refuse_old_columns(open_sink(other), source, ["orders"])
    with pytest.raises(SchemaError, match=reason):
        replay_letters(None, other, source)
    if members != REGIONS or not lines:
        with pytest.raises(SchemaError, match=reason):
            list(rewrite(other))
    assert by_seq(config) == before
    assert {each["region"] for each in before} == {"eu"}


@pytest.mark.parametrize("sink", SINKS)
def test_raw_tables_keep_their_partitions(tmp_path: Path, sink: str) -> None:
    text = 'stream = "S"\nname = "orders"\ntable = "orders"\nmax_messages = 10\n'
    config = config_of(tmp_path, sink, "nats://h", text + 'partition_by = "subject[2]"')
    land_all(config, FakeLeader(10))
    other = config_of(tmp_path, sink, "nats://h", text + 'partition_by = "day(timestamp)"')
    refuse_old_columns(open_sink(config), config.sources[0], ["orders"])
    with pytest.raises(SchemaError, match="orders was landed with the partitions subject_2"):
        refuse_old_columns(open_sink(other), other.sources[0], ["orders"])


def test_a_start_reads_the_newest_files_of_a_table_with_partitions(tmp_path: Path) -> None:
    config = with_members(
        tmp_path, "parquet", REGIONS, 'partition_by = ["region", "subject[2]", "day(_timestamp)"]'
    )
    land_all(config, FakeLeader(50), engine=of_values({"region": "eu"}, {"region": "us"}))
    for number in range(4):
        for file in files_of(folder_of(config) / f"batch_id={number}", "parquet"):
            Path(file).write_bytes(b"no Parquet")
    refuse_old_columns(open_sink(config), config.sources[0], ["orders"])


def test_letters_of_a_delta_table_by_stream(tmp_path: Path) -> None:
    """The files have no column with the stream then."""
    config = with_members(tmp_path, "delta", {"n": INT, "m": INT}, 'partition_by = "_stream"')
    land_all(config, FakeLeader(10), engine=of_values({"n": 1}, {"n": "x"}))
    fixed = with_members(tmp_path, "delta", {"m": INT}, 'partition_by = "_stream"')
    assert replay_letters(None, fixed, fixed.sources[0]).left == 0
    assert landed(config) == (10, 10)
    assert {each["_stream"] for each in by_seq(config)} == {"S"}


def test_no_partition_has_the_name_of_folders_of_batches(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="batch_id has the name of the folders of batches"):
        with_members(tmp_path, "delta", {"batch_id": INT, "n": INT}, 'partition_by = "batch_id"')


@pytest.mark.parametrize("name", ["revision", "_revision", "seq", "time", "timestamp"])
def test_bounds_of_members_with_names_of_other_columns(tmp_path: Path, name: str) -> None:
    lines = f'bounds = ["{name}", "n"]'
    config = with_members(tmp_path, "delta", {name: TEXT, "n": INT}, lines)
    land_all(config, FakeLeader(20), engine=of_values({"n": 1, name: "b"}, {"n": "x", name: "a"}))
    fixed = with_members(tmp_path, "delta", {name: TEXT}, f'bounds = ["{name}"]')
    assert replay_letters(None, fixed, fixed.sources[0]).left == 0
    assert landed(config) == (20, 20)
    list(compact(config))
    table = DeltaTable(str(config.path / "orders"))
    assert table.file_uris(file_pruning_predicate=f"{name} = 'z'") == []
    assert len(table.file_uris(file_pruning_predicate=f"{name} = 'b'")) == 1


def test_bounds_of_a_renamed_column(tmp_path: Path) -> None:
    config = with_members(tmp_path, "delta", {"n": INT, "m": INT}, 'bounds = ["n", "m"]')
    land_all(config, FakeLeader(20), engine=of_values({"n": 1, "m": 1}))
    lines = 'bounds = ["number", "m"]', 'rename = {n = "number"}'
    new = with_members(tmp_path, "delta", {"number": LONG, "m": INT}, *lines)
    list(rewrite(new))
    table = DeltaTable(str(new.path / "orders"))
    settings = table.metadata().configuration["delta.dataSkippingStatsColumns"]
    assert settings == "_batch_id,_seq,_timestamp,m,number"
    for action in pa.table(table.get_add_actions(flatten=True)).to_pylist():
        assert (action["min.number"], action["max.m"], action["null_count.m"]) == (1, 1, 0)
    assert table.file_uris(file_pruning_predicate="number = 2") == []
    land_all(new, FakeLeader(40), engine=of_values({"n": 3}))
    list(compact(new))
    vacuum(new, keep=0)
    assert [each["number"] for each in by_seq(new)] == [1] * 20 + [3] * 20


def of_subjects(*subjects: str) -> Any:
    return lambda seq: subjects[(seq - 1) % len(subjects)]


@pytest.mark.parametrize("sink", SINKS)
def test_letters_move_to_partitions_of_tables_by_a_token(tmp_path: Path, sink: str) -> None:
    """At first no message fits, so each page has dead letters alone."""
    regions = ["a\x00b", "\U0001f600", "%", "%25", "..", " ", "a\\b", "", None, "EU", "eu", "ß/ẞ"]
    values = [{"region": each, "n": "no number"} for each in regions]
    subjects = of_subjects("s.a.x", "s.É.%", "s.É", "s", "s.a._")
    lines = 'partition_by = ["region", "subject[3]"]'
    table = "orders_{subject[2]}"
    config = with_members(tmp_path, sink, {"region": TEXT, "n": INT}, lines, table=table)
    land_all(config, FakeLeader(60), engine=of_values(*values, subject=subjects))
    assert open_sink(config).existing("orders") == []
    fixed = with_members(tmp_path, sink, {"region": TEXT}, lines, table=table)
    assert replay_letters(None, fixed, fixed.sources[0]).left == 0

    def check() -> None:
        tables = open_sink(fixed).existing("orders")
        assert tables == ["orders__195_137", "orders_a", "orders_none_"]
        rows = [row for each in tables for row in by_seq(fixed, each)]
        assert sorted(row["_seq"] for row in rows) == [*range(1, 61)]
        for row in rows:
            seq, token = row["_seq"], row["_subject"].split(".")[2:]
            assert row["region"] == (regions[(seq - 1) % len(regions)] or None)
            assert row["subject_3"] == (token[0] if token else None)

    check()
    list(compact(fixed))
    vacuum(fixed, keep=0)
    check()


def test_no_old_name_is_that_of_a_partition(tmp_path: Path) -> None:
    lines = 'partition_by = "day(_timestamp)"', 'rename = {timestamp_day = "day"}'
    with pytest.raises(ConfigError, match="'timestamp_day' is no member, but a column"):
        with_members(tmp_path, "delta", {"day": TEXT}, *lines)


@pytest.mark.parametrize("sink", SINKS)
def test_a_partition_of_messages_with_an_old_name(tmp_path: Path, sink: str) -> None:
    """The table has never had the old name."""
    lines = 'partition_by = "region"', 'rename = {area = "region", m = "n"}'
    config = with_members(tmp_path, sink, {"region": TEXT, "n": INT}, *lines)
    values = {"area": "eu", "m": 1}, {"region": "us", "m": "x"}, {"area": "ca", "region": "cb"}
    land_all(config, FakeLeader(30), engine=of_values(*values))
    fixed = with_members(
        tmp_path, sink, {"region": TEXT}, 'partition_by = "region"', 'rename = {area = "region"}'
    )
    assert replay_letters(None, fixed, fixed.sources[0]).left == 0
    assert [row["region"] for row in by_seq(fixed)] == ["eu", "us", "cb"] * 10
    assert list(rewrite(fixed)) == []


@pytest.mark.parametrize("sink", SINKS)
def test_all_tables_by_a_token_are_rewritten(tmp_path: Path, sink: str) -> None:
    table = "orders_{subject[2]}"
    config = with_members(tmp_path, sink, {"n": INT}, table=table)
    subjects = of_subjects("s.a", "s.b", "s")
    land_all(config, FakeLeader(15), engine=of_values({"n": 1}, {"n": "x"}, subject=subjects))
    rename = 'rename = {n = "number"}'
    new = with_members(tmp_path, sink, {"number": LONG}, rename, table=table)
    with pytest.raises(SchemaError, match="run twinstream pipeline rewrite first"):
        replay_letters(None, new, new.sources[0])
    done = [each.table for each in rewrite(new)]
    assert done == ["orders_a", "orders_b", "orders_none_"]
    subjects = of_subjects("s.a", "s.new")
    land_all(new, FakeLeader(30), engine=of_values({"n": 2**40}, subject=subjects))
    assert list(rewrite(new)) == []
    assert landed(new) == (30, 30)
    assert {row["number"] for row in rows_of(folder_of(new, "orders_new"), sink)} == {2**40}
    text = with_members(tmp_path, sink, {"other": TEXT}, table=table)
    assert replay_letters(None, text, text.sources[0]).left == 0
    assert landed(new) == (30, 30)


class DyingSink:
    """Tables whose writer dies before it adds a batch to one of them."""

    def __init__(self, sink: Any, table: str) -> None:
        self._sink, self._table = sink, table

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)

    def batch(self, *args: Any) -> Any:
        made = self._sink.batch(*args)
        put = made.put

        def mortal(table: str, *rest: Any) -> Any:
            if table == self._table:
                raise Died
            return put(table, *rest)

        made.put = mortal
        return made


@pytest.mark.parametrize("sink", SINKS)
def test_a_new_table_of_an_unfinished_batch_and_a_rewrite(tmp_path: Path, sink: str) -> None:
    """The journal does not name the table yet."""
    table = "orders_{subject[2]}"
    config = with_members(tmp_path, sink, {"n": INT}, table=table)
    land_all(config, FakeLeader(10), engine=of_values({"n": 1}, subject=of_subjects("s.b")))
    engine = of_values({"n": 1}, subject=of_subjects("s.a", "s.b"))
    tables: Any = DyingSink(open_sink(config), "orders_b")
    journal = journal_in(config)
    lander = BatchLander(journal, batches_of(config, journal, FakeLeader(20), engine, tables))
    plan = lander.due()
    assert plan is not None
    with pytest.raises(Died):
        lander.land(plan)
    new = with_members(tmp_path, sink, {"n": LONG}, table=table)
    with pytest.raises(CheckpointError, match="with the schema that it began with"):
        list(rewrite(new))
    land_all(config, FakeLeader(20), engine=engine)
    assert [each.table for each in rewrite(new)] == ["orders_a", "orders_b"]
    assert landed(new) == (20, 20)


@pytest.mark.parametrize("sink", SINKS)
def test_a_bucket_has_partitions_and_tables_by_tokens_of_its_keys(
    server: NatsServer, jet: JetStream, tmp_path: Path, sink: str
) -> None:
    bucket = jet.create_key_value(KeyValueConfig(bucket=f"COMBINED-{sink}", history=5))
    for at, key in enumerate(("eu.tea", "us.tea", "eu.coffee", "plain", "eu.tea")):
        bucket.put(key, json.dumps({"old": at, "revision": "r", "seq": "s"}).encode())
    bucket.put("eu.bad", b'{"seq": 5}')
    bucket.delete("us.tea")
    (tmp_path / "typed.json").write_text(
        json.dumps({"properties": {"old": INT, "revision": TEXT, "seq": TEXT}})
    )
    text = (
        f'bucket = "{bucket.bucket}"\nname = "orders"\ntable = "orders_{{key[1]}}"\n'
        'format = "json"\nschema = "typed.json"\nmax_messages = 4\n'
    )
    config = config_of(
        tmp_path, sink, server.url, text + 'partition_by = ["key[2]", "day(_time)"]', engine="local"
    )
    assert run(None, config, once=True) == {}

    def check(rows: dict[str, int], tables: PipelineConfig) -> None:
        names = open_sink(tables).existing("orders")
        assert {each: len(rows_of(folder_of(tables, each), sink)) for each in names} == rows
        assert [each.problems for each in verify(tables)] == [[]]

    check({"orders_eu": 3, "orders_us": 2, "orders_plain": 1}, config)
    if sink == "delta":
        table = DeltaTable(str(config.path / "orders_eu")).to_pyarrow_table()
        assert {*table.column("key_2").to_pylist()} == {"tea", "coffee"}
    (tmp_path / "typed.json").write_text(json.dumps({"properties": {"old": INT, "revision": TEXT}}))
    fixed = config_of(
        tmp_path, sink, server.url, text + 'partition_by = ["key[2]", "day(_time)"]', engine="local"
    )
    assert replay_letters(None, fixed, fixed.sources[0]).left == 0
    check({"orders_eu": 4, "orders_us": 2, "orders_plain": 1}, fixed)
    list(compact(fixed))
    assert replay(None, fixed, fixed.sources[0], 1, None)
    vacuum(fixed, keep=0)
    check({"orders_eu": 4, "orders_us": 2, "orders_plain": 1}, fixed)


@pytest.mark.parametrize("sink", SINKS)
def test_the_tables_of_a_bucket_are_rewritten(
    server: NatsServer, jet: JetStream, tmp_path: Path, sink: str
) -> None:
    bucket = jet.create_key_value(KeyValueConfig(bucket=f"REWRITTEN-{sink}", history=5))
    bucket.put("eu.tea", b'{"old": 1, "_seq": 7, "_stream": "a"}')
    bucket.put("us.tea", b'{"old": 2, "_seq": 8, "_stream": "b"}')
    text = (
        f'bucket = "{bucket.bucket}"\nname = "orders"\ntable = "orders_{{key[1]}}"\n'
        'format = "json"\nschema = "typed.json"\n'
    )
    members = {"_seq": INT, "_stream": TEXT}
    (tmp_path / "typed.json").write_text(json.dumps({"properties": {"old": INT, **members}}))
    assert run(None, config_of(tmp_path, sink, server.url, text, engine="local"), once=True) == {}
    (tmp_path / "typed.json").write_text(json.dumps({"properties": {"new": LONG, **members}}))
    text += 'rename = {old = "new"}\n'
    config = config_of(tmp_path, sink, server.url, text, engine="local")
    assert [each.table for each in rewrite(config)] == ["orders_eu", "orders_us"]
    bucket.put("eu.tea", b'{"old": 3}')
    assert run(None, config, once=True) == {}
    rows = rows_of(folder_of(config, "orders_eu"), sink)
    assert {row["_revision"]: row["new"] for row in rows} == {1: 1, 3: 3}
    assert [each.problems for each in verify(config)] == [[]]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('partition_by = "subject[2]"', r"subject\[2\]: a bucket has keys, so write key\[2\]"),
        ('table = "a_{subject[2]}"', r"a bucket has keys, so write key\[2\]"),
        ('table = "a_{key[0]}"', r"key\[0\]: tokens are counted from 1"),
        ('partition_by = "week(time)"', r"an item is .* key\[n\] or a column"),
    ],
)
def test_tokens_of_a_bucket_are_those_of_its_keys(tmp_path: Path, line: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        config_of(tmp_path, "delta", "nats://h", f'bucket = "B"\n{line}')
    other = line.replace("subject", "key")
    if "[2]" in other:
        with pytest.raises(ConfigError, match=r"a stream has subjects, so write subject\[2\]"):
            config_of(tmp_path, "delta", "nats://h", f'stream = "B"\n{other}')
