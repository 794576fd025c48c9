"""Lakes on S3: each message is landed exactly once, whatever the server or a driver does.

Neither Spark nor a NATS server has a part in most of them: see `tests.spark.drivers`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from js_sync import JetStream, Stream
from tests.proxy_faults import cut_off, request_limit, wrong_answer
from tests.s3_proxy import Fault, S3Proxy
from tests.s3_server import KEYS, S3Server
from tests.short_keys import ShortKeys
from tests.soak import LONGEST, rounds, sampled, state
from tests.spark.drivers import (
    SOURCE,
    FakeEngine,
    FakeLeader,
    batches_of,
    beside,
    bounds,
    changed,
    journal_in,
    land_all,
    land_through_a_kill,
    land_until_renewed,
    landed_on_s3,
    misled_beside,
    until_done,
    with_lease,
)
from tests.spark.pipelines import config_of, write_config
from twinstream.lake.errors import StorageError
from twinstream.lake.land_batch import BatchLander
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.models import StreamConfig
from twinstream.spark.errors import CheckpointError
from twinstream.spark.pipeline import PipelineConfig, read_config
from twinstream.spark.pipeline.letters.publish import publish_letters
from twinstream.spark.pipeline.letters.summary import letters_of
from twinstream.spark.pipeline.maintenance.compact import compact
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.tables.table_lock import TableLock
from twinstream.testing import NatsServer

ROOT = Path(__file__).parents[3]
LAST = 25
BATCHES = [(1, 11), (11, 21), (21, 26)]

# The most PUT, GET and LIST of a batch.
LIMITS = [7, 19, 12]


@pytest.fixture
def config(tmp_path: Path, bucket: ObjectFolder) -> PipelineConfig:
    return evolve(config_of(tmp_path, "delta", "nats://127.0.0.1:1", SOURCE), path=bucket)


@pytest.fixture
def leader() -> FakeLeader:
    return FakeLeader(LAST)


def check(config: PipelineConfig, folder: Path, last: int = LAST) -> None:
    assert landed_on_s3(config, folder) == (last, last)
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


@pytest.mark.parametrize("options", [{}, {"uint64": "decimal"}])
def test_tables_may_have_many_columns(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path, options: dict[str, str]
) -> None:
    """Readers of Delta's log ignore the bounds of columns behind the first 32, by default."""
    members = {"id": {"type": "integer"}} | {f"c{at}": {"type": "string"} for at in range(40)}
    (tmp_path / "order.json").write_text(json.dumps({"type": "object", "properties": members}))
    (source,) = read_config(tmp_path / "orders.toml").sources
    wide = evolve(config, sources=(evolve(source, options={**source.options, **options}),))
    land_all(wide, leader)
    check(wide, tmp_path)
    assert bounds(wide) == BATCHES
    entry = journal_in(wide).last()
    assert entry is not None
    assert (entry.first_seq, entry.last_seq) == (21, 25)


def requests_of(config: PipelineConfig, s3: S3Server, last: int) -> int:
    with S3Proxy(s3.url) as proxy:
        land_all(beside(config, 0, proxy.url), FakeLeader(last))
        return len(proxy.requests)


@pytest.mark.parametrize("layout", ["", 'partition_by = ["subject[2]"]', "tables"])
def test_soak_a_driver_that_dies_at_any_request(
    s3: S3Server, config: PipelineConfig, misled: list[str], tmp_path: Path, layout: str
) -> None:
    """It dies before or after the server has carried out its last request.

    Of each second one, the next driver gets wrong answers.
    """
    last = 12
    if layout == "tables":
        config = changed(config, table="orders_", token=2)
    elif layout:
        other = config_of(tmp_path, "delta", "nats://127.0.0.1:1", SOURCE + layout)
        config = evolve(config, sources=other.sources)
    points = [(at, fault) for fault in FAULTS for at in range(requests_of(config, s3, last))]
    assert len(points) > 100
    tried = sampled(points, 6)
    for number, (at, fault) in enumerate(tried, start=1):
        with S3Proxy(s3.url, cut_off(at, fault)) as proxy:
            try:
                land_all(beside(config, number, proxy.url), FakeLeader(last))
            except StorageError:
                pass
        own = beside(config, number)
        rows, distinct = landed_on_s3(own, tmp_path)
        assert rows == distinct, (at, fault)
        next_one = misled_beside(config, number, misled)
        until_done(lambda driven=next_one: land_all(driven, FakeLeader(last)))
        assert (landed_on_s3(own, tmp_path), bounds(own)[-1][1]) == ((last, last), last + 1), (
            at, fault,
        )  # fmt: skip
    state(f"{len(tried)} of {len(points)} points, all exact")


FAULTS: list[Fault] = ["closed", "expired"]
WRONG: list[Fault] = ["412", "503", "time-out", "closed"]


