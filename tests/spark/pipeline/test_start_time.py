"""The first batch of a source begins at a time, which is looked up once."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from js_sync import Stream
from tests.spark.pipelines import config_of, counted
from twinstream.spark.pipeline.declarative_code import code_of
from twinstream.spark.pipeline.runner import run
from twinstream.testing import NatsServer


@pytest.mark.parametrize("quote", ['"', ""], ids=["text", "TOML"])
def test_a_source_begins_at_a_time(
    quote: str,
    server: NatsServer,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} for at in range(10)])
    time.sleep(0.01)
    since = datetime.now(UTC).isoformat()
    fill(stream, [{"id": at} for at in range(10, 30)])
    source = f'stream = "{stream.name}"\ntable = "orders"\nstart = {quote}{since}{quote}'
    config = config_of(tmp_path, "parquet", server.url, source, engine="local")
    assert run(None, config, once=True) == {}
    table = tmp_path / "lake" / "orders"
    assert counted(table, "parquet", "seq") == (20, 20)
    fill(stream, [{"id": 30}])
    assert run(None, config, once=True) == {}
    assert counted(table, "parquet", "seq") == (21, 21)
    assert f"'startingTimestamp': '{since}'" in code_of(config)


@pytest.mark.parametrize(("start", "rows"), [("-1h", 10), ("-1ms", 0)])
def test_a_time_before_now_is_that_of_the_first_run(
    start: str,
    rows: int,
    server: NatsServer,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} for at in range(10)])
    time.sleep(0.01)
    source = f'stream = "{stream.name}"\ntable = "orders"\nstart = "{start}"'
    config = config_of(tmp_path, "parquet", server.url, source, engine="local")
    assert run(None, config, once=True) == {}
    table = tmp_path / "lake" / "orders"
    assert counted(table, "parquet", "seq") == (rows, rows)
    fill(stream, [{"id": 10}])
    time.sleep(0.01)
    assert run(None, config, once=True) == {}
    # A start that was looked up again would leave the last message out.
    assert counted(table, "parquet", "seq") == (rows + 1, rows + 1)
