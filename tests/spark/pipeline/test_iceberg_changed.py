"""Iceberg tables that another program made or changed: rows stay exact, or the pipeline refuses."""

from __future__ import annotations

import gzip
import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import obstore
import pyarrow as pa
import pytest
from attrs import evolve
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import LongType, NestedField, StringType, StructType

from tests.s3_proxy import Fault, S3Proxy, S3Request
from tests.s3_server import S3Server
from tests.spark.drivers import SOURCE, FakeLeader, batches_of, changed, journal_in, land_all
from tests.spark.iceberg import catalog_of, iceberg_table, landed_in_catalog, on_iceberg
from tests.spark.pipelines import config_of
from tests.tuned import Tuned
from twinstream.lake.errors import StorageError, StorageUnusable
from twinstream.lake.iceberg.retention import StoredObject
from twinstream.lake.iceberg.tables import NAME_MAPPING, home_of
from twinstream.lake.land_batch import BatchLander
from twinstream.lake.objects.client import bucket_of
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.errors import JournalError, SchemaError
from twinstream.spark.landing.split_tables import Place
from twinstream.spark.landing.table_files import TableFiles
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.maintenance.vacuum_iceberg import is_pending
from twinstream.spark.pipeline.tables.iceberg_fit import refuse_unmapped
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.spark.pipeline.tables.sink import SourceWriter

LAST = 25
MORE = 38
ID = NestedField(1, "id", LongType())
BATCH = NestedField(2, "_batch_id", LongType())


@pytest.fixture
def config(tmp_path: Path, s3: S3Server, bucket: ObjectFolder) -> PipelineConfig:
    made = config_of(tmp_path, "delta", "nats://127.0.0.1:1", SOURCE)
    return on_iceberg(made, s3, bucket.prefix)


@pytest.fixture
def leader() -> FakeLeader:
    return FakeLeader(LAST)


def create(config: PipelineConfig, *columns: NestedField, version: int = 2) -> Table:
    """Create the table as another program does."""
    assert config.catalog is not None
    catalog = catalog_of(config)
    catalog.create_namespace(config.catalog.namespace)
    name, properties = (*config.catalog.namespace, "orders"), {"format-version": str(version)}
    return catalog.create_table(name, Schema(*columns), properties=properties)


def set_property(config: PipelineConfig, name: str, value: str | None) -> None:
    with iceberg_table(config).transaction() as change:
        if value is None:
            change.remove_properties(name)
        else:
            change.set_properties({name: value})


def merge_files(config: PipelineConfig) -> None:
    table = iceberg_table(config)
    table.overwrite(table.scan().to_arrow())
    assert len(list(table.scan().plan_files())) == 1


def with_schema(config: PipelineConfig, **properties: object) -> PipelineConfig:
    (source,) = config.sources
    schema = {"type": "object", "required": ["id"], "properties": properties}
    return changed(config, options={**source.options, "jsonSchema": json.dumps(schema)})


def test_a_commit_on_a_state_of_another_driver_is_refused_without_the_property(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path
) -> None:
    """Without it, pyiceberg commits again. To set it is a commit, after that of another driver."""
    land_all(config, leader)
    set_property(config, "commit.retry.num-retries", None)
    columns = [pa.array([value], pa.int64()) for value in (26, 26, 3)]
    rows = pa.RecordBatch.from_arrays(columns, ["id", "_seq", "_batch_id"])
    drivers = [open_sink(config).batch(3, SourceWriter("orders", "id", "_seq")) for _ in range(2)]
    attempts = [TableFiles(each.prepared(["orders"], lambda _: rows.schema)) for each in drivers]
    for driver, files in zip(drivers, attempts, strict=True):
        files.add(Place("orders"), rows)
        driver.put("orders", files.finish("_seq"), rows.schema)
    assert landed_in_catalog(config, tmp_path) == (26, 26)
    assert iceberg_table(config).properties["commit.retry.num-retries"] == "0"


def test_files_that_were_merged_without_bounds(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path
) -> None:
    """Programs keep them for the first hundred columns only, and the batch is in the last one."""
    land_all(config, leader)
    set_property(config, "write.metadata.metrics.default", "none")
    merge_files(config)
    leader.last = MORE
    land_all(config, leader)
    assert landed_in_catalog(config, tmp_path) == (MORE, MORE)


