"""Schemas that change between batches: what lands stays readable, what does not fit is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from js_sync import Stream
from tests.spark.pipelines import SINKS, config_of, counted, rows_of, write_config
from twinstream.spark.errors import SchemaError
from twinstream.spark.pipeline.maintenance.compact import compact
from twinstream.spark.pipeline.maintenance.replay import replay
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.settings.toml_config import read_config
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[..., Stream]
Fill = Callable[..., None]

WHOLE = {"type": "integer"}
TEXT = {"type": "string"}


def source(stream: Stream, more: str) -> str:
    named = f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\nformat = "json"\n'
    return f'{named}schema = "order.json"\n{more}'


def record(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members}


@pytest.mark.parametrize("sink", SINKS)
def test_columns_come_and_go_and_keep_their_types(
    sink: str,
    spark: SparkSession,
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    config_of(tmp_path, sink, server.url, source(stream, 'commit = "purge"'))

    def lands(payload: object, **members: Any) -> dict[str, str]:
        (tmp_path / "order.json").write_text(json.dumps(record(**members)))
        fill(stream, [payload] if payload else [])
        return run(spark, read_config(tmp_path / "orders.toml"), once=True)

    assert lands({"n": 1, "in": {"x": 1}}, n=WHOLE, **{"in": record(x=WHOLE)}) == {}
    assert lands({"k": "a"}, k=TEXT) == {}
    failed = lands({"n": "two"}, n=TEXT)
    assert "column 'n' of the table orders was landed as int64 and is string" in failed["orders"]
    failed = lands(None, N=WHOLE)
    assert "column 'n' of the table orders was landed as int64 and is 'N'" in failed["orders"]
    assert stream.info().state.messages == 1, "what is not landed is not purged"
    assert lands(None, n=WHOLE) == {}
    more = {"in": record(x={**WHOLE, "description": "told by now"}, y=TEXT)}
    assert lands({"n": 4, "in": {"x": 4, "y": "z"}}, n=WHOLE, **more) == {}
    assert lands({"in": {"x": 5}}, **{"in": record(x=WHOLE)}) == {}

    lake, config = tmp_path / "lake", read_config(tmp_path / "orders.toml")
    for _ in range(2):
        assert counted(lake / "orders", sink) == (4, 4)
        assert counted(lake / "dead_letters" / "source=orders", sink) == (1, 1)
        assert [each.problems for each in verify(config)] == [[]]
        assert list(compact(config))
    found = {row["_seq"]: (row["n"], row["k"], row["in"]) for row in rows_of(lake / "orders", sink)}
    assert found == {
        1: (1, None, {"x": 1, "y": None}),
        2: (None, "a", None),
        4: (4, None, {"x": 4, "y": "z"}),
        5: (None, None, {"x": 5, "y": None}),
    }


@pytest.mark.parametrize("sink", SINKS)
def test_a_replay_changes_no_type(
    sink: str,
    spark: SparkSession,
    server: NatsServer,
    make_stream: Make,
    fill: Fill,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [{"n": 1}, {"n": 2}, {"n": 2.5}, {"n": 3.5}])
    file = write_config(tmp_path, sink, server.url, source(stream, "max_messages = 2"))
    schema = tmp_path / "order.json"
    schema.write_text(json.dumps(record(n=WHOLE)))
    assert run(spark, read_config(file), once=True) == {}
    schema.write_text(json.dumps(record(n={"type": "number"})))
    config = read_config(file)
    with pytest.raises(SchemaError, match="column 'n' of the table orders was landed as int64"):
        replay(spark, config, config.sources[0], 3, 5)
    lake = tmp_path / "lake"
    assert [row["n"] for row in rows_of(lake / "orders", sink)] == [1, 2]
    letters = rows_of(lake / "dead_letters" / "source=orders", sink)
    assert sorted(row["_raw"] for row in letters) == [b'{"n": 2.5}', b'{"n": 3.5}']
