"""Iceberg tables in a REST catalog: each message is landed exactly once, whatever happens."""

from __future__ import annotations

import json
import socket
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from attrs import evolve
from pyiceberg.table import FileScanTask, Table

from js_sync import JetStream, Stream
from tests.hooked import hooked
from tests.s3_proxy import S3Proxy
from tests.s3_server import S3Server
from tests.short_keys import ShortKeys
from tests.spark.drivers import (
    SOURCE,
    FakeEngine,
    FakeLeader,
    batches_of,
    bounds,
    changed,
    journal_in,
    land_all,
    land_until_renewed,
)
from tests.spark.iceberg import iceberg_table, landed_in_catalog, on_iceberg
from tests.spark.pipelines import config_of
from twinstream.lake.errors import StorageError
from twinstream.lake.iceberg.columns import arrow_columns, iceberg_columns
from twinstream.lake.iceberg.tables import data_files, home_of
from twinstream.lake.letters_plan import LettersPlan
from twinstream.lake.objects.files import arrow_files
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.task_report import TaskFile
from twinstream.models import KeyValueConfig, StreamConfig
from twinstream.spark.decode.fields import bare_field
from twinstream.spark.errors import JournalError, SchemaError, SparkSourceError
from twinstream.spark.landing.footers import Footer
from twinstream.spark.landing.split_tables import Place, TableNames, TableSplit
from twinstream.spark.landing.table_files import TableFiles, task_file
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.letters.publish import publish_letters
from twinstream.spark.pipeline.letters.summary import letters_of
from twinstream.spark.pipeline.maintenance.compact import compact
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.state.landed_rows import read_landed
from twinstream.spark.pipeline.tables.iceberg_change import iceberg_schema
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.spark.pipeline.tables.sink import SourceWriter
from twinstream.spark.source.options import SourceOptions
from twinstream.testing import NatsServer

LAST = 25
BATCHES = [(1, 11), (11, 21), (21, 26)]


@pytest.fixture
def config(tmp_path: Path, s3: S3Server, bucket: ObjectFolder) -> PipelineConfig:
    made = config_of(tmp_path, "delta", "nats://127.0.0.1:1", SOURCE)
    return on_iceberg(made, s3, bucket.prefix)


@pytest.fixture
def leader() -> FakeLeader:
    return FakeLeader(LAST)


def check(config: PipelineConfig, folder: Path, last: int = LAST) -> None:
    assert landed_in_catalog(config, folder) == (last, last)
    assert bounds(config)[-1][1] == last + 1


def test_a_stream_is_landed(config: PipelineConfig, leader: FakeLeader, tmp_path: Path) -> None:
    land_all(config, leader)
    assert bounds(config) == BATCHES
    check(config, tmp_path)
    leader.last = 38
    land_all(config, leader)
    check(config, tmp_path, 38)
    entry = journal_in(config).last()
    assert entry is not None
    assert (entry.messages, entry.first_seq, entry.last_seq) == (3, 36, 38)
    assert entry.bytes > 1000


def test_a_driver_that_is_overtaken_adds_nothing(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path
) -> None:
    """While its tasks run, another driver lands everything; then it goes on."""
    todo = [lambda: land_all(config, leader)]
    land_all(config, leader, engine=FakeEngine(lambda _: todo.pop()() if todo else None))
    check(config, tmp_path)
    assert bounds(config) == BATCHES


def test_columns_are_added_as_metadata(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path
) -> None:
    land_all(config, leader)
    schema = (
        '{"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"},'
        ' "item": {"type": "string"}, "price": {"type": "number"},'
        ' "to": {"type": "object", "properties": {"city": {"type": "string"}}}}}'
    )
    (source,) = config.sources
    wider = changed(config, options={**source.options, "jsonSchema": schema})
    leader.last = 38
    land_all(wider, leader)
    check(wider, tmp_path, 38)
    found = iceberg_table(config).scan(selected_fields=("id", "price", "to")).to_arrow()
    assert found.num_rows == 35
    assert (found.column("price").null_count, found.column("to").null_count) == (35, 35)
    land_all(config, FakeLeader(41))
    check(config, tmp_path, 41)


def test_a_table_with_rows_of_another_journal_is_refused(
    s3: S3Server, config: PipelineConfig, leader: FakeLeader
) -> None:
    land_all(config, leader)
    lost = evolve(config, path=s3.folder("lost"))
    with pytest.raises(JournalError, match="table orders has rows of batch 0 or later"):
        land_all(lost, leader)