@pytest.mark.parametrize("is_created_again", [False, True])
def test_a_table_that_was_dropped(
    config: PipelineConfig, leader: FakeLeader, *, is_created_again: bool
) -> None:
    land_all(config, leader)
    assert config.catalog is not None
    name = (*config.catalog.namespace, "orders")
    catalog, columns = catalog_of(config), iceberg_table(config).schema()
    catalog.drop_table(name)
    what = "is not in the catalog"
    if is_created_again:
        catalog.create_table(name, columns)
        what = "does not have batch 2"
    leader.last = MORE
    with pytest.raises(JournalError, match=rf"orders {what}, although .*: restore the newest"):
        land_all(config, leader)


def test_a_table_that_was_rolled_back(config: PipelineConfig, leader: FakeLeader) -> None:
    land_all(config, leader)
    table = iceberg_table(config)
    first, *_, last = table.snapshots()
    table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    leader.last = 30
    with pytest.raises(JournalError, match="orders was set back from batch 2 to batch 0, although"):
        land_all(config, leader)
    table.refresh()
    table.manage_snapshots().set_current_snapshot(last.snapshot_id).commit()
    land_all(config, leader)
    assert iceberg_table(config).scan().to_arrow().num_rows == 27


def test_tables_of_another_kind_are_not_continued(
    config: PipelineConfig, leader: FakeLeader
) -> None:
    land_all(evolve(config, sink="delta", catalog=None), leader)
    leader.last = MORE
    with pytest.raises(JournalError, match="orders is not in the catalog, although"):
        land_all(config, leader)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([ID], "orders has no column '_batch_id', so another program has made it; name another"),
        (
            [ID, BATCH, NestedField(3, "branch", LongType(), required=True)],
            "column 'branch' of the table orders must not be null, and some .*; drop NOT NULL of",
        ),
        (
            [NestedField(1, "id", LongType(), required=True), BATCH],
            "column 'id' of the table orders must not be null",
        ),
        ([ID, NestedField(2, "_batch_id", StringType())], "'_batch_id' of .* landed as string"),
    ],
)
def test_a_table_of_another_program_is_refused(
    config: PipelineConfig, leader: FakeLeader, columns: list[NestedField], message: str
) -> None:
    create(config, *columns)
    with pytest.raises(SchemaError, match=message):
        land_all(config, leader)
    assert iceberg_table(config).snapshots() == []


@pytest.mark.parametrize("version", [1, 3])
def test_a_table_of_another_version(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path, version: int
) -> None:
    create(config, ID, BATCH, version=version)
    if version < 3:
        land_all(config, leader)
        assert landed_in_catalog(config, tmp_path) == (LAST, LAST)
    else:
        with pytest.raises(SchemaError, match=r"orders has the format version 3, and .* at most 2"):
            land_all(config, leader)


def test_rows_of_another_program_are_refused(config: PipelineConfig, leader: FakeLeader) -> None:
    table = create(config, ID)
    table.append(table.scan().to_arrow())
    with pytest.raises(SchemaError, match="orders has no column '_batch_id'"):
        land_all(config, leader)


def test_a_table_that_another_program_has_made_for_the_pipeline(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path
) -> None:
    """In another order, with another column. It lacks columns, and requires that of the batch."""
    branch, batch = NestedField(3, "branch", LongType()), NestedField(1, "id", LongType())
    create(config, branch, NestedField(2, "_batch_id", LongType(), required=True), batch)
    land_all(config, leader)
    assert landed_in_catalog(config, tmp_path) == (LAST, LAST)
    found = iceberg_table(config).scan(selected_fields=("branch", "id")).to_arrow()
    assert found.column("branch").to_pylist() == [None] * 23
    assert sorted(found.column("id").to_pylist())[:3] == [1, 2, 3]


def test_a_column_that_another_program_has_renamed(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path
) -> None:
    """A new column would take the values of the older files from the renamed one."""
    land_all(config, leader)
    with iceberg_table(config).update_schema() as change:
        change.rename_column("id", "number")
    leader.last = MORE
    with pytest.raises(SchemaError, match="'id' of the table orders was renamed to 'number', and"):
        land_all(config, leader)
    with iceberg_table(config).update_schema() as change:
        change.rename_column("number", "id")
    land_all(config, leader)
    assert landed_in_catalog(config, tmp_path) == (MORE, MORE)


