"""The Spark jobs of the guide for data engineers: the code is that of the page.

Only the address of the server and the folder are those of the test. `make soak` also kills the job
of the windows with `kill -9`.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import js_sync
from js_sync import JetStream, PublishRequest, Stream
from tests.examples import ROOT, URL, blocks
from tests.postgres import folder_of_postgres, postgres
from tests.soak import LONGEST
from tests.spark.lives import Life
from tests.spark.patience import begun, patiently
from tests.spark.pipelines import SINKS, config_of
from twinstream.core.deadline import Deadline
from twinstream.models import KeyValueConfig, StreamConfig
from twinstream.spark.pipeline.runner import run
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PAGE = ROOT / "docs" / "data-jobs.md"
START = datetime(2026, 1, 1, tzinfo=UTC)
_LATER = "2026-01-02 12:00:00"


def block(page: Path, word: str) -> str:
    """Return the only console block of a page that has a word."""
    (found,) = [each for each in blocks(page, "console") if word in each]
    return found


class Session:
    """The session of all tests, which a job does not end."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def stop(self) -> None:
        pass


@pytest.fixture
def execute(
    spark: SparkSession,
    server: NatsServer,
    tmp_path: Path,
) -> Callable[..., dict[str, Any]]:
    """Executes a job in the session of all tests; returns its names."""

    def run_code(code: str, **names: Any) -> dict[str, Any]:
        scope = {"spark": spark, "session": Session(spark), **names}
        text = placed(code, server, tmp_path).replace("= local_session()", "= session")
        patiently(lambda: exec(text, scope))
        return scope

    return run_code


def placed(code: str, server: NatsServer, folder: Path) -> str:
    """Return the code of a page, with the server and the folder of a test."""
    return code.replace(URL, server.url).replace("/srv/lake", str(folder))


def publish_clicks(jet: JetStream, name: str, times: list[datetime]) -> Counter[tuple[Any, str]]:
    """Publish clicks of three pages; return how many there are of each page and minute."""
    expected: Counter[tuple[Any, str]] = Counter()
    requests: list[PublishRequest] = []
    for number, at in enumerate(times):
        page = "abc"[number % 3]
        expected[(at.replace(second=0, microsecond=0), page)] += 1
        data = json.dumps({"page": page, "at": at.isoformat()}).encode()
        requests.append(PublishRequest(subject=name, data=data))
    for outcome in jet.publish_many(requests):
        assert not isinstance(outcome, js_sync.PublishFailure), outcome
    return expected


def counted_clicks(spark: SparkSession, folder: Path) -> Counter[tuple[Any, str]]:
    """Return what the table has, without the minutes of the clicks that close the windows."""
    rows = spark.read.parquet(str(folder / "clicks")).where(f"minute < '{_LATER}'").collect()
    found = Counter({(row["minute"].astimezone(UTC), row["page"]): row["clicks"] for row in rows})
    assert len(found) == len(rows), "a minute of a page has two rows"
    return found


@pytest.fixture
def clicks(jet: JetStream) -> Any:
    """The stream that the page names, empty."""
    jet.create_stream(StreamConfig(name="CLICKS", subjects=["clicks"], allow_direct=True))
    yield jet
    jet.delete_stream("CLICKS")


def steady(messages: int, seconds: float) -> list[datetime]:
    return [START + timedelta(seconds=seconds * number) for number in range(messages)]


def close_windows(jet: JetStream, job: Callable[[], object]) -> None:
    """Let two later clicks close the windows; each is the last one of a run of the job."""
    for days in (2, 3):
        publish_clicks(jet, "clicks", [START + timedelta(days=days)])
        job()


def test_windows_over_two_interruptions(
    clicks: JetStream, execute: Callable[..., Any], spark: SparkSession, tmp_path: Path
) -> None:
    expected = publish_clicks(clicks, "clicks", steady(4000, 1.0))
    code = block(PAGE, "withWatermark")

    def interrupt(batches: int) -> None:
        deadline = Deadline.after(LONGEST)
        while not deadline.expired():
            for query in spark.streams.active:
                progress = query.lastProgress
                if progress is not None and progress["batchId"] >= batches:
                    query.stop()
                    return
            time.sleep(0.01)

    at_first = code.replace('maxMessagesPerTrigger="500"', 'maxMessagesPerTrigger="50"')
    assert at_first != code
    for batches in (1, 3):
        helper = threading.Thread(target=interrupt, args=[batches])
        helper.start()
        execute(at_first)
        helper.join()
    commits = len([*(tmp_path / "clicks-checkpoint" / "commits").glob("[0-9]*")])
    assert 4 <= commits < 80, "interrupted before the end of the stream"
    execute(code)
    close_windows(clicks, lambda: execute(code))
    assert counted_clicks(spark, tmp_path) == expected