def test_soak_a_write_whose_answer_is_wrong(
    s3: S3Server, config: PipelineConfig, tmp_path: Path
) -> None:
    """The server has carried out the write. The driver settles each, and goes on."""
    last = 12

    with S3Proxy(s3.url) as proxy:
        land_all(beside(config, 0, proxy.url), FakeLeader(last))
        writes = proxy.counts()["PUT"]
    points = [(at, fault) for fault in WRONG for at in range(writes)]
    assert len(points) > 40
    tried = sampled(points, 8)
    for number, (at, fault) in enumerate(tried, start=1):
        with S3Proxy(s3.url, wrong_answer(at, fault), patience=1.5) as proxy:
            driven = beside(config, number, proxy.url, fault)
            land_all(driven, FakeLeader(last))
        own = beside(config, number)
        assert (landed_on_s3(own, tmp_path), bounds(own)) == ((last, last), [(1, 11), (11, 13)]), (
            at, fault,
        )  # fmt: skip
    state(f"{len(tried)} of {len(points)} writes, all exact")


def test_a_driver_that_is_overtaken_adds_nothing(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path
) -> None:
    """While its tasks run, another driver lands everything; then it goes on."""
    todo = [lambda: land_all(config, leader)]
    land_all(config, leader, engine=FakeEngine(lambda _: todo.pop()() if todo else None))
    check(config, tmp_path)
    assert bounds(config) == BATCHES


def test_soak_drivers_in_processes_at_once(
    s3: S3Server, bucket: ObjectFolder, misled: list[str], tmp_path: Path
) -> None:
    """One of three is killed in the middle. In each second round, all get wrong answers."""
    program = [sys.executable, str(ROOT / "tests" / "spark" / "land_alone.py")]
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    for number in range(rounds(1, 20)):
        folder = tmp_path / str(number)
        folder.mkdir()
        file = write_config(folder, "delta", "nats://127.0.0.1:1", SOURCE)
        text = file.read_text().replace('"lake"', f'"{bucket}/{number}"', 1)
        settings = s3.settings if number % 2 else s3.settings.replace(s3.url, misled[0])
        file.write_text(f"{text}\n[storage]\n{settings}")
        drivers = [
            subprocess.Popen([*program, str(file), "45"], stdout=subprocess.PIPE, env=environment)
            for _ in range(3)
        ]
        for each in drivers:
            assert each.stdout is not None
            assert each.stdout.readline() == b"ready\n"
        (folder / "go").touch()
        time.sleep(random.uniform(0.0, 3.0))
        drivers[0].send_signal(signal.SIGKILL)
        for each in drivers:
            each.communicate(timeout=LONGEST)
        config = read_config(file)
        assert [each.returncode for each in drivers[1:]] == [0, 0]
        check(config, folder, 45)
        state(f"round {number}: exact")


def test_soak_the_server_is_killed(config: PipelineConfig, tmp_path: Path) -> None:
    """It is started again, and the driver goes on, as a source that is restarted does."""
    with S3Server() as server:
        for number in range(rounds(1, 20)):
            driven = evolve(config, path=server.folder(f"killed{number}", timeout=request_limit()))
            land_through_a_kill(driven, server, 95, within=0.5)
            check(driven, tmp_path, 95)
            state(f"round {number}: exact")


def test_requests_of_a_batch_are_few_and_do_not_grow(s3: S3Server, config: PipelineConfig) -> None:
    """The table and the dead letters get three files in a batch, and the lock is looked at."""
    with S3Proxy(s3.url) as proxy:
        driven = beside(config, 0, proxy.url)
        journal = journal_in(driven)
        lock = TableLock(Folders.of(driven.path))
        batches = batches_of(driven, journal, FakeLeader(140))

        def before_tasks() -> None:
            assert lock.lets_land(lambda: False)

        lander = BatchLander(journal, batches, before_tasks)
        counts: list[tuple[int, int, int]] = []
        while True:
            proxy.clear()
            plan = lander.due()
            if plan is None:
                break
            with lock.shared(lambda: False):
                lander.land(plan)
            found = proxy.counts()
            assert found.keys() == {"PUT", "GET", "LIST"}
            counts.append((found["PUT"], found["GET"], found["LIST"]))
        assert proxy.counts() == {"GET": 2}, "without new messages"
    assert len(counts) == 14
    most = [max(each) for each in zip(*counts[1:], strict=True)]
    assert [max(each, limit) for each, limit in zip(most, LIMITS, strict=True)] == LIMITS
    assert counts[1] == counts[-1]


