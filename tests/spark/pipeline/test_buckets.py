"""Buckets as sources of pipelines: each change once, the latest value of each key, and `verify`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from attrs import evolve
from deltalake import DeltaTable

from js_sync import JetStream, KeyValue
from tests.hooked import hooked, once
from tests.spark.pipelines import (
    ENGINE,
    SCHEMA,
    SINKS,
    config_of,
    counted,
    files_of,
    rows_of,
)
from twinstream.lake.objects.client import delta_options
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.models import KeyValueConfig, StreamSource
from twinstream.spark.errors import ConfigError, DataLossError, OptionError
from twinstream.spark.pipeline.declarative_code import code_of
from twinstream.spark.pipeline.letters.publish import publish_letters
from twinstream.spark.pipeline.letters.replay import replay_letters
from twinstream.spark.pipeline.letters.summary import letters_of
from twinstream.spark.pipeline.maintenance.compact import compact
from twinstream.spark.pipeline.maintenance.replay import replay
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.pipeline_events import Happening, Landed
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.settings.config import PipelineConfig
from twinstream.spark.pipeline.settings.toml_config import read_config
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Bucket = KeyValue[bytes]
Make = Callable[..., Bucket]
Runs = Callable[..., list[Happening]]

_NUMBERS = count(1)


@pytest.fixture(params=["spark", "local"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(ENGINE, request.param)
    return str(request.param)


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pipelines run without Spark."""
    monkeypatch.setenv(ENGINE, "local")


@pytest.fixture
def make_bucket(jet: JetStream) -> Make:
    def make(**config: Any) -> Bucket:
        return jet.create_key_value(KeyValueConfig(bucket=f"landed{next(_NUMBERS)}", **config))

    return make


@pytest.fixture
def runs(spark: SparkSession) -> Runs:
    def once_to_the_end(config: PipelineConfig) -> list[Happening]:
        heard: list[Happening] = []
        failed = run(spark, config, once=True, tell=heard.append)
        assert failed == {}, heard
        return heard

    return once_to_the_end


def latest(table: Path, sink: str, prefix: str = "") -> dict[str, int]:
    """The keys of a bucket and their last revisions, as the view of the guide gives them."""
    query = f"""
        SELECT {prefix}key, {prefix}revision FROM (
            SELECT *, row_number() OVER (PARTITION BY {prefix}key ORDER BY {prefix}revision DESC)
            AS number FROM read_parquet(?, union_by_name=true)
        ) WHERE number = 1 AND {prefix}operation = 'PUT'
    """
    return dict(duckdb.execute(query, [files_of(table, sink)]).fetchall())


def held(bucket: Bucket) -> dict[str, int]:
    return {entry.key: entry.revision for entry in bucket.get_many([*bucket.keys()]).values()}


def problems_of(config: PipelineConfig) -> list[str]:
    (verdict,) = verify(config)
    return verdict.problems


@pytest.mark.parametrize("sink", SINKS)
def test_each_change_is_a_row_and_the_newest_row_of_a_key_its_state(
    engine: str, sink: str, runs: Runs, server: NatsServer, make_bucket: Make, tmp_path: Path
) -> None:
    bucket = make_bucket(history=5)
    bucket.put("tea.green", b"350")
    bucket.put("tea.black", b"290")
    bucket.put("tea.green", b"375")
    bucket.put("coffee", b"400")
    bucket.delete("coffee")
    source = f'bucket = "{bucket.bucket}"\nname = "prices"\ntable = "prices"\ncommit = "bookmark"'
    config = config_of(tmp_path, sink, server.url, source)
    runs(config)
    table = tmp_path / "lake" / "prices"
    rows = sorted(rows_of(table, sink), key=lambda row: row["revision"])
    changes = [(row["key"], row["value"], row["revision"], row["operation"]) for row in rows]
    assert changes == [
        ("tea.green", b"350", 1, "PUT"),
        ("tea.black", b"290", 2, "PUT"),
        ("tea.green", b"375", 3, "PUT"),
        ("coffee", b"400", 4, "PUT"),
        ("coffee", None, 5, "DELETE"),
    ]
    assert {*rows[0]} == {"key", "value", "revision", "operation", "time", "_batch_id"}
    assert latest(table, sink) == held(bucket) == {"tea.black": 2, "tea.green": 3}

    bucket.purge("tea.black")
    bucket.put("coffee", b"410")
    heard = runs(config)
    assert [each.entry.messages for each in heard if isinstance(each, Landed)] == [2]
    assert counted(table, sink, "revision") == (7, 7), "the purge took what is landed already"
    assert latest(table, sink) == held(bucket) == {"tea.green": 3, "coffee": 7}
    assert problems_of(config) == []
    compact(config)
    assert latest(table, sink) == held(bucket)
    assert problems_of(config) == []