@pytest.mark.parametrize("options", [{}, {"uint64": "decimal"}])
def test_tables_may_have_many_columns(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path, options: dict[str, str]
) -> None:
    members = {"id": {"type": "integer"}} | {f"c.{at}": {"type": "string"} for at in range(40)}
    schema = json.dumps({"type": "object", "properties": members})
    (source,) = config.sources
    wide = changed(config, options={**source.options, "jsonSchema": schema, **options})
    land_all(wide, leader)
    check(wide, tmp_path)
    sink, (source,) = open_sink(wide), wide.sources
    assert read_landed(sink, source, ["orders"], 5, 15).count == 10
    assert len(sink.files("orders", [1])[1]) == 2


def test_a_table_of_raw_messages(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path
) -> None:
    raw = SOURCE.replace('format = "json"\nschema = "order.json"\n', "")
    made = config_of(tmp_path, "delta", "nats://127.0.0.1:1", raw)
    config = evolve(made, sink="iceberg", path=config.path, catalog=config.catalog)
    land_all(config, leader)
    found = read_landed(open_sink(config), config.sources[0], ["orders"], 1, LAST + 1)
    assert (found.count, found.distinct) == (LAST, LAST)
    assert found.by_batch() == {0: 10, 1: 10, 2: 5}
    assert iceberg_table(config).scan().to_arrow().num_rows == LAST


def test_all_tables_of_advisories_can_be_in_iceberg() -> None:
    options = SourceOptions.parse(
        {"nats.servers": "nats://h", "stream": "S", "valueFormat": "advisory"}
    )
    names = TableNames(table="", dead_letters="dead_letters/source=s")
    split = TableSplit(options, names, 0)
    assert len(split.tables()) > 10
    for table in split.tables():
        columns = pa.schema(map(bare_field, split.columns(table)))
        assert arrow_columns(iceberg_schema(table, columns)) == columns


def rows_by_batch(config: PipelineConfig) -> dict[int, int]:
    found = iceberg_table(config).scan(selected_fields=("_batch_id",)).to_arrow()
    return dict(sorted(Counter(found.column("_batch_id").to_pylist()).items()))


def merge_files(config: PipelineConfig, name: str = "orders") -> None:
    """Merge all files of a table, as a program for maintenance does."""
    table = iceberg_table(config, name)
    table.overwrite(table.scan().to_arrow())
    assert len(list(table.scan().plan_files())) == 1


def reported(config: PipelineConfig, file: Path) -> TaskFile:
    """Return a file of the table of orders as a task reports it."""
    lake = open_sink(config).lake
    size = arrow_files(lake).get_file_info(str(file)).size
    return task_file(Place("orders", ""), Footer.of(file, lake), "_seq", size)


@pytest.mark.parametrize("is_merged", [False, True])
def test_rows_of_batches_are_replaced(
    config: PipelineConfig, leader: FakeLeader, *, is_merged: bool
) -> None:
    """Also in a file that has rows of other batches, too."""
    land_all(config, leader)
    sink = open_sink(config)
    if is_merged:
        merge_files(config)
    sink.replace("orders", {1: ()})
    assert rows_by_batch(config) == {0: 9, 2: 5}
    sink.replace("orders", {1: ()})
    assert rows_by_batch(config) == {0: 9, 2: 5}
    (file,) = sink.files("orders", [2])[2][:1]
    store, copy = arrow_files(sink.lake), file.parent / "part.parquet"
    rows = ds.dataset([str(file)], filesystem=store).to_table()
    columns = [name for name in rows.column_names if name != "_batch_id"]
    batch = pa.array([1] * rows.num_rows, pa.int64())
    pq.write_table(
        rows.select(columns).append_column("_batch_id", batch), str(copy), filesystem=store
    )
    sink.replace("orders", {1: [reported(config, copy)]})
    assert rows_by_batch(config) == {0: 9, 1: rows.num_rows, 2: 5}
    sink.replace("orders", {0: (), 1: (), 2: ()})
    assert rows_by_batch(config) == {}