@pytest.mark.skipif("not os.environ.get('TWINSTREAM_SOAK')", reason="three starts of Spark")
def test_soak_windows_over_two_kills(
    clicks: JetStream, spark: SparkSession, server: NatsServer, tmp_path: Path
) -> None:
    expected = publish_clicks(clicks, "clicks", steady(20_000, 1.0))
    program = tmp_path / "job.py"
    program.write_text(placed(block(PAGE, "withWatermark"), server, tmp_path))
    commits, dice = tmp_path / "clicks-checkpoint" / "commits", random.Random()
    for number in range(2):
        before = len([*commits.glob("[0-9]*")])
        life = Life(str(program), log=tmp_path / f"life-{number}.log")
        deadline = Deadline.after(LONGEST)
        while len([*commits.glob("[0-9]*")]) < before + 3:
            assert not life.is_over
            assert not deadline.expired()
            time.sleep(0.01)
        life.live_on(dice.uniform(0, 2))
        assert life.kill("all", dice)

    def job() -> None:
        subprocess.run([sys.executable, str(program)], check=True, timeout=LONGEST)

    job()
    close_windows(clicks, job)
    assert counted_clicks(spark, tmp_path) == expected


def test_backfill_by_time_then_follow(
    jet: JetStream,
    execute: Callable[..., Any],
    fill: Callable[..., None],
    make_stream: Callable[..., Stream],
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [{"old": at} for at in range(30)])
    time.sleep(0.01)
    since = datetime.now(UTC)
    fill(stream, [{"new": at} for at in range(250)])
    code = block(PAGE, "-7d").replace("ORDERS", stream.name).replace("-7d", since.isoformat())
    # The last line waits for ever; the test stops the query instead.
    body, _, last = code.rstrip().rpartition("\n")
    assert last == "query.awaitTermination()"
    body = body.replace('"100000"', '"100"').replace("10 seconds", "100 milliseconds")
    backfill, start, follow = body.rpartition("query = ")
    names = execute(backfill)
    assert spark.read.parquet(str(tmp_path / "orders")).count() == 250, "the backfill is done"
    given = {name: names[name] for name in ("writer", "lake")}
    query = begun(lambda _: execute(start + follow, **given)["query"], tmp_path)
    try:
        fill(stream, [{"later": at} for at in range(70)])
        query.processAllAvailable()
    finally:
        query.stop()
    rows = spark.read.parquet(str(tmp_path / "orders")).select("seq").collect()
    assert sorted(row["seq"] for row in rows) == [*range(31, 351)]


PROGRAMS = folder_of_postgres()