@pytest.mark.parametrize("sink", SINKS)
def test_revisions_that_a_bucket_replaced_are_no_loss(
    engine: str,
    sink: str,
    runs: Runs,
    server: NatsServer,
    make_bucket: Make,
    tmp_path: Path,
) -> None:
    bucket = make_bucket(history=1)
    source = f'bucket = "{bucket.bucket}"\nname = "config"\ntable = "config"'
    config = config_of(tmp_path, sink, server.url, source)
    for key in range(20):
        bucket.put(f"key.{key}", b"1")
    runs(config)
    for value in range(30):
        for key in range(5):
            bucket.put(f"key.{key}", b"%d" % value)
    bucket.delete("key.19")

    # A key is written after the batch was planned: its planned revision is gone.
    change = once(lambda: bucket.put("key.4", b"while the tasks start"))
    with hooked("land: before tasks", change):
        heard = runs(config)
    (entry,) = (each.entry for each in heard if isinstance(each, Landed))
    assert (entry.end - entry.start, entry.messages) == (151, 5), "four of the keys, and a marker"
    table = tmp_path / "lake" / "config"
    assert problems_of(config) == []
    runs(config)
    assert counted(table, sink, "revision") == (26, 26)
    assert latest(table, sink) == held(bucket)
    assert len(held(bucket)) == 19
    assert problems_of(config) == []
    with pytest.raises(DataLossError, match="no longer has"):
        replay(None, evolve(config, engine="local"), config.sources[0], 1, None)
    assert latest(table, sink) == held(bucket)


@pytest.mark.parametrize("sink", SINKS)
def test_an_interrupted_batch_keeps_what_its_first_attempt_read(
    sink: str, runs: Runs, server: NatsServer, make_bucket: Make, tmp_path: Path, local: None
) -> None:
    bucket = make_bucket(history=1)
    source = f'bucket = "{bucket.bucket}"\nname = "config"\ntable = "config"'
    config = config_of(tmp_path, sink, server.url, source)
    bucket.put("a", b"1")
    bucket.put("b", b"1")

    def interrupt() -> None:
        bucket.put("a", b"2")
        raise OSError("the batch is in its table, but not in the journal")

    with hooked("journal: before landed", once(interrupt)):
        heard = runs(config)
    entries = [each.entry for each in heard if isinstance(each, Landed)]
    # The second attempt of the first batch has found only one of its two messages.
    assert [(entry.batch, entry.messages) for entry in entries] == [(0, 2), (1, 1)]
    table = tmp_path / "lake" / "config"
    assert counted(table, sink, "revision") == (3, 3)
    assert latest(table, sink) == held(bucket) == {"b": 2, "a": 3}
    assert problems_of(config) == []