@pytest.mark.parametrize(
    ("mapping", "column"),
    [
        ("[]", "id"),
        ('[{"field-id": 2, "names": ["id"]}]', "id"),
        ('[{"field-id": 1, "names": ["number", "id"]}]', "to.city"),
        ('[{"field-id": 1, "names": ["id"]}, {"field-id": 3, "names": ["to"]}]', "to.city"),
    ],
)
def test_columns_that_the_property_does_not_map(mapping: str, column: str) -> None:
    to = NestedField(3, "to", StructType(NestedField(4, "city", StringType())))
    schema = Schema(ID, to)
    metadata = SimpleNamespace(properties={NAME_MAPPING: mapping}, schema=lambda: schema)
    with pytest.raises(SchemaError, match=f"does not map the column '{column}', so"):
        refuse_unmapped("orders", cast("TableMetadata", metadata), schema)
    metadata.properties = {NAME_MAPPING: schema.name_mapping.model_dump_json()}
    refuse_unmapped("orders", cast("TableMetadata", metadata), schema)


def test_columns_that_readers_would_not_find(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path
) -> None:
    land_all(config, leader)
    set_property(config, NAME_MAPPING, "{")
    leader.last = MORE
    with pytest.raises(SchemaError, match=f"{NAME_MAPPING} of .* does not map .* 'id', so"):
        land_all(config, leader)
    set_property(config, NAME_MAPPING, None)
    land_all(config, leader)
    assert landed_in_catalog(config, tmp_path) == (MORE, MORE)