@pytest.mark.skipif(PROGRAMS is None, reason="PostgreSQL is not installed")
def test_rows_in_postgresql_once(
    execute: Callable[..., Any],
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
    spark: SparkSession,
    server: NatsServer,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} for at in range(100)])
    options = {"stream": stream.name, "startingOffsets": "earliest", "maxMessagesPerTrigger": "40"}
    orders = (
        spark.readStream.format("jetstream")
        .options(**{"nats.servers": server.url}, **options)
        .load()
        .select("subject", "data", "seq", "timestamp")
    )
    code = block(PAGE, "adbc_ingest")
    assert len([line for line in code.splitlines() if line.strip()]) <= 12
    assert PROGRAMS is not None
    with postgres(PROGRAMS) as database:
        database.query(block(PAGE, "CREATE TABLE landed"))

        def counts() -> str:
            return database.query("SELECT count(*), count(DISTINCT seq) FROM orders")

        names = {"checkpoint": str(tmp_path / "checkpoint"), "orders": orders}
        names["database"] = database.uri
        made: dict[str, Any] = {}

        def start(_: object) -> StreamingQuery:
            made.update(execute(code, **names))
            (query,) = spark.streams.active
            return query

        begun(start, tmp_path).stop()
        assert counts() == "100|100"
        # A batch is stored again if the driver ended before Spark recorded it.
        newest = max((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda f: f.name)
        newest.unlink()
        newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
        fill(stream, [{"id": at} for at in range(100, 130)])
        begun(start, tmp_path).stop()
        assert counts() == "130|130"
        made["store"](spark.range(3), 2)
        assert counts() == "130|130", "an earlier batch adds nothing"


@pytest.mark.parametrize("sink", SINKS)
def test_view_of_the_latest_values(
    sink: str,
    capsys: pytest.CaptureFixture[str],
    execute: Callable[..., Any],
    jet: JetStream,
    spark: SparkSession,
    server: NatsServer,
    tmp_path: Path,
) -> None:
    bucket = jet.create_key_value(KeyValueConfig(bucket=f"VIEW_{sink}"))
    for key, value in (("a", b"1"), ("b", b"2"), ("gone", b"3"), ("a", b"4")):
        bucket.put(key, value)
    bucket.delete("gone")
    source = f'bucket = "{bucket.bucket}"\ntable = "prices"'
    config = config_of(tmp_path, sink, server.url, source, engine="local")
    assert run(None, config, once=True) == {}
    table = tmp_path / "lake" / "prices"
    if sink == "parquet":
        code = block(ROOT / "docs" / "pipeline.md", "row_number().over")
        execute(code.replace("prices/prices", str(table)))
        rows = spark.sql("SELECT key, value FROM latest ORDER BY key").collect()
        assert [(row["key"], bytes(row["value"])) for row in rows] == [("a", b"4"), ("b", b"2")]
        return
    polars = next(each for each in blocks(ROOT / "docs" / "pipeline.md", "python") if "pl." in each)
    scan = re.search(r"pl\.scan_parquet\(.*\)", polars)
    assert scan is not None
    capsys.readouterr()
    execute(polars.replace(scan[0], f'pl.scan_delta("{table}")'))
    assert capsys.readouterr().out == "a b'4'\nb b'2'\n"


DUCKDB = os.environ.get("TWINSTREAM_DUCKDB")
"""A folder with a DuckDB that has the extension for Delta: `pip install --target FOLDER
duckdb==1.5.5 duckdb-extension-delta==1.5.5`."""

SCAN = """
import sys, duckdb, importlib.util
from pathlib import Path
(home,) = importlib.util.find_spec("duckdb_extension_delta").submodule_search_locations
(file,) = Path(home).rglob("delta.duckdb_extension")
duckdb.execute(f"LOAD '{file}'")
for query in sys.argv[1:]:
    print(duckdb.sql(query).fetchall())
"""


@pytest.mark.skipif(DUCKDB is None, reason="needs a DuckDB with its extension for Delta")
def test_delta_scan_of_duckdb(
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
    jet: JetStream,
    server: NatsServer,
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} for at in range(50)])
    bucket = jet.create_key_value(KeyValueConfig(bucket="SCANNED", history=5))
    for key, value in (("a", b"1"), ("b", b"2"), ("gone", b"3"), ("a", b"4")):
        bucket.put(key, value)
    bucket.delete("gone")
    config = config_of(
        tmp_path,
        "delta",
        server.url,
        f'stream = "{stream.name}"\ntable = "orders"\nmax_messages = 20',
        'bucket = "SCANNED"\ntable = "prices"',
        engine="local",
    )
    assert run(None, config, once=True) == {}
    lake = tmp_path / "lake"
    queries = re.findall(r"SELECT .*delta_scan.*", block(PAGE, "delta_scan"))
    (view,) = re.findall(
        r"CREATE VIEW latest AS (SELECT .*?)\n\"\"\"",
        (ROOT / "docs" / "pipeline.md").read_text(),
        re.DOTALL,
    )
    view = re.sub(r"read_parquet\(.*\)", f"delta_scan('{lake / 'prices'}')", view)
    given = [
        *(each.replace("s3://bucket/lake/orders", str(lake / "orders")) for each in queries),
        f"SELECT key, value FROM ({view}) ORDER BY key",
    ]
    done = subprocess.run(
        [sys.executable, "-c", SCAN, *given],
        capture_output=True,
        text=True,
        timeout=LONGEST,
        env={**os.environ, "PYTHONPATH": DUCKDB or ""},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[(50, 50)]", "[('a', b'4'), ('b', b'2')]"]
