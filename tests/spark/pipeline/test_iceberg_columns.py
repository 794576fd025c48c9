"""Columns of Iceberg tables are widened and renamed as metadata, and no file is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException

from tests.s3_server import S3Server
from tests.spark.drivers import SOURCE, FakeEngine, FakeLeader, changed, land_all, with_schema
from tests.spark.iceberg import iceberg_table, landed_in_catalog, on_iceberg
from tests.spark.pipelines import config_of
from twinstream.lake.errors import StorageError
from twinstream.lake.iceberg.tables import NAME_MAPPING
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.errors import PipelineBusy, SchemaError
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.maintenance.rewrite import Rewritten, rewrite
from twinstream.spark.pipeline.tables.column_change import ColumnChange, change_of
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.spark.pipeline.tables.sink import SourceWriter
from twinstream.spark.pipeline.tables.source_columns import refuse_old_columns

INT32 = {"type": "integer", "format": "int32"}
WHOLE = {"type": "integer"}
FLOAT = {"type": "number", "format": "float"}
DOUBLE = {"type": "number"}
BIG = 3_000_000_000


@pytest.fixture
def config(tmp_path: Path, s3: S3Server, bucket: ObjectFolder) -> PipelineConfig:
    made = config_of(tmp_path, "delta", "nats://127.0.0.1:1", SOURCE)
    return on_iceberg(made, s3, bucket.prefix)


def nested(number: dict[str, Any], real: dict[str, Any]) -> dict[str, Any]:
    inside = {"type": "object", "properties": {"n": number, "r": real}}
    return {
        "n": number,
        "in": inside,
        "list": {"type": "array", "items": inside},
        "map": {"type": "object", "additionalProperties": number},
    }


def values_of(number: int) -> dict[str, Any]:
    return {
        "n": number,
        "in": {"n": number, "r": 1.5},
        "list": [{"n": number, "r": 0.5}, {"n": None}],
        "map": {"a": number},
    }


def lands(config: PipelineConfig, last: int, payload: Callable[[int], dict[str, Any]]) -> None:
    """Land the messages up to `last`, after the check that a run does."""
    (source,) = config.sources
    refuse_old_columns(open_sink(config), source, ["orders"])
    engine = FakeEngine(payload=lambda seq: json.dumps(payload(seq)).encode())
    land_all(config, FakeLeader(last), engine=engine)


def values(config: PipelineConfig, column: str) -> dict[int, Any]:
    """Return the values of a column by their sequence, as pyiceberg reads them."""
    rows = iceberg_table(config).scan(selected_fields=("_seq", column)).to_arrow()
    seqs = rows.column("_seq").to_pylist()
    return dict(sorted(zip(seqs, rows.column(column).to_pylist(), strict=True)))


def plain(value: Any) -> Any:
    """Return a value as JSON has it, without members that are null."""
    if isinstance(value, list):  # of structs, or of pairs of a map
        items = cast("list[Any]", value)
        if all(isinstance(each, tuple) for each in items):
            return plain(dict(items))
        return [plain(each) for each in items]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {name: plain(each) for name, each in members.items() if each is not None}
    return value


def files_of(config: PipelineConfig) -> list[str]:
    return sorted(each.file.file_path for each in iceberg_table(config).scan().plan_files())


def renaming(config: PipelineConfig, renames: dict[str, str], **members: Any) -> PipelineConfig:
    return changed(with_schema(config, **members), renames=renames)


def test_types_widen_also_inside_other_types(config: PipelineConfig, tmp_path: Path) -> None:
    narrow, wide = (
        with_schema(config, **nested(INT32, FLOAT)),
        with_schema(config, **nested(WHOLE, DOUBLE)),
    )
    lands(narrow, 15, values_of)
    with pytest.raises(SchemaError, match=r"'n' is int32 and becomes int64; .*pipeline rewrite"):
        lands(wide, 25, values_of)
    before = files_of(config)
    (done,) = rewrite(wide)
    assert done.table == "orders"
    assert done.changes[0] == "column 'n' is int32 and becomes int64"
    assert files_of(config) == before, "no file was written"
    assert list(rewrite(wide)) == []
    lands(wide, 25, lambda seq: values_of(seq + BIG))
    assert values(wide, "n") == {seq: seq if seq <= 15 else seq + BIG for seq in range(1, 26)}
    for column in ("in", "list", "map"):
        for seq, number in ((3, 3), (25, 25 + BIG)):
            assert plain(values(wide, column)[seq]) == plain(values_of(number)[column])
    assert landed_in_catalog(wide, tmp_path) == (25, 25)
    with pytest.raises(SchemaError, match="was landed as int64 and is int32 now"):
        lands(narrow, 30, values_of)


def test_a_column_gets_a_new_name(config: PipelineConfig, tmp_path: Path) -> None:
    """Files of both names are read under the new one, and back again."""
    old = with_schema(config, customer_id=INT32)
    new = renaming(config, {"customer_id": "customer"}, customer=WHOLE)
    lands(old, 15, lambda seq: {"customer_id": seq})
    with pytest.raises(SchemaError, match=r"'customer_id' becomes 'customer'.*pipeline rewrite"):
        lands(new, 20, lambda seq: {"customer": seq})
    before = files_of(config)
    assert list(rewrite(new)) == [
        Rewritten(
            table="orders",
            changes=(
                "column 'customer_id' becomes 'customer'",
                "column 'customer_id' is int32 and becomes int64",
            ),
        )
    ]
    assert files_of(config) == before, "no file was written"
    lands(new, 25, lambda seq: {"customer": seq} if seq % 2 else {"customer_id": seq})
    assert values(new, "customer") == {seq: seq for seq in range(1, 26)}
    assert landed_in_catalog(new, tmp_path) == (25, 25)
    assert "customer_id" not in iceberg_table(config).schema().column_names
    wider = renaming(config, {"customer_id": "customer"}, customer=WHOLE, branch=WHOLE)
    lands(wider, 30, lambda seq: {"customer": seq, "branch": seq})
    back = renaming(config, {"customer": "customer_id"}, customer_id=WHOLE)
    list(rewrite(back))
    lands(back, 35, lambda seq: {"customer": seq})
    assert values(back, "customer_id") == {seq: seq for seq in range(1, 36)}
    assert values(back, "branch")[30] == 30


def test_a_driver_that_still_has_the_old_name_is_refused(config: PipelineConfig) -> None:
    """Its files would have a second column with the values of the renamed one."""
    old = with_schema(config, a=WHOLE)
    lands(old, 5, lambda seq: {"a": seq})
    list(rewrite(renaming(config, {"a": "b"}, b=WHOLE)))
    with pytest.raises(SchemaError, match="column 'a' of the table orders was renamed to 'b', and"):
        lands(old, 9, lambda seq: {"a": seq})
    assert values(config, "b") == {seq: seq for seq in range(1, 6)}


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_name_mapping_that_was_removed(config: PipelineConfig, when: str) -> None:
    """It is set again with the names that columns had in earlier files."""
    lands(with_schema(config, a=WHOLE), 5, lambda seq: {"a": seq})
    new = renaming(config, {"a": "b"}, b=WHOLE)
    if when == "after":
        list(rewrite(new))
    with iceberg_table(config).transaction() as change:
        change.remove_properties(NAME_MAPPING)
    if when == "before":
        list(rewrite(new))
    lands(new, 9, lambda seq: {"b": seq})
    assert values(config, "b") == {seq: seq for seq in range(1, 10)}


def test_two_columns_cannot_become_one(config: PipelineConfig) -> None:
    both = with_schema(config, a=WHOLE, b=WHOLE)
    lands(both, 5, lambda seq: {"a": seq})
    new = renaming(config, {"a": "b"}, b=WHOLE)
    with pytest.raises(SchemaError, match="the columns 'a' and 'b', which cannot become one"):
        list(rewrite(new))
    assert values(config, "a") == {seq: seq for seq in range(1, 6)}


def test_the_name_of_a_removed_column_is_not_given_again(config: PipelineConfig) -> None:
    lands(with_schema(config, a=WHOLE, b=WHOLE), 5, lambda seq: {"a": seq, "b": -seq})
    with iceberg_table(config).update_schema(allow_incompatible_changes=True) as change:
        change.delete_column("b")
    with pytest.raises(SchemaError, match=r"'a' of .* cannot become 'b': the table had another"):
        list(rewrite(renaming(config, {"a": "b"}, b=WHOLE)))


def change_to_b(config: PipelineConfig) -> ColumnChange:
    (known,) = open_sink(config).schemas("orders")
    names = ["b" if name == "a" else name for name in known.names]
    wanted = pa.schema([each.with_name(n) for each, n in zip(known, names, strict=True)])
    return change_of("orders", known, wanted, {"a": "b"})


def test_a_change_whose_answer_was_lost_is_repeated(config: PipelineConfig) -> None:
    lands(with_schema(config, a=WHOLE), 5, lambda seq: {"a": seq})
    change = change_to_b(config)
    for _ in range(2):
        open_sink(config).change("orders", change, config.sources[0])
    assert values(config, "b") == {seq: seq for seq in range(1, 6)}
    with iceberg_table(config).update_schema() as update:
        update.rename_column("b", "c")
    with pytest.raises(PipelineBusy, match="another program has changed the column 'a'"):
        open_sink(config).change("orders", change, config.sources[0])


def test_a_change_needs_the_lock(config: PipelineConfig) -> None:
    lands(with_schema(config, a=WHOLE), 5, lambda seq: {"a": seq})

    def lost() -> None:
        raise StorageError("the lock was lost")

    sink, change = open_sink(config, lost), change_to_b(config)
    calls: list[Callable[[], None]] = [
        lambda: sink.change("orders", change, config.sources[0]),
        lambda: sink.renew("orders"),
        lambda: sink.replace("orders", {0: ()}),
    ]
    for call in calls:
        with pytest.raises(StorageError, match="the lock was lost"):
            call()
    assert values(config, "a") == {seq: seq for seq in range(1, 6)}


def test_commits_on_a_state_before_a_renewal_fail(config: PipelineConfig, tmp_path: Path) -> None:
    """Also on an empty table, which has no snapshot yet. A renewal changes no row."""
    land_all(config, FakeLeader(9))
    for name in ("orders", "dead_letters_orders"):
        earlier = iceberg_table(config, name)
        open_sink(config).renew(name)
        transaction = earlier.transaction()
        with transaction.update_snapshot().fast_append():
            pass
        with pytest.raises(CommitFailedException):
            transaction.commit_transaction()
    open_sink(config).renew("other")  # does not exist
    assert landed_in_catalog(config, tmp_path) == (9, 9)
    land_all(config, FakeLeader(25))
    assert landed_in_catalog(config, tmp_path) == (25, 25)
    assert open_sink(config).batch(3, SourceWriter("orders", "id", "_seq")).existing("ord") == [
        "orders"
    ]
    assert open_sink(config).existing("none") == []