@pytest.mark.parametrize("sink", SINKS)
def test_typed_values_markers_and_letters(
    engine: str,
    sink: str,
    runs: Runs,
    server: NatsServer,
    jet: JetStream,
    make_bucket: Make,
    make_stream: Callable[..., Any],
    tmp_path: Path,
) -> None:
    bucket, copies = make_bucket(history=3), make_stream()
    bucket.put("a", b'{"id": 1, "item": "tea", "time": "noon"}')
    bucket.put("b", b'{"item": "no id"}')
    bucket.put("c", b'{"id": 3}')
    bucket.delete("c")
    source = (
        f'bucket = "{bucket.bucket}"\nname = "items"\ntable = "items"\nformat = "json"\n'
        'schema = "order.json"'
    )
    config = config_of(tmp_path, sink, server.url, source)
    # Members may have the names of columns of raw tables.
    strict: dict[str, Any] = json.loads(json.dumps(SCHEMA))
    strict["properties"]["time"] = {"type": "string"}
    (tmp_path / "order.json").write_text(json.dumps(strict))
    config = read_config(tmp_path / "orders.toml")
    runs(config)
    lake = tmp_path / "lake"
    rows = sorted(rows_of(lake / "items", sink), key=lambda row: row["_revision"])
    assert [(row["_key"], row["id"], row["_operation"]) for row in rows] == [
        ("a", 1, "PUT"),
        ("c", 3, "PUT"),
        ("c", None, "DELETE"),
    ]
    assert rows[0]["time"] == "noon"
    assert latest(lake / "items", sink, "_") == {"a": 1}
    (letter,) = rows_of(lake / "dead_letters" / "source=items", sink)
    assert (letter["_key"], letter["_revision"], letter["_raw"]) == ("b", 2, b'{"item": "no id"}')
    (reason,) = letters_of(config, config.sources[0]).reasons
    assert (reason.count, reason.first_seq) == (1, 2)
    assert problems_of(config) == []

    publish_letters(config, config.sources[0], f"{copies.name.lower()}.letters")
    headers = copies.get_message(1).headers
    assert headers["Dead-Subject"] == f"$KV.{bucket.bucket}.b"
    with pytest.raises(OptionError, match="would land the letters"):
        publish_letters(config, config.sources[0], f"$KV.{bucket.bucket}.b")

    del strict["required"]
    (tmp_path / "order.json").write_text(json.dumps(strict))
    bucket.purge("b")
    config = read_config(tmp_path / "orders.toml")
    done = replay_letters(None, evolve(config, engine="local"), config.sources[0])
    assert (done.letters, done.left) == (1, 0)
    assert latest(lake / "items", sink, "_") == {"a": 1, "b": 2}
    assert problems_of(config) == []
    runs(config)
    assert latest(lake / "items", sink, "_") == held(bucket) == {"a": 1}
    assert problems_of(config) == []


def test_only_some_keys(
    local: None, runs: Runs, server: NatsServer, make_bucket: Make, tmp_path: Path
) -> None:
    bucket = make_bucket(history=1)
    for key in ("eu.a", "us.a", "eu.b", "plain"):
        bucket.put(key, b"1")
    source = f'bucket = "{bucket.bucket}"\ntable = "config"\nkeys = ["eu.>", "plain"]'
    config = config_of(tmp_path, "parquet", server.url, source)
    runs(config)
    assert latest(tmp_path / "lake" / "config", "parquet") == {"eu.a": 1, "eu.b": 3, "plain": 4}
    assert problems_of(config) == []
    bucket.put("us.a", b"2")
    other = source.replace("plain", "us.>")
    config = config_of(tmp_path, "parquet", server.url, other)
    failed = run(None, config, once=True)
    assert "Name the keys as before" in failed[bucket.bucket]


def test_a_mirror_is_landed_with_the_keys_of_its_origin(
    local: None, runs: Runs, server: NatsServer, jet: JetStream, make_bucket: Make, tmp_path: Path
) -> None:
    origin = make_bucket(history=2)
    mirror = make_bucket(mirror=StreamSource(name=f"KV_{origin.bucket}"))
    origin.put("eu.a", b"1")
    origin.put("us.a", b"2")
    while len([*mirror.keys()]) < 2:
        time.sleep(0.01)
    source = f'bucket = "{mirror.bucket}"\ntable = "config"\nkeys = "eu.>"'
    config = config_of(tmp_path, "delta", server.url, source)
    runs(config)
    assert latest(tmp_path / "lake" / "config", "delta") == {"eu.a": 1}
    assert problems_of(config) == []


def test_a_bucket_is_landed_on_s3(
    local: None,
    runs: Runs,
    server: NatsServer,
    make_bucket: Make,
    bucket: ObjectFolder,
    tmp_path: Path,
) -> None:
    settings = make_bucket(history=1)
    settings.put("a", b"1")
    settings.put("b", b"no JSON")
    source = f'bucket = "{settings.bucket}"\nname = "items"\ntable = "items"\nformat = "json"\n'
    config = config_of(tmp_path, "delta", server.url, source + 'schema = "order.json"')
    (tmp_path / "order.json").write_text('{"properties": {"a": {"type": "string"}}}')
    settings.put("a", b'{"a": "x"}')
    config = evolve(read_config(tmp_path / "orders.toml"), path=bucket)
    runs(config)
    settings.delete("a")
    runs(config)
    table = DeltaTable(f"{bucket}/items", storage_options=delta_options(bucket.storage))
    rows = sorted(table.to_pyarrow_table().to_pylist(), key=lambda row: row["_revision"])
    changes = [(row["_key"], row["_revision"], row["_operation"], row["a"]) for row in rows]
    assert changes == [("a", 3, "PUT", "x"), ("a", 4, "DELETE", None)]
    (reason,) = letters_of(config, config.sources[0]).reasons
    assert (reason.count, reason.first_seq) == (1, 2)
    assert problems_of(config) == []