def test_rows_of_a_plan_for_letters_are_added_once(
    config: PipelineConfig, leader: FakeLeader
) -> None:
    land_all(config, leader)
    sink, writer = open_sink(config), SourceWriter("orders", "id", "_seq")
    home, store = Path(home_of(iceberg_table(config))), arrow_files(sink.lake)
    files: dict[int, list[TaskFile]] = {0: [], 1: []}
    for seq in (10, 11, 20):
        rows = pa.table({
            "id": pa.array([seq], pa.int64()), "_seq": pa.array([seq], pa.int64()),
            "_subject": pa.array(["s"]), "_timestamp": pa.array([seq], pa.timestamp("us", "UTC")),
            "_batch_id": pa.array([seq // 20], pa.int64()),
        })  # fmt: skip
        file = home / "data" / f"letters-{seq}.parquet"
        pq.write_table(rows, str(file), filesystem=store)
        files[seq // 20].append(reported(config, file))
    plan = LettersPlan(number=0, newest=2, folder="letters.1", files=(), entries=())
    assert not sink.has_added("orders", plan, writer)
    for _ in range(2):
        sink.add("orders", files, plan, writer)
        assert sink.has_added("orders", plan, writer)
        assert rows_by_batch(config) == {0: 11, 1: 10, 2: 5}
    assert sink.holds("orders", 2)
    assert not sink.holds("orders", 3)


def test_compaction_is_refused(config: PipelineConfig, leader: FakeLeader) -> None:
    land_all(config, leader)
    message = "pipeline compact is not for Iceberg tables: use the maintenance of the catalog, or a"
    with pytest.raises(SparkSourceError, match=message):
        list(compact(config))


def test_files_that_another_program_has_merged_are_read(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path
) -> None:
    land_all(config, leader)
    merge_files(config)
    leader.last = 38
    land_all(config, leader)
    check(config, tmp_path, 38)
    sink, (source,) = open_sink(config), config.sources
    found = read_landed(sink, source, ["orders", source.dead_letters], 5, 30)
    assert (found.count, found.distinct) == (25, 25)


def test_a_batch_that_is_merged_before_its_entry(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path
) -> None:
    """The driver dies after the commits, and another program merges the files meanwhile."""

    def die(_: object) -> None:
        raise KeyboardInterrupt

    land_all(config, FakeLeader(10))
    with hooked("journal: before landed", die), pytest.raises(KeyboardInterrupt):
        land_all(config, leader)
    assert rows_by_batch(config) == {0: 9, 1: 9}
    merge_files(config)
    land_all(config, leader)
    check(config, tmp_path)
    entry = journal_in(config).entries()[1]
    assert (entry.messages, entry.first_seq, entry.last_seq) == (10, 11, 20)


def test_objects_that_no_snapshot_names_are_removed(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path
) -> None:
    land_all(config, leader)
    sink = open_sink(config)
    # A killed attempt of the last batch, and one of a batch that is not in the journal yet.
    for number, name in ((2, "orders-000000002-"), (3, "orders-000000003-")):
        attempt = sink.batch(number, SourceWriter("orders", "id", "_seq"))
        folder = attempt.prepared(["orders"], lambda _: pa.schema([]))
        path, file = folder.open("orders", "")
        file.write(b"unfinished")
        file.close()
        assert name in str(path)
    sink.replace("orders", {1: ()})
    assert vacuum(config) == [], "they are kept for a week"
    found = vacuum(config, keep=0, dry_run=True)
    names = [each.path.name for each in found]
    batches = [name.rpartition("-")[0] for name in names if name.startswith("orders-")]
    assert sorted(batches) == ["orders-000000001"] * 2 + ["orders-000000002"]
    assert len(names) == 3, "manifests are too young"
    # Three batches, the removal, and the empty one of the first command that locks the tables.
    assert len(iceberg_table(config).snapshots()) == 5
    assert vacuum(config, keep=0) == found
    assert vacuum(config, keep=0) == []
    assert len(iceberg_table(config).snapshots()) == 1
    assert rows_by_batch(config) == {0: 9, 2: 5}
    leader.last = 38
    land_all(config, leader)
    assert landed_in_catalog(config, tmp_path) == (29, 29)


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_pipeline_of_a_real_stream(
    request: pytest.FixtureRequest,
    engine: str,
    server: NatsServer,
    s3: S3Server,
    bucket: ObjectFolder,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} if at % 10 else b"broken" for at in range(5000)])
    source = (
        f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\nformat = "json"\n'
        'schema = "order.json"\nmax_messages = 3000\ncommit = "purge"\n'
        "options = {minPartitions = 2}\n"
    )
    made = config_of(tmp_path, "delta", server.url, source, engine=engine)
    config = on_iceberg(made, s3, bucket.prefix)
    spark = request.getfixturevalue("spark") if engine == "spark" else None
    assert run(spark, config, once=True) == {}
    fill(stream, [{"id": at} for at in range(100)])
    other = evolve(config, engine="local")
    assert run(None, other, once=True) == {}
    assert landed_in_catalog(config, tmp_path) == (5100, 5100)
    (verdict,) = verify(config)
    assert (verdict.problems, verdict.rows, verdict.dead_letters) == ([], 5100, 500)
    assert stream.info().state.messages == 0


def test_dead_letters_are_counted_and_published(
    server: NatsServer, config: PipelineConfig, s3: S3Server, jet: JetStream, tmp_path: Path
) -> None:
    """Those that tasks have written, and those that another program has merged."""
    made = config_of(tmp_path, "delta", server.url, SOURCE)
    config = evolve(made, sink="iceberg", path=config.path, catalog=config.catalog)
    (source,) = config.sources
    taker = jet.create_stream(StreamConfig(name="BAD-ICE", subjects=["bad.ice"]))
    land_all(config, FakeLeader(LAST))
    (reason,) = letters_of(config, source).reasons
    assert (reason.count, reason.first_seq, reason.last_seq) == (2, 10, 20)
    done = publish_letters(config, source, "bad.ice")
    assert (done.stream, done.published, done.repeated) == (taker.name, 2, 0)
    merge_files(config, "dead_letters_orders")
    done = publish_letters(config, source, "bad.ice")
    assert (done.published, done.repeated) == (0, 2)
    found = [(each.data, each.headers["Dead-Sequence"]) for each in taker.read()]
    assert found == [(b"{}", "10"), (b"{}", "20")]


def test_a_catalog_that_refuses_access_is_named(
    config: PipelineConfig, leader: FakeLeader, monkeypatch: pytest.MonkeyPatch
) -> None:
    land_all(config, leader)
    leader.last += 10
    sink = batches_of(config, journal_in(config), leader)
    monkeypatch.setenv("TEST_S3_KEY", "unknown")
    with pytest.raises(StorageError) as caught:
        sink.refuse_taken(3)
    text = str(caught.value)
    assert config.catalog is not None
    assert f"the catalog {config.catalog.uri} refuses access (" in text
    assert text.endswith("; check the credentials and properties of [catalog]")
    assert "\n" not in text


def test_a_catalog_that_does_not_answer_is_named(
    config: PipelineConfig, leader: FakeLeader
) -> None:
    """The socket accepts connections, and no request is ever answered."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert config.catalog is not None
        assert isinstance(config.path, ObjectFolder)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        short = evolve(config.path, storage=evolve(config.path.storage, timeout=0.1))
        other = evolve(config, path=short, catalog=evolve(config.catalog, uri=url))
        with pytest.raises(StorageError) as caught:
            land_all(other, leader, store=Folders.of(config.path).store)
    message = f"cannot open the catalog: the catalog {url} does not answer (ConnectionError)"
    assert str(caught.value) == f"{message}; check that it runs, and uri"


def test_credentials_that_expire_are_renewed(
    s3: S3Server, config: PipelineConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proxies refuse keys that are older than ten seconds; tables are used for longer."""
    keys = ShortKeys(tmp_path)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(keys.config))
    with S3Proxy(s3.url, keys.fault) as store, S3Proxy(s3.catalog_url, keys.fault) as catalog:
        assert config.catalog is not None
        folder = s3.folder(
            "short", store.url, access_key_env="", secret_key_env="", profile="short"
        )
        driven = evolve(config, path=folder, catalog=evolve(config.catalog, uri=catalog.url))
        leader = FakeLeader(10)
        land_until_renewed(driven, leader, keys)
        judged = evolve(config, path=s3.folder("short"))
        assert landed_in_catalog(judged, tmp_path) == (leader.last, leader.last)