def test_credentials_that_expire_are_renewed(
    s3: S3Server, config: PipelineConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy refuses keys that are older than ten seconds; tables are used for longer."""
    keys = ShortKeys(tmp_path)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(keys.config))
    with S3Proxy(s3.url, keys.fault) as proxy:
        folder = s3.folder(
            tmp_path.name, proxy.url, access_key_env="", secret_key_env="", profile="short"
        )
        driven = evolve(config, path=folder)
        leader = FakeLeader(10)
        land_until_renewed(driven, leader, keys)
        check(driven, tmp_path, leader.last)
        assert len(keys.issued) <= keys.most


def test_a_table_that_cannot_be_reached_is_named(
    config: PipelineConfig, monkeypatch: pytest.MonkeyPatch, leader: FakeLeader
) -> None:
    land_all(config, leader)
    leader.last += 10
    sink = batches_of(config, journal_in(config), leader)
    monkeypatch.setenv("TEST_S3_KEY", "unknown")
    with pytest.raises(StorageError) as caught:
        sink.refuse_taken(3)
    text = str(caught.value)
    assert text.startswith(f"cannot read the table {config.path}/orders: the server refuses access")
    assert "check the credentials and the region of [storage]" in text
    assert "\n" not in text


def test_all_objects_are_encrypted(
    s3: S3Server, config: PipelineConfig, leader: FakeLeader, tmp_path: Path
) -> None:
    with S3Proxy(s3.url) as proxy:
        driven = evolve(config, path=s3.folder("encrypted", proxy.url, encryption="AES256"))
        land_all(driven, leader)
        writes = [each for each in proxy.requests if each.method == "PUT"]
        found = {each.headers.get("x-amz-server-side-encryption") for each in writes}
        assert found == {"AES256"}
        assert len(writes) > 15
        check(driven, tmp_path)


def test_other_keys_of_the_environment_are_not_used(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.setenv(name, "other")
    land_all(config, leader)
    check(config, tmp_path)


def test_keys_of_the_environment_are_found(
    s3: S3Server,
    config: PipelineConfig,
    leader: FakeLeader,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key, secret = KEYS[1]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    unnamed = dict.fromkeys(("access_key_env", "secret_key_env"), "")
    driven = evolve(config, path=s3.folder("found", **unnamed))
    land_all(driven, leader)
    check(driven, tmp_path)


def test_tables_are_compacted_and_vacuumed(
    config: PipelineConfig, leader: FakeLeader, tmp_path: Path
) -> None:
    land_all(config, leader)
    merged = {each.table: (each.before, each.after) for each in compact(config)}
    assert merged == {"orders": (6, 1), "dead_letters/source=orders": (2, 1)}
    check(config, tmp_path)
    assert vacuum(config) == [], "they are kept for a week"
    found = vacuum(config, keep=0, dry_run=True)
    assert len(found) == 8
    assert all(str(each.path).startswith(f"{config.path}/") for each in found)
    assert all(each.bytes > 1000 for each in found)
    assert vacuum(config, keep=0) == found
    assert vacuum(config, keep=0) == []
    leader.last = 38
    land_all(config, leader)
    check(config, tmp_path, 38)


def test_tables_with_an_unfinished_batch_are_not_changed(
    config: PipelineConfig, leader: FakeLeader
) -> None:
    """Another machine may land it, so the commands wait for a while."""
    config = with_lease(config)
    journal = journal_in(config)
    lander = BatchLander(journal, batches_of(config, journal, leader))
    plan = lander.due()
    assert plan is not None
    journal.planned(plan)
    for call in (lambda: list(compact(config)), lambda: vacuum(config)):
        with pytest.raises(CheckpointError, match="a batch of source orders was interrupted"):
            until_done(call)


def test_dead_letters_are_counted_and_published(
    server: NatsServer, bucket: ObjectFolder, jet: JetStream, leader: FakeLeader, tmp_path: Path
) -> None:
    """Those that tasks have written, and those that deltalake has written again."""
    config = evolve(config_of(tmp_path, "delta", server.url, SOURCE), path=bucket)
    (source,) = config.sources
    taker = jet.create_stream(StreamConfig(name="BAD-S3", subjects=["bad.s3"]))
    land_all(config, leader)
    (reason,) = letters_of(config, source).reasons
    assert (reason.count, reason.first_seq, reason.last_seq) == (2, 10, 20)
    done = publish_letters(config, source, "bad.s3")
    assert (done.stream, done.published, done.repeated) == (taker.name, 2, 0)
    list(compact(config))
    done = publish_letters(config, source, "bad.s3")
    assert (done.published, done.repeated) == (0, 2)
    found = [(each.data, each.headers["Dead-Sequence"]) for each in taker.read()]
    assert found == [(b"{}", "10"), (b"{}", "20")]


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_pipeline_of_a_real_stream(
    request: pytest.FixtureRequest,
    engine: str,
    server: NatsServer,
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
    config = evolve(config_of(tmp_path, "delta", server.url, source, engine=engine), path=bucket)
    spark = request.getfixturevalue("spark") if engine == "spark" else None
    assert run(spark, config, once=True) == {}
    fill(stream, [{"id": at} for at in range(100)])
    other = evolve(config, engine="local")
    assert run(None, other, once=True) == {}
    assert landed_on_s3(config, tmp_path) == (5100, 5100)
    (verdict,) = verify(config)
    assert (verdict.problems, verdict.rows, verdict.dead_letters) == ([], 5100, 500)
    assert stream.info().state.messages == 0
