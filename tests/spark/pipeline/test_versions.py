"""Three versions of a producer write to one stream: each value is in its place in one table."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from js_sync import Stream
from tests._sync.flow import eventually
from tests.soak import LONGEST
from tests.spark.pipelines import ENGINE, SINKS, counted, files_of, write_config
from twinstream.cli.groups import twinstream
from twinstream.spark.pipeline.letters.replay import replay_letters
from twinstream.spark.pipeline.maintenance.rewrite import rewrite
from twinstream.spark.pipeline.pipeline_events import Landed
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.settings.toml_config import read_config
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[..., Stream]
Fill = Callable[..., None]

BIG = 3_000_000_000
WHOLE = {"type": "integer"}
INT32 = {"type": "integer", "format": "int32"}
TEXT = {"type": "string"}
RENAME = 'rename = {customer_id = "customer"}\n'


@pytest.fixture(autouse=True, params=["spark", "local"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The engine of all pipelines; a session of Spark is not used by the local one."""
    monkeypatch.setenv(ENGINE, request.param)
    return str(request.param)


class Lake:
    """A pipeline that lands one stream, whose schema changes."""

    def __init__(self, folder: Path, sink: str, server: str, stream: Stream) -> None:
        self.folder, self.sink, self.server, self.stream = folder, sink, server, stream

    def has_schema(self, required: list[str], more: str = "", **members: Any) -> Path:
        """Write the file of the pipeline and its schema; return the file."""
        source = (
            f'stream = "{self.stream.name}"\nname = "sales"\ntable = "sales"\nformat = "json"\n'
        )
        source += f'schema = "sale.json"\nmax_messages = 7\ncommit = "purge"\n{more}'
        schema = {"type": "object", "required": required, "properties": members}
        (self.folder / "sale.json").write_text(json.dumps(schema))
        return write_config(self.folder, self.sink, self.server, source, every="100ms")

    def rows(self) -> dict[int, tuple[Any, ...]]:
        """Return the values of each row by its id. Each id and each sequence occurs once."""
        table = self.folder / "lake" / "sales"
        files = files_of(table, self.sink)
        # A file of an earlier batch lacks a column that was added later.
        columns = pa.unify_schemas([pq.read_schema(file) for file in files])
        found = ds.dataset(files, schema=columns).to_table().to_pylist()
        assert counted(table, self.sink) == (len(found), len(found))
        names = ("customer", "cents", "currency", "_extra")
        values = {row["id"]: tuple(row.get(name) for name in names) for row in found}
        assert len(values) == len(found)
        return values


@pytest.fixture(params=SINKS)
def lake(
    request: pytest.FixtureRequest, server: NatsServer, make_stream: Make, tmp_path: Path
) -> Lake:
    return Lake(tmp_path, request.param, server.url, make_stream())


def first(number: int, cents: int = 5) -> dict[str, Any]:
    return {"id": number, "customer_id": f"c{number}", "cents": cents}


def second(number: int) -> dict[str, Any]:
    return {**first(number, BIG + number), "currency": "EUR"}


def third(number: int) -> dict[str, Any]:
    return {"id": number, "customer": f"c{number}", "cents": BIG + number, "currency": "JPY"}


def test_three_versions_of_a_producer_land_in_one_table(
    lake: Lake, spark: SparkSession, fill: Fill
) -> None:
    stream = lake.stream

    def command(*words: str) -> str:
        done = CliRunner().invoke(twinstream, ["pipeline", *words, "--config", str(file)])
        assert done.exit_code == 0, done.output
        return done.output

    file = lake.has_schema(["id", "customer_id"], id=WHOLE, customer_id=TEXT, cents=INT32)
    # The second version is there before its schema: what does not fit yet is a letter or an extra.
    fill(stream, [*map(first, range(1, 21)), second(21), {**second(22), "cents": 7}])
    assert run(spark, read_config(file), once=True) == {}
    assert json.loads(command("letters", "count", "--json"))["sources"][0]["letters"] == 1

    file = lake.has_schema(
        ["id", "customer_id"], id=WHOLE, customer_id=TEXT, cents=WHOLE, currency=TEXT
    )
    fill(stream, [*map(second, range(23, 31)), *map(first, range(31, 36))])
    failed = run(spark, read_config(file), once=True)
    assert "'cents' is int32 and becomes int64): run twinstream pipeline rewrite" in failed["sales"]
    assert "'cents' is int32 and becomes int64" in command("rewrite").replace("\n", " ")
    command("letters", "replay", "--yes")
    assert run(spark, read_config(file), once=True) == {}

    members = {"id": WHOLE, "customer": TEXT, "cents": WHOLE, "currency": TEXT}
    file = lake.has_schema(["id", "customer"], RENAME, **members)
    both = {**third(48), "customer_id": "o"}
    fill(stream, [*map(third, range(36, 46)), second(46), first(47), both])
    failed = run(spark, read_config(file), once=True)
    assert "column 'customer_id' becomes 'customer'" in failed["sales"]
    assert json.loads(command("rewrite", "--json")) == {
        "tables": [{"table": "sales", "changes": ["column 'customer_id' becomes 'customer'"]}]
    }
    assert run(spark, read_config(file), once=True) == {}
    assert stream.info().state.messages == 0, "the stream has nothing to read again"

    firsts = (*range(1, 21), *range(31, 36), 47)
    expected = {at: (f"c{at}", 5, None, None) for at in firsts}
    expected |= {at: (f"c{at}", BIG + at, "EUR", None) for at in (21, *range(23, 31), 46)}
    expected |= {at: (f"c{at}", BIG + at, "JPY", None) for at in range(36, 46)}
    expected[22] = ("c22", 7, None, '{"currency":"EUR"}')
    expected[48] = ("c48", BIG + 48, "JPY", '{"customer_id":"o"}')
    for words in (["compact"], ["vacuum", "--keep", "0s", "--yes"], ["verify"]):
        assert lake.rows() == expected
        command(*words)
    assert lake.rows() == expected


@pytest.mark.parametrize("engine", ["local"], indirect=True)
def test_a_rewrite_beside_a_run(lake: Lake, spark: SparkSession, fill: Fill) -> None:
    stream = lake.stream
    file = lake.has_schema(["id"], id=WHOLE, customer_id=TEXT, cents=INT32)
    narrow = read_config(file)
    fill(stream, [*map(first, range(1, 16))])
    happened: list[object] = []
    failed: dict[str, str] = {}
    stop = threading.Event()

    def go_on() -> None:
        failed.update(run(spark, narrow, tell=happened.append, asked=stop))

    running = threading.Thread(target=go_on)
    running.start()
    try:
        eventually(
            lambda: sum(isinstance(each, Landed) for each in happened) == 3, patience=LONGEST
        )
        file = lake.has_schema(["id"], RENAME, id=WHOLE, customer=TEXT, cents=WHOLE, currency=TEXT)
        assert len(list(rewrite(read_config(file)))) == 1
        fill(stream, [*map(third, range(16, 26)), *map(first, range(26, 31))])
        running.join(LONGEST)
        assert not running.is_alive(), "it has ended, because its schema is too narrow now"
    finally:
        stop.set()
        running.join(LONGEST)
    assert "was landed as int64 and is int32 now" in failed["sales"]
    config = read_config(file)
    assert run(spark, config, once=True) == {}
    # What the first run has landed with the narrow schema since.
    replay_letters(spark, config, config.sources[0])
    assert lake.rows() == {
        **{at: (f"c{at}", 5, None, None) for at in (*range(1, 16), *range(26, 31))},
        **{at: (f"c{at}", BIG + at, "JPY", None) for at in range(16, 26)},
    }