def test_properties_of_a_table_do_not_choose_its_files(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path
) -> None:
    """A program may set one that names a class of Python."""
    land_all(config, leader)
    table = iceberg_table(config)
    table.transaction().set_properties({"py-io-impl": "no.such.Files"}).commit_transaction()
    leader.last = 38
    land_all(config, leader)
    sink = open_sink(config)
    assert sink.holds("orders", 4)
    assert bounds(config)[-1] == (36, 39)


def test_a_table_without_its_property_against_retries_gets_it_again(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path
) -> None:
    land_all(config, leader)
    table = iceberg_table(config)
    table.transaction().remove_properties("commit.retry.num-retries").commit_transaction()
    leader.last = 38
    land_all(config, leader)
    check(config, tmp_path, 38)
    assert iceberg_table(config).properties["commit.retry.num-retries"] == "0"


def test_a_table_that_gets_its_property_again_may_have_the_batch(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path
) -> None:
    """Two drivers have loaded the table without the property, and one of them adds the batch."""
    land_all(config, leader)
    table = iceberg_table(config)
    table.transaction().remove_properties("commit.retry.num-retries").commit_transaction()
    columns = arrow_columns(table.schema())
    row = {"_seq": 26, "_batch_id": 3, "_timestamp": datetime.now(UTC)}
    rows = pa.Table.from_pylist([row], schema=columns)
    drivers = [open_sink(config).batch(3, SourceWriter("orders", "id", "_seq")) for _ in range(2)]
    outputs = [each.prepared(["orders"], lambda _: columns) for each in drivers]
    for driver, output in zip(drivers, outputs, strict=True):
        files = TableFiles(output)
        files.add(Place("orders"), rows.to_batches()[0])
        driver.put("orders", files.finish("_seq"), columns)
    assert rows_by_batch(config)[3] == 1