def test_a_bucket_that_was_created_again_ends_its_source(
    local: None, runs: Runs, server: NatsServer, jet: JetStream, make_bucket: Make, tmp_path: Path
) -> None:
    bucket = make_bucket()
    bucket.put("a", b"1")
    source = f'bucket = "{bucket.bucket}"\ntable = "config"'
    config = config_of(tmp_path, "parquet", server.url, source)
    runs(config)
    jet.delete_key_value(bucket.bucket)
    jet.create_key_value(KeyValueConfig(bucket=bucket.bucket)).put("a", b"other")
    failed = run(None, config, once=True)
    assert "was deleted and re-created" in failed[bucket.bucket]
    assert "was deleted and re-created" in problems_of(config)[0]


def test_missing_change_is_reported(
    local: None, runs: Runs, server: NatsServer, make_bucket: Make, tmp_path: Path
) -> None:
    bucket = make_bucket(history=1)
    bucket.put("a", b"1")
    source = f'bucket = "{bucket.bucket}"\ntable = "config"'
    config = config_of(tmp_path, "parquet", server.url, source)
    runs(config)
    bucket.put("b", b"1")
    runs(config)
    for file in (tmp_path / "lake" / "config" / "batch_id=1").iterdir():
        file.unlink()
    assert [each.partition(":")[0] for each in problems_of(config)] == [
        "1 messages of the stream are in no table",
        "batch 1 has 0 rows in the tables, the journal has 1",
    ]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ('bucket = "a b"', "bucket: bucket name 'a b'"),
        ('bucket = "B"\nstream = "S"', "stream: cannot be combined with bucket; give one of them"),
        ('bucket = "B"\nsubjects = "s.>"', "subjects: cannot be combined with bucket; name keys"),
        ('bucket = "B"\nprefix = "p_"', "prefix: cannot be combined with bucket; it is for"),
        ('bucket = "B"\nformat = "advisory"', "format: is for streams of events"),
        ('bucket = "B"\ncommit = "purge"', 'commit: "purge" would remove the values of the keys'),
        ('bucket = "B"\nkeys = ["a.>.b"]', "keys: filter 'a.>.b'"),
        ('bucket = "B"\noptions = {deletes = false}', "deletes: cannot be set: a pipeline lands"),
        ('bucket = "B"\noptions = {History = true}', "History: cannot be set: a pipeline lands"),
        ('bucket = "B"\noptions = {failOnDataLoss = false}', "failOnDataLoss: must be true"),
        ('bucket = "B"\noptions = {keys = "a"}', "keys: is the key 'keys' of the source"),
        ('stream = "S"\nkeys = "a.>"', "keys: is for a bucket; filter a stream by subjects"),
        ('name = "nothing"', "stream: is required: the name of a stream"),
    ],
)
def test_what_does_not_fit_a_bucket_is_refused(source: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        config_of(tmp_path, "parquet", "nats://127.0.0.1:4222", source)
    assert problem in str(refused.value)


def test_names_of_a_bucket(tmp_path: Path) -> None:
    config = config_of(tmp_path, "parquet", "nats://127.0.0.1:4222", 'bucket = "Config"')
    (source,) = config.sources
    assert (source.name, source.table, source.stream) == ("Config", "config", "KV_Config")
    assert source.bookmark == "orders-Config"


def test_a_project_reads_the_bucket(tmp_path: Path) -> None:
    source = 'bucket = "B"\nformat = "json"\nschema = "order.json"\nstart = 7\nkeys = "a.>"'
    code = code_of(config_of(tmp_path, "parquet", "nats://127.0.0.1:4222", source))
    for part in (
        "'bucket': 'B'",
        "'keys': 'a.>'",
        """'startingOffsets': '{"B": 7}'""",
        'columns = ["_key", "_revision", "_time", "_error", "_raw"]',
    ):
        assert part in code
    assert "'stream'" not in code
