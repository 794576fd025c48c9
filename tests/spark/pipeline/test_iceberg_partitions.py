"""Iceberg tables with partitions: their specs, the values of files, and what readers skip by them.

Neither Spark nor a server has a part in most of them: see `tests.spark.drivers`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.transforms import (
    DayTransform,
    HourTransform,
    MonthTransform,
    Transform,
    YearTransform,
)
from pyiceberg.types import TimestamptzType

from js_sync import Stream
from tests.hooked import hooked
from tests.proxy_faults import NONE, Failure, failures_of, two_proxies
from tests.s3_proxy import S3Proxy
from tests.s3_server import S3Server
from tests.soak import LONG, sampled, state
from tests.spark.drivers import (
    SOURCE,
    FakeEngine,
    FakeLeader,
    bounds,
    changed,
    journal_in,
    land_all,
    until_done,
    with_lease,
)
from tests.spark.iceberg import iceberg_table, landed_in_catalog, on_iceberg, tables_in
from tests.spark.pipelines import config_of
from tests.spark.referees import duckdb_files, duckdb_numbers
from twinstream.lake.errors import StorageError
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.errors import JournalError, SchemaError
from twinstream.spark.landing.partition_rows import divided, values_of
from twinstream.spark.landing.partitions import stored_partition
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.letters.replay import replay_letters
from twinstream.spark.pipeline.maintenance.replay import replay
from twinstream.spark.pipeline.maintenance.rewrite import rewrite
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.testing import NatsServer

MEMBERS: dict[str, Any] = {
    "region": {"type": "string"},
    "shard": {"type": "integer"},
    "paid": {"type": "boolean"},
    "due": {"type": "string", "format": "date"},
    "amount": {"type": "integer", "format": "int32"},
    "at": {"type": "string", "format": "date-time"},
}
MICROSECOND = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TRANSFORMS: dict[str, Transform[Any, Any]] = {
    "year": YearTransform(), "month": MonthTransform(), "day": DayTransform(),
    "hour": HourTransform(),
}  # fmt: skip


@pytest.fixture
def pipeline(tmp_path: Path, s3: S3Server, bucket: ObjectFolder) -> Callable[..., PipelineConfig]:
    """Return pipelines with the lines of their source, all with one lake."""

    def make(*lines: str, members: dict[str, Any] = MEMBERS, **names: Any) -> PipelineConfig:
        text = json.dumps({"type": "object", "properties": members})
        (tmp_path / "typed.json").write_text(text)
        source = SOURCE.replace("order.json", "typed.json") + "\n".join(lines)
        made = config_of(tmp_path, "delta", "nats://127.0.0.1:1", source, engine="local")
        return on_iceberg(made, s3, names.pop("name", bucket.prefix), **names)

    return make


def of_values(*values: dict[str, Any], subjects: tuple[str, ...] = ("s.a", "s.b")) -> FakeEngine:
    """Return an engine whose messages have the values in turn, from sequence 1 on."""
    return FakeEngine(
        payload=lambda seq: json.dumps(values[(seq - 1) % len(values)]).encode(),
        subject=lambda seq: subjects[(seq - 1) % len(subjects)],
    )


def planned(table: Table, wanted: str = "") -> list[DataFile]:
    """Return the files that pyiceberg would read for a filter."""
    scan = table.scan(row_filter=wanted) if wanted else table.scan()
    return [each.file for each in scan.plan_files()]


def test_files_are_divided_and_skipped(
    pipeline: Callable[..., PipelineConfig], tmp_path: Path
) -> None:
    config = pipeline('partition_by = ["day(at)", "region", "subject[2]"]')
    values = [
        {"region": region, "at": f"2026-01-0{day}T12:00:00Z"} for day in (1, 2) for region in "xy"
    ]
    engine = of_values(*values, subjects=("s.a", "s.a", "s.b", "s.b"))
    land_all(config, FakeLeader(40), engine=engine)
    assert landed_in_catalog(config, tmp_path) == (40, 40)
    table = iceberg_table(config)
    assert [(each.name, str(each.transform)) for each in table.spec().fields] == [
        ("at_day", "day"), ("region", "identity"), ("subject_2", "identity"),
    ]  # fmt: skip
    # Four batches with two tasks, of which each writes a file for each of four partitions.
    entries = journal_in(config).entries().values()
    assert [each.tables["orders"].files for each in entries] == [8, 8, 8, 8]
    for wanted, files in (
        ("", 32), ("region = 'x'", 16), ("region = 'z'", 0), ("subject_2 = 'a'", 16),
        ("at >= '2026-01-02T00:00:00+00:00'", 16), ("at < '2026-01-01T00:00:00+00:00'", 0),
        ("at < '2026-01-02T00:00:00+00:00' AND region = 'y'", 8),
    ):  # fmt: skip
        assert len(planned(table, wanted)) == files, wanted
    found = table.scan(row_filter="region = 'x' AND subject_2 = 'b'").to_arrow()
    assert set(found.column("_seq").to_pylist()) == set(range(3, 41, 4))
    assert [each for each in found.column_names if each.endswith(("_day", "_2"))] == ["subject_2"]


def test_all_values_are_exact(pipeline: Callable[..., PipelineConfig], tmp_path: Path) -> None:
    """An empty text is no null, and no text is taken for another one."""
    odd = [
        *("eu", "a/b", "a=b", "50%", "%2F", "日本", " x ", "..", "a\nb", "é" * 200, "_", "%5F"),
        *("", None, "None", "null", "__HIVE_DEFAULT_PARTITION__", "007"),
    ]
    config = pipeline('partition_by = ["region"]')
    land_all(config, FakeLeader(len(odd)), engine=of_values(*({"region": each} for each in odd)))
    assert landed_in_catalog(config, tmp_path) == (len(odd), len(odd))
    files = planned(iceberg_table(config))
    assert sorted(str(each.partition[0]) for each in files) == sorted(map(str, odd))
    for each in files:
        rows = iceberg_table(config).io.new_input(each.file_path)
        with rows.open() as opened:
            (own,) = pa.parquet.read_table(opened).column("region").unique().to_pylist()
        assert own == each.partition[0]


def test_each_kind_of_value(pipeline: Callable[..., PipelineConfig], tmp_path: Path) -> None:
    items = ["shard", "paid", "due", "year(_timestamp)", "month(due)", "hour(at)"]
    config = pipeline(f"partition_by = {items}")
    values = [
        {"shard": -7, "paid": True, "due": "2026-02-03", "at": "2026-12-31T23:30:00-01:00"},
        {"shard": 2**40, "paid": False, "due": "1969-12-31", "at": "1969-12-31T23:59:59Z"},
        {},
    ]
    land_all(config, FakeLeader(3), engine=of_values(*values))
    assert landed_in_catalog(config, tmp_path) == (3, 3)
    table = iceberg_table(config)
    hours = (datetime(2027, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(hours=1)
    found = {tuple(each.partition[at] for at in range(6)) for each in planned(table)}
    assert found == {
        (-7, True, 20487, 0, 673, hours),
        (2**40, False, -1, 0, -1, -1),
        (None, None, None, 0, None, None),
    }
    for wanted in ("shard = -7", "paid = false", "due = '1969-12-31'", "at IS NULL"):
        assert len(planned(table, wanted)) == 1, wanted
        assert table.scan(row_filter=wanted).to_arrow().num_rows == 1, wanted


def test_times_are_divided_as_iceberg_does() -> None:
    seed = random.randrange(2**32)
    chosen = random.Random(seed)
    times = [chosen.randrange(-(5 * 10**16), 10**17) for _ in range(300)]
    times += [-1, 0, 1, -3_600_000_000, 86_399_999_999, -86_400_000_000, -86_400_000_001]
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        rows = pa.record_batch({"at": pa.array(times, kind)})
        for name, transform in TRANSFORMS.items():
            own = stored_partition(name, "at").values(rows).to_pylist()
            expected = transform.transform(TimestamptzType())
            assert own == [expected(each) for each in times], (seed, name)


def test_texts_of_partitions_are_exact() -> None:
    texts = ["a/b=c", "", None, "__HIVE_DEFAULT_PARTITION__", "%5F", "é"]
    rows = pa.record_batch({"a": pa.array(texts), "b": pa.array(texts[::-1])})
    parts = [stored_partition("identity", name) for name in "ab"]
    found = {name: inside.to_pylist() for name, inside in divided(rows, parts)}
    assert len(found) == len(texts)
    assert all(inside == [values_of(name)] for name, inside in found.items())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '"region"'), ('"region"', ""), ('"region"', '"shard"'), ('"day(at)"', '"month(at)"'),
        ('["region", "shard"]', '["shard", "region"]'), ('"subject[1]"', '"subject[2]"'),
    ],
)  # fmt: skip
def test_partitions_of_a_table_cannot_be_changed(
    pipeline: Callable[..., PipelineConfig], tmp_path: Path, before: str, after: str
) -> None:
    first, other = (pipeline(f"partition_by = {e}" if e else "") for e in (before, after))
    engine = of_values({"region": "eu", "shard": 1})
    land_all(first, FakeLeader(10), engine=engine)
    with pytest.raises(SchemaError, match=r"the table orders was landed with.*cannot be changed"):
        land_all(other, FakeLeader(20), engine=engine)
    land_all(first, FakeLeader(20), engine=engine)
    assert landed_in_catalog(first, tmp_path) == (20, 20)


def test_the_time_of_another_column_has_the_same_name(
    pipeline: Callable[..., PipelineConfig],
) -> None:
    """Both partitions are `timestamp_day`."""
    members = {**MEMBERS, "timestamp": MEMBERS["at"]}
    first, other = (
        pipeline(f'partition_by = "day({name})"', members=members)
        for name in ("_timestamp", "timestamp")
    )
    engine = of_values({"timestamp": "2026-01-01T00:00:00Z"})
    land_all(first, FakeLeader(10), engine=engine)
    reason = r"partitions day\(_timestamp\), and .* partitions day\(timestamp\) now"
    with pytest.raises(SchemaError, match=reason):
        land_all(other, FakeLeader(20), engine=engine)
    with pytest.raises(SchemaError, match=reason):
        until_done(lambda: list(rewrite(with_lease(other))))


@pytest.mark.parametrize("moment", ["before", "meanwhile"])
def test_a_spec_that_another_program_has_changed(
    pipeline: Callable[..., PipelineConfig], tmp_path: Path, moment: str
) -> None:
    config = pipeline('partition_by = "region"')
    good = of_values({"region": "eu", "shard": 1})
    land_all(config, FakeLeader(10), engine=good)

    def change(_: object) -> None:
        with iceberg_table(config).update_spec() as update:
            update.add_field("shard", "bucket[4]", "shard_bucket")

    if moment == "before":
        change(None)
    engine = FakeEngine(change if moment == "meanwhile" else lambda _: None)
    with pytest.raises(SchemaError, match=r"partitions region, bucket\[4\]\(shard\), and"):
        land_all(config, FakeLeader(20), engine=engine)
    with iceberg_table(config).update_spec() as update:
        update.remove_field("shard_bucket")
    land_all(config, FakeLeader(20), engine=good)
    assert landed_in_catalog(config, tmp_path) == (20, 20)


def test_letters_are_landed_into_their_partitions(
    pipeline: Callable[..., PipelineConfig], tmp_path: Path
) -> None:
    config = pipeline('partition_by = ["region", "subject[2]"]')
    good, bad = b'{"region": "eu", "shard": 1}', b'{"region": "%d/%%", "shard": "x"}'
    engine = FakeEngine(payload=lambda seq: good if seq % 5 else bad % (seq % 2))
    land_all(config, FakeLeader(30), engine=engine)
    wide = changed(
        config, options={**config.sources[0].options, "jsonSchema": json.dumps(
            {"properties": {"region": {"type": "string"}}}
        )},
    )  # fmt: skip
    report = replay_letters(None, wide, wide.sources[0])
    assert (report.letters, report.left) == (6, 0)
    assert landed_in_catalog(config, tmp_path) == (30, 30)
    table = iceberg_table(config)
    found = table.scan(row_filter="region = '1/%'").to_arrow()
    assert sorted(found.column("_seq").to_pylist()) == [5, 15, 25]
    assert {each.partition[0] for each in planned(table)} == {"eu", "0/%", "1/%"}
    vacuum(config, keep=0)
    assert landed_in_catalog(config, tmp_path) == (30, 30)


@pytest.mark.parametrize("point", ["letters: before tables", "letters: before removal"])
def test_letters_without_a_value_are_landed_after_an_interruption(
    pipeline: Callable[..., PipelineConfig], tmp_path: Path, point: str
) -> None:
    """The partition of their file is null, or an empty text."""
    lines = 'partition_by = ["region", "day(at)", "subject[3]"]'
    config = pipeline(lines)
    values = {"region": "eu"}, {"shard": "x"}, {"region": "", "shard": "x"}
    land_all(config, FakeLeader(12), engine=of_values(*values))
    wide = pipeline(lines, members={name: MEMBERS[name] for name in ("region", "at")})

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with hooked(point, stop), pytest.raises(KeyboardInterrupt):
        replay_letters(None, wide, wide.sources[0])
    assert journal_in(wide).letters.unfinished() is not None
    assert replay_letters(None, wide, wide.sources[0]).landed == 8
    assert landed_in_catalog(wide, tmp_path) == (12, 12)
    table = iceberg_table(wide)
    assert {each.partition[0] for each in planned(table)} == {"eu", None, ""}
    found = table.scan(row_filter="region = ''").to_arrow().column("_seq").to_pylist()
    assert sorted(found) == [3, 6, 9, 12]


def test_rows_of_merged_files_stay_in_their_partitions(
    pipeline: Callable[..., PipelineConfig],
) -> None:
    """Another program has merged the files of each partition; then a batch is replaced."""
    config = pipeline('partition_by = "region"')
    land_all(config, FakeLeader(30), engine=of_values({"region": "x"}, {"region": "y"}))
    table = iceberg_table(config)
    table.overwrite(table.scan().to_arrow())
    assert len(planned(table)) == 2
    open_sink(config).replace("orders", {1: ()})
    table = iceberg_table(config)
    assert {each.partition[0]: each.record_count for each in planned(table)} == {"x": 10, "y": 10}
    assert table.scan(row_filter="region = 'x'").to_arrow().num_rows == 10
    with table.update_spec() as update:
        update.add_field("shard", "bucket[4]", "shard_bucket")
    with pytest.raises(JournalError, match=r"has divided the table orders by bucket\[4\]\(shard"):
        open_sink(config).replace("orders", {2: ()})


def test_columns_are_widened_and_renamed(
    pipeline: Callable[..., PipelineConfig], tmp_path: Path
) -> None:
    """As metadata. Those by which the files are divided cannot be changed."""
    by_region = 'partition_by = ["region", "day(at)"]'
    config = pipeline(by_region)
    engine = of_values({"region": "eu", "amount": 1, "at": "2026-01-01T00:00:00Z"}, {"amount": 2})
    land_all(config, FakeLeader(10), engine=engine)
    renamed = {**MEMBERS, "total": {"type": "integer"}}
    del renamed["amount"]
    wider = pipeline(by_region, 'rename = {amount = "total"}', members=renamed)
    (done,) = rewrite(wider)
    assert len(done.changes) == 2
    land_all(wider, FakeLeader(20), engine=of_values({"region": "eu", "total": 2**40}))
    found = iceberg_table(wider).scan(row_filter="region = 'eu'").to_arrow()
    assert sorted(found.column("total").to_pylist()) == [1] * 5 + [2**40] * 10
    assert landed_in_catalog(wider, tmp_path) == (20, 20)
    moved = {**renamed, "area": {"type": "string"}}
    del moved["region"]
    lines = 'partition_by = ["area", "day(at)"]', 'rename = {amount = "total", region = "area"}'
    with pytest.raises(SchemaError, match=r"partitions by other columns than .*'area'"):
        list(rewrite(pipeline(*lines, members=moved)))


def test_a_column_of_partitions_is_not_widened(
    pipeline: Callable[..., PipelineConfig],
) -> None:
    config = pipeline('partition_by = "amount"')
    land_all(config, FakeLeader(10), engine=of_values({"amount": 1}, {"amount": 2}))
    wider = pipeline('partition_by = "amount"', members={**MEMBERS, "amount": {"type": "integer"}})
    with pytest.raises(SchemaError, match=r"partitions by other columns than .*'amount'"):
        list(rewrite(wider))


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_stream_is_landed_replayed_and_verified(
    request: pytest.FixtureRequest,
    engine: str,
    tmp_path: Path,
    s3: S3Server,
    bucket: ObjectFolder,
    server: NatsServer,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
) -> None:
    """With tables by a token and dead letters."""
    stream = make_stream()
    values = [{"id": at} if at % 7 else {} for at in range(60)]
    fill(stream, values, subjects=("eu.x", "eu.y", "us.x"))
    source = (
        f'stream = "{stream.name}"\nname = "orders"\nformat = "json"\nschema = "order.json"\n'
        'table = "orders_{subject[2]}"\npartition_by = ["subject[3]", "hour(_timestamp)"]\n'
        "max_messages = 40\noptions = {minPartitions = 2}\n"
    )
    made = config_of(tmp_path, "delta", server.url, source, engine=engine)
    config = on_iceberg(made, s3, bucket.prefix)
    spark = request.getfixturevalue("spark") if engine == "spark" else None
    assert run(spark, config, once=True) == {}
    assert landed_in_catalog(config, tmp_path) == (60, 60)
    assert tables_in(config) == ["dead_letters_orders", "orders_eu", "orders_us"]
    assert [e.messages for e in replay(spark, config, config.sources[0], 1, None)] == [40, 20]
    vacuum(config, keep=0)
    assert landed_in_catalog(config, tmp_path) == (60, 60)
    (verdict,) = verify(config)
    assert (verdict.rows, verdict.dead_letters, verdict.problems) == (60, 9, [])
    table = iceberg_table(config, "orders_eu")
    found = table.scan(row_filter="subject_3 = 'x'").to_arrow().column("_subject")
    assert {each.rpartition(".")[2] for each in found.to_pylist()} == {"x"}
    assert 0 < len(planned(table, "subject_3 = 'x'")) < len(planned(table))
    assert planned(table, "_timestamp < '2020-01-01T00:00:00+00:00'") == []


def test_soak_partitions_and_a_request_that_fails(
    pipeline: Callable[..., PipelineConfig], s3: S3Server, bucket: ObjectFolder, tmp_path: Path
) -> None:
    """The driver dies at any request, or gets a wrong answer to a write that was carried out."""
    engine = of_values({"region": "x"}, {"region": "y"}, {"shard": "bad"})

    def behind(name: str, failure: Failure) -> list[S3Proxy]:
        with two_proxies(s3, failure.answer) as (store, catalog):
            urls = {"url": store.url, "catalog_url": catalog.url}
            own = pipeline('partition_by = "region"', name=name, fault=failure.fault, **urls)
            try:
                land_all(own, FakeLeader(12), engine=engine)
            except StorageError:
                pass
            return [store, catalog]

    store, catalog = behind(f"{bucket.prefix}_0", NONE)
    points = failures_of(["409", "412", "500", "closed"], store, catalog)
    order = sampled(range(len(points)), 3, 80)
    for number, point in enumerate(order, start=1):
        name = f"{bucket.prefix}_{number}"
        behind(name, points[point])
        own = pipeline('partition_by = "region"', name=name)
        rows, distinct = landed_in_catalog(own, tmp_path)
        assert rows == distinct, point
        land_all(own, FakeLeader(12), engine=engine)
        assert landed_in_catalog(own, tmp_path) == (12, 12), point
        assert bounds(own)[-1] == (11, 13), point
        assert {each.partition[0] for each in planned(iceberg_table(own))} == {"x", "y"}, point
    state(f"{len(order)} of {len(points)} points, all exact")


@pytest.mark.skipif(not LONG, reason="a part of make soak")
def test_soak_duckdb_skips_files(pipeline: Callable[..., PipelineConfig], s3: S3Server) -> None:
    """DuckDB's extension reads the values, with and without filters."""
    config = pipeline('partition_by = ["region", "day(at)", "subject[2]"]')
    values = [
        {"region": region, "at": f"2026-01-0{day}T12:00:00Z"}
        for day in (1, 2)
        for region in ("x", "", None)
    ]
    land_all(config, FakeLeader(60), engine=of_values(*values))
    table = iceberg_table(config)
    # Each of the rows that a task lands has a partition, and a file, of its own.
    for wanted, rows in (
        ("true", 60), ("region = 'x'", 20), ("region = ''", 20), ("region IS NULL", 20),
        ("subject_2 = 'a'", 30), ("\"at\" >= TIMESTAMPTZ '2026-01-02 00:00:00+00'", 30),
    ):  # fmt: skip
        assert duckdb_numbers(s3, table, "count(*)", wanted) == [rows], wanted
        assert (wanted, duckdb_files(s3, table, wanted)) == (wanted, rows)