class WithDeletes:
    """A table whose files have deletes, which pyiceberg cannot write."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.name = table.name

    def scan(self, row_filter: str) -> WithDeletes:
        return self

    def plan_files(self) -> list[FileScanTask]:
        found = self._table.scan().plan_files()
        return [FileScanTask(each.file, {each.file}) for each in found]


def test_row_level_deletes_of_another_program_are_refused(
    config: PipelineConfig, leader: FakeLeader
) -> None:
    land_all(config, leader)
    table = cast("Table", WithDeletes(iceberg_table(config)))
    with pytest.raises(JournalError, match="are deleted by delete files, which another program"):
        data_files(table, "_batch_id >= 0")


def test_a_column_that_iceberg_does_not_have_is_named() -> None:
    columns = pa.schema([
        ("id", pa.int64()),
        ("to", pa.struct([("parts", pa.list_(pa.float16()))])),
    ])  # fmt: skip
    message = r"column 'to\.parts\.element' has the type halffloat, .* the table orders cannot"
    with pytest.raises(SchemaError, match=message):
        iceberg_schema("orders", columns)


def test_columns_are_the_same_in_iceberg() -> None:
    columns = pa.schema([
        ("a", pa.int32()), ("b", pa.int64()), ("c", pa.float32()), ("d", pa.float64()),
        ("e", pa.bool_()), ("f", pa.string()), ("g", pa.binary()), ("h", pa.date32()),
        ("i", pa.timestamp("us", "UTC")), ("j", pa.decimal128(20, 0)),
        ("k", pa.struct([("x", pa.list_(pa.field("element", pa.string())))])),
        ("l", pa.map_(pa.string(), pa.list_(pa.field("element", pa.int64())))),
        pa.field("_batch_id", pa.int64(), nullable=False),
    ])  # fmt: skip
    assert arrow_columns(iceberg_columns(columns)) == columns


@pytest.mark.parametrize("value_format", ["raw", "json"])
def test_changes_of_a_bucket_are_landed(
    jet: JetStream, server: NatsServer, s3: S3Server, bucket: ObjectFolder, tmp_path: Path,
    value_format: str,
) -> None:  # fmt: skip
    values = jet.create_key_value(KeyValueConfig(bucket=f"ICE_{value_format}", history=30))
    for number in range(1, 21):
        values.put(f"key.{number % 3}", b"{}" if number == 10 else b'{"id": %d}' % number)
    values.delete("key.1")
    schema = 'schema = "order.json"\n' if value_format == "json" else ""
    source = (
        f'bucket = "ICE_{value_format}"\nname = "orders"\ntable = "orders"\n'
        f'format = "{value_format}"\n{schema}max_messages = 8\n'
    )
    made = config_of(tmp_path, "delta", server.url, source, engine="local")
    config = on_iceberg(made, s3, bucket.prefix)
    assert run(None, config, once=True) == {}
    prefix = "" if value_format == "raw" else "_"
    rows = iceberg_table(config).scan().to_arrow()
    letters = [10] if value_format == "json" else []
    revisions = sorted(rows.column(f"{prefix}revision").to_pylist())
    assert revisions == [each for each in range(1, 22) if each not in letters]
    assert set(rows.column(f"{prefix}key").to_pylist()) == {"key.0", "key.1", "key.2"}
    (verdict,) = verify(config)
    assert verdict.problems == []
    assert verdict.dead_letters == len(letters)
