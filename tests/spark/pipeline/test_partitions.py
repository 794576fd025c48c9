"""Tables with partitions: what is parsed, one file a partition and task, and what readers see.

Neither Spark nor a server has a part in most of them: see `tests.spark.drivers`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from attrs import evolve
from deltalake import DeltaTable

from tests.spark.drivers import (
    SOURCE,
    FakeEngine,
    FakeLeader,
    changed,
    journal_in,
    land_all,
    landed,
    landed_on_s3,
)
from tests.spark.pipelines import SINKS, config_of, files_of
from twinstream.lake.objects.client import delta_options
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.errors import ConfigError, OptionError, SchemaError
from twinstream.spark.landing.file_settings import FileSettings
from twinstream.spark.landing.partition_rows import partition_of
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.letters.replay import replay_letters
from twinstream.spark.pipeline.maintenance.compact import compact
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.state.landed_rows import read_landed
from twinstream.spark.pipeline.tables.open_sink import open_sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string"},
        "shard": {"type": "integer"},
        "paid": {"type": "boolean"},
        "due": {"type": "string", "format": "date"},
        "amount": {"type": "number"},
        "at": {"type": "string", "format": "date-time"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
# Texts that the names of folders must not change.
ODD = [
    *("eu", "a/b", "a=b", "50%", "%2F", "ä ö", "日本", "x y ", "a+b", "#?*:", "'\"\\", "{[^]}"),
    *(".", "..", "..=..", "a\nb\t", "é" * 40),
]


def with_schema(folder: Path, sink: str, *lines: str, rows: int = 10) -> PipelineConfig:
    """Return a pipeline whose batches have `rows` messages, with two tasks each."""
    source = SOURCE.replace("order.json", "typed.json").replace("= 10", f"= {rows}")
    (folder / "typed.json").write_text(json.dumps(SCHEMA))
    return config_of(folder, sink, "nats://127.0.0.1:1", source + "\n".join(lines))


def of_values(*values: dict[str, Any]) -> FakeEngine:
    """Return an engine whose messages have the values in turn, from sequence 1 on."""
    return FakeEngine(payload=lambda seq: json.dumps(values[(seq - 1) % len(values)]).encode())


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ("day(_timestampp)", "there is no column '_timestampp'; did you mean '_timestamp'"),
        ("regoin", "there is no column 'regoin'; did you mean 'region'.* are region, shard"),
        ("week(_timestamp)", r"no transform 'week'; an item is year\(column\), month\(column\)"),
        (
            "day(region)",
            "day needs a column of times or dates, and 'region' is string;.*_time",
        ),
        ("hour(due)", "hour needs a column of times, and 'due' is date32.*are at, _timestamp"),
        (
            "amount",
            "'amount' is double; a partition needs text, .*region, shard, paid",
        ),
        ("tags", "'tags' is list"),
        ("_seq", "each message would be a partition of its own"),
        ("subject[0]", r"subject\[0\]: tokens are counted from 1"),
        ("subject[x]", r"there is no column 'subject\[x\]'.*subject\[n\]"),
        ("day(_timestamp", r"there is no column 'day\(_timestamp'"),
    ],
)
def test_mistakes_in_partition_by(tmp_path: Path, item: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"orders: partition_by: .*{reason}"):
        with_schema(tmp_path, "delta", f'partition_by = ["{item}"]')


def test_mistakes_in_several_items(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has day\(at\) twice"):
        with_schema(tmp_path, "delta", 'partition_by = ["day(at)", "day(at)"]')
    with pytest.raises(ConfigError, match="_stream: readers of Parquet skip folders"):
        with_schema(tmp_path, "parquet", 'partition_by = "_stream"')
    with pytest.raises(ConfigError, match="max_partitions: must be a whole number from 1"):
        with_schema(tmp_path, "parquet", "max_partitions = 0")
    raw = 'stream = "S"\npartition_by = ["day(timestamp)", "stream", "subject[2]"]'
    (source,) = config_of(tmp_path, "parquet", "nats://h", raw).sources
    assert [each.name for each in source.partitions] == ["timestamp_day", "stream", "subject_2"]
    with pytest.raises(ConfigError, match=r"'data' is binary.*columns subject, stream, or"):
        config_of(tmp_path, "parquet", "nats://h", raw.replace("subject[2]", "data"))
    events = 'stream = "S"\nformat = "advisory"\npartition_by = ["month(_timestamp)", "consumer"]'
    with pytest.raises(ConfigError, match="there is no column 'consumer'"):
        config_of(tmp_path, "parquet", "nats://h", events)


def test_a_member_may_not_have_the_name_of_a_derived_column(tmp_path: Path) -> None:
    (tmp_path / "typed.json").write_text('{"properties": {"Subject_2": {"type": "string"}}}')
    source = SOURCE.replace("order.json", "typed.json") + 'partition_by = "subject[2]"'
    with pytest.raises(ConfigError, match=r"subject\[2\] needs a column subject_2, and .*extra"):
        config_of(tmp_path, "parquet", "nats://h", source)


@pytest.mark.parametrize("sink", SINKS)
def test_one_file_a_partition_and_task(tmp_path: Path, sink: str) -> None:
    config = with_schema(tmp_path, sink, 'partition_by = "region"', rows=20_000)
    regions = b'{"region": "eu"}', b'{"region": "us"}'
    engine = FakeEngine(payload=lambda seq: regions[seq % 2], page=500)
    land_all(config, FakeLeader(20_000), engine=engine)
    assert len(files_of(config.path / "orders", sink)) == 4, "two tasks with two partitions"
    assert landed(config) == (20_000, 20_000)
    entry = journal_in(config).last()
    assert entry is not None
    assert entry.tables["orders"].files == 4


@pytest.mark.parametrize("sink", SINKS)
def test_readers_see_each_value(tmp_path: Path, sink: str) -> None:
    items = ["region", "shard", "paid", "due", "year(at)", "month(at)", "day(due)", "subject[2]"]
    config = with_schema(tmp_path, sink, f"partition_by = {[*items, 'hour(_timestamp)']}")
    values: list[dict[str, Any]] = [
        {"region": "eu", "shard": 7, "paid": True, "due": "2026-02-03",
         "at": "2026-12-31T23:30:00-01:00"},
        {"region": "us", "shard": -1, "paid": False, "due": "1969-12-31",
         "at": "1969-12-31T23:59:59Z"},
        {},
    ]  # fmt: skip
    land_all(config, FakeLeader(10), engine=of_values(*values))
    rows = {row["_seq"]: row for row in all_rows(config.path / "orders", sink)}
    assert len(rows) == 10
    one, two, three = (rows[seq] for seq in (1, 2, 3))
    assert text_of(one, "region", "shard", "paid", "due", "at_year", "at_month", "due_day") == [
        *("eu", "7", "true", "2026-02-03", "2027", "2027-01", "2026-02-03"),
    ]
    assert text_of(two, "region", "shard", "paid", "due", "at_year", "at_month", "due_day") == [
        *("us", "-1", "false", "1969-12-31", "1969", "1969-12", "1969-12-31"),
    ]
    assert {three[name] for name in ("region", "shard", "paid", "due", "at_year")} == {None}
    assert text_of(one, "subject_2", "timestamp_hour") == ["b", "1970-01-01-00"]
    assert list(one)[-1] == ("timestamp_hour")


def all_rows(table: Path, sink: str) -> list[dict[str, Any]]:
    """Rows as pyarrow reads them in Parquet tables, and deltalake in Delta tables."""
    if sink == "delta":
        return DeltaTable(str(table)).to_pyarrow_table().to_pylist()
    return pq.read_table(table).to_pylist()


def text_of(row: dict[str, Any], *names: str) -> list[str]:
    return [str(row[name]).lower() if name == "paid" else str(row[name]) for name in names]


def regions_of(config: PipelineConfig) -> dict[str, Callable[[], list[str | None]]]:
    """Return what readers see in a column that names folders, in the order of the sequences."""
    table = config.path / "orders"

    def by_delta() -> list[str | None]:
        return in_order(DeltaTable(str(table)).to_pyarrow_table())

    def by_arrow() -> list[str | None]:
        columns = pa.schema([("batch_id", pa.int64()), ("region", pa.string())])
        hive = ds.partitioning(columns, flavor="hive")
        return in_order(ds.dataset(table, partitioning=hive).to_table())

    def by_duckdb() -> list[str | None]:
        types = "{'batch_id': BIGINT, 'region': VARCHAR}"
        query = f"SELECT region FROM read_parquet(?, hive_types={types}) ORDER BY _seq"
        return [row[0] for row in duckdb.execute(query, [f"{table}/**/*.parquet"]).fetchall()]

    if config.sink == "delta":
        return {"deltalake": by_delta}
    return {"pyarrow": by_arrow, "duckdb": by_duckdb}


def in_order(rows: pa.Table) -> list[Any]:
    return rows.sort_by("_seq").column("region").to_pylist()


@pytest.mark.parametrize("sink", SINKS)
def test_odd_texts_are_values_of_partitions(tmp_path: Path, sink: str) -> None:
    values = [*ODD, "007", "true", None, ""]
    count, seen = len(values), [*values[:-1], None]
    config = with_schema(tmp_path, sink, 'partition_by = "region"', rows=count)
    engine = of_values(*({"region": each} for each in values))
    land_all(config, FakeLeader(2 * count), engine=engine)
    for reader, regions in regions_of(config).items():
        assert regions() == seen * 2, reader
    list(compact(config))
    assert landed(config) == (2 * count, 2 * count)
    assert len(files_of(config.path / "orders", sink)) == count - 1
    files = {file for each in open_sink(config).files("orders", [0, 1]).values() for file in each}
    assert len(files) == count - 1
    assert all(file.exists() for file in files)
    vacuum(config, keep=0)
    for reader, regions in regions_of(config).items():
        assert regions() == seen * 2, reader


def test_a_value_that_no_folder_can_have(tmp_path: Path) -> None:
    config = with_schema(tmp_path, "parquet", 'partition_by = "region"')
    engine = of_values({"region": "é" * 125})
    with pytest.raises(
        OptionError, match="of region has 757 bytes as the escaped name of a folder"
    ):
        land_all(config, FakeLeader(3), engine=engine)
    assert landed(config) == (0, 0)


@pytest.mark.parametrize("sink", SINKS)
def test_a_task_has_a_bounded_number_of_partitions(tmp_path: Path, sink: str) -> None:
    items = ('partition_by = "shard"', "max_partitions = 3")
    config = with_schema(tmp_path, sink, *items, rows=20)
    engine = of_values(*({"shard": each} for each in range(20)))
    with pytest.raises(OptionError, match="more than 3 partitions, such as shard=3 of the table"):
        land_all(config, FakeLeader(20), engine=engine)
    assert landed(config) == (0, 0)
    land_all(changed(config, files=FileSettings(max_partitions=10)), FakeLeader(20), engine=engine)
    assert landed(config) == (20, 20)
    assert len(journal_in(config).entries()) == 1


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize(
    ("before", "after"),
    [("", '"region"'), ('"region"', ""), ('"region"', '"shard"'), ('"day(at)"', '"month(at)"')],
)
def test_partitions_of_a_table_cannot_be_changed(
    tmp_path: Path, sink: str, before: str, after: str
) -> None:
    first, other = (
        with_schema(tmp_path, sink, f"partition_by = {each}" if each else "")
        for each in (before, after)
    )
    engine = of_values({"region": "eu", "shard": 1})
    land_all(first, FakeLeader(10), engine=engine)
    with pytest.raises(SchemaError, match=r"the table orders was landed with.*cannot be changed"):
        land_all(other, FakeLeader(20), engine=engine)
    assert landed(first) == (10, 10)
    land_all(first, FakeLeader(20), engine=engine)
    assert landed(first) == (20, 20)


def test_the_type_of_a_partition_cannot_be_changed(tmp_path: Path) -> None:
    """The files of a Parquet table do not have its column."""
    config = with_schema(tmp_path, "parquet", 'partition_by = "shard"')
    land_all(config, FakeLeader(10), engine=of_values({"shard": 1}))
    schema = {"properties": {**SCHEMA["properties"], "shard": {"type": "string"}}}
    (tmp_path / "typed.json").write_text(json.dumps(schema))
    text = config_of(
        tmp_path, "parquet", "nats://127.0.0.1:1",
        SOURCE.replace("order.json", "typed.json") + 'partition_by = "shard"',
    )  # fmt: skip
    with pytest.raises(SchemaError, match=r"partitions shard \(long\), .* says .* shard \(text\)"):
        land_all(text, FakeLeader(20), engine=of_values({"shard": "1"}))


@pytest.mark.parametrize("sink", SINKS)
def test_compact_joins_the_files_of_a_partition(tmp_path: Path, sink: str) -> None:
    config = with_schema(tmp_path, sink, 'partition_by = ["region", "day(_timestamp)"]')
    engine = of_values({"region": "eu"}, {"region": None}, {"region": "a/b"})
    land_all(config, FakeLeader(40), engine=engine)
    before = sorted(all_regions(config), key=str)
    assert [each.after for each in compact(config) if each.table == "orders"] == [3]
    assert sorted(all_regions(config), key=str) == before
    assert [each.before for each in compact(config) if each.table == "orders"] == [3]
    vacuum(config, keep=0)
    assert landed(config) == (40, 40)
    assert sorted(all_regions(config), key=str) == before


def all_regions(config: PipelineConfig) -> list[str | None]:
    (read, *_) = regions_of(config).values()
    return read()


@pytest.mark.parametrize("sink", SINKS)
def test_letters_are_landed_into_their_partitions(tmp_path: Path, sink: str) -> None:
    config = with_schema(tmp_path, sink, 'partition_by = "region"')
    good, bad = b'{"region": "eu", "shard": 1}', b'{"region": "%d/%%", "shard": "x"}'
    engine = FakeEngine(payload=lambda seq: good if seq % 5 else bad % (seq % 2))
    land_all(config, FakeLeader(30), engine=engine)
    assert journal_in(config).entries()[0].dead_letters == 2
    schema = {"properties": {"region": {"type": "string"}}}
    (source,) = config.sources
    options = {**source.options, "jsonSchema": json.dumps(schema)}
    local = evolve(changed(config, options=options), engine="local")
    report = replay_letters(None, local, local.sources[0])
    assert (report.letters, report.left) == (6, 0)
    assert landed(config) == (30, 30)
    expected = ["eu" if seq % 5 else f"{seq % 2}/%" for seq in range(1, 31)]
    for reader, regions in regions_of(config).items():
        assert regions() == expected, reader


def test_the_partition_of_a_file_is_in_its_path() -> None:
    file = Path("/data/env=prod/lake/orders/batch_id=7/region=a%2Fb/day=1/part-0.parquet")
    assert partition_of(file) == "region=a%2Fb/day=1"
    assert partition_of(Path("/data/env=prod/_staging/_replay.1/region=eu/x")) == "region=eu"
    assert partition_of(Path("/data/env=prod/lake/orders/data/x.parquet")) == ""


def test_delta_tables_on_s3_have_partitions(tmp_path: Path, bucket: ObjectFolder) -> None:
    lines = 'partition_by = ["region", "day(_timestamp)", "shard"]'
    config = evolve(with_schema(tmp_path, "delta", lines), path=bucket)
    values = [{"region": "a/b %=ä", "shard": -7}, {"region": None, "shard": 1}, {"region": "eu"}]
    land_all(config, FakeLeader(25), engine=of_values(*values))
    assert landed_on_s3(config, tmp_path) == (25, 25)
    options = delta_options(bucket.storage)
    table = DeltaTable(f"{bucket}/orders", storage_options=options)
    assert table.metadata().partition_columns == ["region", "timestamp_day", "shard"]
    rows = table.to_pyarrow_table(filters=[("shard", "=", -7)]).to_pylist()
    assert {row["region"] for row in rows} == {"a/b %=ä"}
    assert len(rows) == 9
    list(compact(config))
    assert landed_on_s3(config, tmp_path) == (25, 25)
    table.update_incremental()
    assert len(table.file_uris()) == 3
    (source,) = config.sources
    tables = ["orders", source.dead_letters]
    assert read_landed(open_sink(config), source, tables, 0, 1_000).count == 25


@pytest.mark.parametrize("setting", [True, False])
def test_spark_reads_the_folders(tmp_path: Path, spark: SparkSession, setting: bool) -> None:
    config = with_schema(tmp_path, "parquet", 'partition_by = ["region", "day(at)"]')
    values = [{"region": "a/b %=ä", "at": "2026-02-03T04:05:06Z"}, {"region": "007"}, {}]
    land_all(config, FakeLeader(9), engine=of_values(*values))
    name = "spark.sql.sources.partitionColumnTypeInference.enabled"
    spark.conf.set(name, str(setting).lower())
    try:
        found = spark.read.parquet(f"file://{config.path}/orders")
        rows = found.select("region", "at_day").distinct().collect()
    finally:
        spark.conf.unset(name)
    seen = {(row["region"], str(row["at_day"])) for row in rows}
    assert seen == {("a/b %=ä", "2026-02-03"), ("007", "None"), (None, "None")}