@pytest.mark.parametrize("place", ["gs://bucket/orders", "file:///tmp/orders"])
def test_a_table_that_is_not_on_s3(place: str) -> None:
    table = SimpleNamespace(location=lambda: place, name=lambda: ("raw", "orders"))
    with pytest.raises(StorageUnusable, match=f"table raw.orders is at {place}, .* a warehouse on"):
        home_of(cast("Table", table))


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"_file": {"type": "string"}}, "'_file' has the name of a column that readers of Iceberg"),
        (
            {
                "to.city": {"type": "string"},
                "to": {"type": "object", "properties": {"city": {"type": "string"}}},
            },
            "orders cannot have two columns with the same name and dots .*to.city.*; leave one",
        ),
    ],
)
def test_names_that_iceberg_cannot_have(
    config: PipelineConfig, leader: FakeLeader, properties: dict[str, object], message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        land_all(with_schema(config, id={"type": "integer"}, **properties), leader)
    land_all(config, leader)
    leader.last = MORE
    with pytest.raises(SchemaError, match=message):
        land_all(with_schema(config, id={"type": "integer"}, **properties), leader)


def stored(config: PipelineConfig, *keys: str, data: bytes = b"{}") -> list[str]:
    """Store objects below the folder of the table, as another program does."""
    lake, home = open_sink(config).lake, home_of(iceberg_table(config))
    assert lake is not None
    for key in keys:
        folder, path = lake.located(f"{home}/{key}")
        obstore.put(bucket_of(folder), path, data)
    return [f"s3://{home}/{key}" for key in keys]


def removed(config: PipelineConfig) -> list[str]:
    return [str(each.path) for each in vacuum(config, keep=0)]


def test_files_that_another_program_may_be_about_to_commit_stay(
    config: PipelineConfig, leader: FakeLeader
) -> None:
    land_all(config, leader)
    others = ("data/part-0-1.parquet", "data/orders-1-ab.parquet", "metadata/1-m0.avro")
    stored(config, *others)
    own = stored(config, "data/orders-000000001-ab.parquet")
    assert removed(config) == own
    (source,), now = config.sources, datetime.now(UTC)
    for days, is_there in ((0, True), (2, False)):
        objects = (StoredObject(key, 1, now - timedelta(days=days)) for key in others)
        assert [is_pending(each, source, 2) for each in objects] == [is_there] * 3
    assert is_pending(StoredObject("data/orders-000000003-ab.parquet", 1, now), source, 2)


def test_a_table_that_another_program_has_made_since_is_left_alone(
    config: PipelineConfig, leader: FakeLeader
) -> None:
    land_all(config, leader)
    assert config.catalog is not None
    name, catalog = (*config.catalog.namespace, "orders"), catalog_of(config)
    rows = iceberg_table(config).scan().to_arrow()
    catalog.drop_table(name)
    table = catalog.create_table(name, rows.schema)
    for _ in range(2):
        table.append(rows)
    theirs = {each.snapshot_id for each in table.snapshots()}
    stored(config, "data/orders-000000001-ab.parquet")
    assert vacuum(config, keep=0) == []
    # The first command that locks the tables adds an empty snapshot.
    assert theirs < {each.snapshot_id for each in iceberg_table(config).snapshots()}


def test_files_of_two_tables_in_one_folder_stay(config: PipelineConfig, leader: FakeLeader) -> None:
    """Some catalogs give a new table the folder of one that was renamed."""
    land_all(config, leader)
    key = "metadata/00000-0b6a.metadata.json"
    data = json.dumps({"format-version": 2, "table-uuid": str(uuid.uuid4())}).encode()
    stored(config, key, data=data)
    stored(config, "data/orders-000000001-ab.parquet")
    with pytest.raises(StorageError, match=rf"{key} belongs to another table than .*orders, whose"):
        vacuum(config, keep=0)
    stored(config, key, data=gzip.compress(data))
    with pytest.raises(StorageError, match=f"{key} belongs to another table"):
        vacuum(config, keep=0, dry_run=True)


@pytest.mark.parametrize("fault", ["409", "503"])
def test_a_vacuum_whose_commit_is_refused_or_unknown(
    config: PipelineConfig, leader: FakeLeader, s3: S3Server, fault: Fault
) -> None:
    land_all(config, leader)
    faults: list[Fault] = [fault]

    def answer(request: S3Request) -> Fault:
        is_commit = request.method == "POST" and request.key.endswith("/tables/orders")
        return faults.pop() if is_commit and faults else ""

    assert config.catalog is not None
    with S3Proxy(s3.catalog_url, answer) as proxy:
        driven = evolve(config, catalog=evolve(config.catalog, uri=proxy.url))
        assert vacuum(driven, keep=0) == []
    assert faults == []
    assert len(iceberg_table(config).snapshots()) == 1


def test_snapshots_that_are_not_current_do_not_expire(
    config: PipelineConfig, leader: FakeLeader, tuned: Tuned
) -> None:
    """Another program publishes them later, or goes back to them."""
    tuned("kept snapshots", 4)
    tuned("most snapshots", 8)
    land_all(config, leader)
    table = iceberg_table(config)
    rows = table.scan().to_arrow()
    table.append(rows)
    staged = table.current_snapshot()
    assert staged is not None
    assert staged.parent_snapshot_id is not None
    table.manage_snapshots().set_current_snapshot(staged.parent_snapshot_id).commit()
    leader.last = 130
    land_all(config, leader)
    ids = {each.snapshot_id for each in iceberg_table(config).snapshots()}
    assert staged.snapshot_id in ids
    assert len(ids) < 10


def remove_manifests(config: PipelineConfig, table: Table) -> None:
    """Remove the list of the current snapshot's manifests."""
    snapshot, lake = table.current_snapshot(), open_sink(config).lake
    assert snapshot is not None
    assert lake is not None
    folder, key = lake.located(snapshot.manifest_list.removeprefix("s3://"))
    obstore.delete(bucket_of(folder), key)


def test_a_snapshot_that_expires_between_two_batches(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path
) -> None:
    """Another program has merged the files, and has removed those of the older snapshot."""
    journal = journal_in(config)
    lander = BatchLander(journal, batches_of(config, journal, leader))
    while (plan := lander.due()) is not None:
        if plan.batch == 2:
            before = iceberg_table(config)
            merge_files(config)
            remove_manifests(config, before)
        lander.land(plan)
    assert landed_in_catalog(config, tmp_path) == (LAST, LAST)


def test_a_file_that_is_missing_is_named(config: PipelineConfig, leader: FakeLeader) -> None:
    land_all(config, leader)
    remove_manifests(config, iceberg_table(config))
    message = r"s3://warehouse/.*snap-.*avro is missing: another .* Try again, .* restore it"
    with pytest.raises(StorageError, match=message):
        open_sink(config).reaches("orders", 3)
