"""The files of a task: their size, and the bounds that let readers of Delta tables skip them.

Neither Spark nor a server has a part in it: see `tests.spark.drivers`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
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
)
from tests.spark.pipelines import SINKS, config_of, files_of
from twinstream.spark.errors import ConfigError
from twinstream.spark.landing.file_settings import FileSettings
from twinstream.spark.landing.split_tables import Place
from twinstream.spark.landing.table_files import TableFiles
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.maintenance.compact import compact

MIB = 1024 * 1024
TYPES = {
    "id": {"type": "integer"},
    "price": {"type": "number"},
    "name": {"type": "string"},
    "due": {"type": "string", "format": "date"},
    "at": {"type": "string", "format": "date-time"},
    "paid": {"type": "boolean"},
}


def with_lines(folder: Path, sink: str, *lines: str) -> PipelineConfig:
    (folder / "typed.json").write_text(json.dumps({"properties": TYPES}))
    source = SOURCE.replace("order.json", "typed.json").replace(" = 2}", " = 1}")
    return config_of(folder, sink, "nats://127.0.0.1:1", source + "\n".join(lines))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('file_size = "128"', "file_size: must be from 1 MiB to 10240 MiB, got '128'"),
        ('file_size = "big"', "file_size: must be a size such as 64 MiB, got 'big'"),
        ('file_size = "11 GiB"', "file_size: must be from 1 MiB to 10240 MiB"),
        (
            'bounds = ["idd"]',
            "bounds: there is no column 'idd'; columns that may be: id, price, name",
        ),
        ('bounds = ["paid"]', "bounds: column 'paid' is bool; bounds are for numbers"),
        ('partition_by = "id"\nbounds = ["id"]', "bounds: 'id' is in partition_by"),
    ],
)
def test_mistakes(tmp_path: Path, line: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        with_lines(tmp_path, "delta", line)
    with pytest.raises(ConfigError, match="bounds: are for the log of tables of sink"):
        with_lines(tmp_path, "parquet", 'bounds = ["id"]')


def test_sizes(tmp_path: Path) -> None:
    (source,) = with_lines(tmp_path, "delta").sources
    assert source.files == FileSettings(size=128 * MIB, max_partitions=200, bounds=())
    (source,) = with_lines(tmp_path, "delta", 'file_size = "1.5 GiB"', 'bounds = "id"').sources
    assert source.files == FileSettings(size=1536 * MIB, bounds=("id",))


@pytest.mark.parametrize("partition", ["", "region=eu"])
def test_a_task_begins_another_file(tmp_path: Path, partition: str) -> None:
    """Random bytes are as large in the file as in memory, of which 32 MiB make a row group."""
    files = TableFiles(tmp_path, FileSettings(size=40 * MIB, max_partitions=1))
    schema = pa.schema([("_seq", pa.int64()), ("data", pa.binary())])
    for number in range(11):
        data = pa.array([os.urandom(MIB) for _ in range(16)], pa.binary())
        seqs = pa.array(range(16 * number, 16 * number + 16), pa.int64())
        files.add(Place("t", partition), pa.RecordBatch.from_arrays([seqs, data], schema=schema))
    found = files.finish("_seq")
    assert [(each.first, each.last) for each in found] == [(0, 63), (64, 127), (128, 175)]
    assert {each.partition for each in found} == {partition}
    assert [each.bytes for each in found] == [each.path.stat().st_size for each in found]
    assert all(40 * MIB <= each.bytes < 80 * MIB for each in found)


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("layout", ['partition_by = "paid"', "tables", ""])
def test_several_files_of_a_task(tmp_path: Path, sink: str, layout: str) -> None:
    """Each page makes a row group, with which its files are full."""
    config = with_lines(tmp_path, sink, "" if layout == "tables" else layout)
    if layout == "tables":
        config = changed(config, table="orders_", token=2)
    small = changed(config, files=FileSettings(size=1, max_partitions=1))
    payload = b'{"id": 1, "paid": true}'
    engine = FakeEngine(payload=lambda _: payload, subject=lambda _: "s.a", page=2)
    land_all(small, FakeLeader(20), engine=engine)
    assert landed(small) == (20, 20)
    table = config.path / ("orders_a" if layout == "tables" else "orders")
    assert isinstance(table, Path)
    assert len(files_of(table, sink)) == 10
    assert [each.tables[table.name].files for each in journal_in(small).entries().values()] == [
        5,
        5,
    ]
    list(compact(small))
    assert len(files_of(table, sink)) == 1
    assert landed(small) == (20, 20)


def of_values(*values: dict[str, Any]) -> FakeEngine:
    return FakeEngine(payload=lambda seq: json.dumps(values[(seq - 1) % len(values)]).encode())


VALUES = [
    {
        "id": 1,
        "price": 1.5,
        "name": "b" * 40,
        "due": "2026-01-01",
        "at": "2026-01-01T00:00:00.0005Z",
    },
    {"id": 9, "price": 2.5, "name": "a", "due": "2026-01-03", "at": "2026-01-02T00:00:00.0005Z"},
    {"id": 4, "price": -7, "due": "2026-01-02"},
    {},
]
BOUNDS = 'bounds = ["id", "price", "name", "due", "at"]'


def test_bounds_are_in_the_log(tmp_path: Path) -> None:
    config = with_lines(tmp_path, "delta", BOUNDS)
    land_all(config, FakeLeader(4), engine=of_values(*VALUES))
    (file,) = actions(config)
    found = {name: (file[f"min.{name}"], file[f"max.{name}"]) for name in ("id", "price", "name")}
    assert found == {
        "id": (1, 9), "price": (-7.0, 2.5), "name": ("a", "b" * 32 + "\U0010ffff"),
    }  # fmt: skip
    assert (str(file["min.due"]), str(file["max.due"])) == ("2026-01-01", "2026-01-03")
    assert str(file["min.at"]) == "2026-01-01 00:00:00+00:00"
    assert str(file["max.at"]) == "2026-01-02 00:00:00.001000+00:00"
    nulls = {name: file[f"null_count.{name}"] for name in ("id", "name", "at", "_seq")}
    assert nulls == {"id": 1, "name": 2, "at": 2, "_seq": 0}


def actions(config: PipelineConfig) -> list[dict[str, Any]]:
    table = DeltaTable(str(config.path / "orders"))
    return pa.table(table.get_add_actions(flatten=True)).to_pylist()


def matching(config: PipelineConfig, predicate: str) -> int:
    """Return the number of files that deltalake reads for a predicate."""
    table = DeltaTable(str(config.path / "orders"))
    return len(table.file_uris(file_pruning_predicate=predicate))


def test_readers_skip_files_by_bounds(tmp_path: Path) -> None:
    config = with_lines(tmp_path, "delta", BOUNDS)
    engine = FakeEngine(payload=lambda seq: json.dumps({"id": seq, "name": f"n{seq:03}"}).encode())
    land_all(config, FakeLeader(50), engine=engine)
    assert len(actions(config)) == 5
    assert matching(config, "id = 7") == matching(config, "name = 'n007'") == 1
    assert matching(config, "id > 35") == 2
    assert matching(config, "id IS NULL") == 0
    assert matching(config, "price IS NULL") == 5
    read = DeltaTable(str(config.path / "orders")).to_pyarrow_table(filters=[("id", ">", 35)])
    assert sorted(read.column("id").to_pylist()) == list(range(36, 51))


def test_bounds_of_any_text(tmp_path: Path) -> None:
    """deltalake reads some escapes of JSON as other characters."""
    config = with_lines(tmp_path, "delta", BOUNDS)
    names = ["\U0010ffff", "\U0001f600", "\uffff", "é", '"\\', "a\nb", ""]
    land_all(config, FakeLeader(70), engine=of_values(*({"name": each} for each in names)))
    (file, *_) = sorted(actions(config), key=lambda each: each["path"])
    assert (file["min.name"], file["max.name"]) == ("", "\U0010ffff")
    for at, name in enumerate(names):
        one = changed(config, name=f"orders{at}", table=f"orders{at}")
        land_all(one, FakeLeader(10), engine=of_values({"name": name}))
        table = DeltaTable(str(config.path / f"orders{at}"))
        (file,) = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        assert (file["min.name"], file["max.name"]) == (name, name)


def test_bounds_of_a_table_may_be_added_later(tmp_path: Path) -> None:
    config = with_lines(tmp_path, "delta")
    engine = FakeEngine(payload=lambda seq: json.dumps({"id": seq}).encode())
    land_all(config, FakeLeader(20), engine=engine)
    assert matching(config, "id = 7") == 2
    later = with_lines(tmp_path, "delta", 'bounds = ["id", "price"]')
    land_all(later, FakeLeader(50), engine=engine)
    assert matching(config, "id = 27") == 3
    assert landed(config) == (50, 50)
    land_all(evolve(config), FakeLeader(60), engine=engine)
    assert matching(config, "id = 27") == 4, "files without bounds may have it"


def test_a_column_without_a_value_has_no_bounds(tmp_path: Path) -> None:
    config = with_lines(tmp_path, "delta", BOUNDS)
    land_all(config, FakeLeader(10), engine=of_values({"name": "x" * 9000}))
    (file,) = actions(config)
    assert file["null_count.id"] == 10
    assert file.get("min.id") is None
    assert file["num_records"] == 10
    assert matching(config, "id = 1") <= 1
    assert matching(config, f"name = '{'x' * 9000}'") == 1
