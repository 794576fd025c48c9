"""Iceberg tables while drivers, the catalog and the object store fail: the rows stay exact."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from js_sync import Stream
from tests.proxy_faults import cut_off, two_proxies, wrong_answer
from tests.s3_proxy import Fault, S3Proxy, S3Request
from tests.s3_server import S3Server
from tests.soak import LONG, LONGEST, rounds, sampled, state
from tests.spark.drivers import (
    SOURCE,
    FakeEngine,
    FakeLeader,
    batches_of,
    bounds,
    journal_in,
    land_all,
    land_through_a_kill,
    until_done,
)
from tests.spark.iceberg import iceberg_table, landed_in_catalog, misled_on_iceberg, on_iceberg
from tests.spark.pipelines import config_of, write_config
from tests.tuned import Tuned
from twinstream.lake.errors import StorageError
from twinstream.lake.land_batch import BatchLander
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.pipeline import PipelineConfig, read_config
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.testing import NatsServer

ROOT = Path(__file__).parents[3]
LAST = 12
BATCHES = [(1, 11), (11, 13)]
ENDS: list[Fault] = ["closed", "expired"]
WRONG: list[Fault] = ["409", "412", "500", "503", "time-out", "closed"]


@pytest.fixture
def made(tmp_path: Path) -> PipelineConfig:
    return config_of(tmp_path, "delta", "nats://127.0.0.1:1", SOURCE)


@contextmanager
def behind_proxies(
    made: PipelineConfig,
    s3: S3Server,
    name: str,
    answer: Callable[[S3Request], Fault] = lambda _: "",
    fault: Fault = "",
) -> Generator[tuple[PipelineConfig, list[S3Proxy]]]:
    """Yield a pipeline with a proxy before the store and one before the catalog."""
    with two_proxies(s3, answer) as (store, catalog):
        yield (
            on_iceberg(made, s3, name, url=store.url, catalog_url=catalog.url, fault=fault),
            [store, catalog],
        )


def test_soak_a_driver_that_dies_at_any_request(
    s3: S3Server, made: PipelineConfig, misled: list[str], bucket: ObjectFolder, tmp_path: Path
) -> None:
    """It dies before or after the store or the catalog has carried out its last request.

    Of each second one, the next driver gets wrong answers.
    """
    with behind_proxies(made, s3, f"{bucket.prefix}_0") as (driven, proxies):
        land_all(driven, FakeLeader(LAST))
        count = sum(len(each.requests) for each in proxies)
        assert len(proxies[1].requests) > 15
    points = [(at, fault) for fault in ENDS for at in range(count)]
    assert len(points) > 100
    tried = sampled(points, 6)
    for number, (at, fault) in enumerate(tried, start=1):
        name = f"{bucket.prefix}_{number}"
        with behind_proxies(made, s3, name, cut_off(at, fault)) as (driven, _):
            try:
                land_all(driven, FakeLeader(LAST))
            except StorageError:
                pass
        own = on_iceberg(made, s3, name)
        rows, distinct = landed_in_catalog(own, tmp_path)
        assert rows == distinct, (at, fault)
        next_one = misled_on_iceberg(made, s3, name, misled) if number % 2 else own
        until_done(lambda driven=next_one: land_all(driven, FakeLeader(LAST)))
        assert (landed_in_catalog(own, tmp_path), bounds(own)[-1][1]) == (
            (LAST, LAST), LAST + 1,
        ), (at, fault)  # fmt: skip
    state(f"{len(tried)} of {len(points)} points, all exact")


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_soak_an_engine_that_is_cut_off_at_any_request(
    request: pytest.FixtureRequest,
    engine: str,
    server: NatsServer,
    s3: S3Server,
    bucket: ObjectFolder,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
    tmp_path: Path,
) -> None:
    """The whole command, with tasks in other processes. Spark takes part in the soak only."""
    if engine == "spark" and not LONG:
        pytest.skip("a part of make soak")
    spark = request.getfixturevalue("spark") if engine == "spark" else None
    stream, last = make_stream(), 60
    fill(stream, [{"id": at} if at % 10 else b"broken" for at in range(last)])
    source = (
        f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\nformat = "json"\n'
        'schema = "order.json"\nmax_messages = 40\noptions = {minPartitions = 2}\n'
    )
    made = config_of(tmp_path, "delta", server.url, source, engine=engine)
    with behind_proxies(made, s3, f"{bucket.prefix}_0") as (driven, proxies):
        assert run(spark, driven, once=True) == {}
        count = sum(len(each.requests) for each in proxies)
    points = [(at, fault) for fault in ENDS for at in range(count)]
    assert len(points) > 100
    tried = sampled(points, 2)
    for number, (at, fault) in enumerate(tried, start=1):
        name = f"{bucket.prefix}_{number}"
        with behind_proxies(made, s3, name, cut_off(at, fault)) as (driven, _):
            run(spark, driven, once=True)
        own = on_iceberg(made, s3, name)
        rows, distinct = landed_in_catalog(own, tmp_path)
        assert rows == distinct, (at, fault)
        assert run(spark, own, once=True) == {}, (at, fault)
        assert landed_in_catalog(own, tmp_path) == (last, last), (at, fault)
        (verdict,) = verify(own)
        assert verdict.problems == [], (at, fault)
    state(f"{engine}: {len(tried)} of {len(points)} points, all exact")


def test_soak_a_write_whose_answer_is_wrong(
    s3: S3Server, made: PipelineConfig, bucket: ObjectFolder, tmp_path: Path
) -> None:
    """The server has carried out the write. The driver settles each, and goes on."""
    with behind_proxies(made, s3, f"{bucket.prefix}_0") as (driven, (store, catalog)):
        land_all(driven, FakeLeader(LAST))
        writes = store.counts()["PUT"] + catalog.counts()["POST"]
    points = [(at, fault) for fault in WRONG for at in range(writes)]
    assert len(points) > 100
    tried = sampled(points, 6)
    for number, (at, fault) in enumerate(tried, start=1):
        name = f"{bucket.prefix}_{number}"
        with behind_proxies(made, s3, name, wrong_answer(at, fault), fault) as (driven, _):
            land_all(driven, FakeLeader(LAST))
        own = on_iceberg(made, s3, name)
        assert (landed_in_catalog(own, tmp_path), bounds(own)) == ((LAST, LAST), BATCHES), (
            at, fault,
        )  # fmt: skip
    state(f"{len(tried)} of {len(points)} writes, all exact")


@pytest.mark.parametrize("fault", WRONG)
def test_a_commit_whose_answer_is_wrong(
    s3: S3Server, made: PipelineConfig, bucket: ObjectFolder, tmp_path: Path, fault: Fault
) -> None:
    """The catalog has carried it out, and another driver may read its manifests."""
    hits: list[S3Request] = []

    def answer(request: S3Request) -> Fault:
        is_commit = request.method == "POST" and request.key.endswith("/tables/orders")
        if not is_commit or len(hits) > 1:
            return ""
        hits.append(request)
        return fault

    with behind_proxies(made, s3, bucket.prefix, answer, fault) as (driven, _):
        land_all(driven, FakeLeader(LAST))
    assert len(hits) == 2
    own = on_iceberg(made, s3, bucket.prefix)
    assert (landed_in_catalog(own, tmp_path), bounds(own)) == ((LAST, LAST), BATCHES)
    assert len(iceberg_table(own).snapshots()) == 2


def test_a_table_of_which_the_catalog_says_wrongly_that_it_exists(
    s3: S3Server, made: PipelineConfig, bucket: ObjectFolder, tmp_path: Path
) -> None:
    """The namespace does not exist yet, so the catalog has not created the table."""
    hits: list[S3Request] = []

    def answer(request: S3Request) -> Fault:
        if request.method != "POST" or not request.key.endswith("/tables") or hits:
            return ""
        hits.append(request)
        return "409"

    with behind_proxies(made, s3, bucket.prefix, answer) as (driven, _):
        land_all(driven, FakeLeader(LAST))
    assert len(hits) == 1
    assert landed_in_catalog(on_iceberg(made, s3, bucket.prefix), tmp_path) == (LAST, LAST)


def test_requests_of_a_batch_are_few_and_do_not_grow(
    s3: S3Server, made: PipelineConfig, bucket: ObjectFolder
) -> None:
    """The table and the dead letters get files in each batch, three in all."""
    with behind_proxies(made, s3, bucket.prefix) as (driven, (store, catalog)):
        journal = journal_in(driven)
        lander = BatchLander(journal, batches_of(driven, journal, FakeLeader(140)))
        counts: list[tuple[Counter[str], Counter[str]]] = []
        while (plan := lander.due()) is not None:
            store.clear()
            catalog.clear()
            lander.land(plan)
            counts.append((store.counts(), catalog.counts()))
    assert len(counts) == 14
    for stored, asked in counts[2:]:
        assert (stored, asked) == ({"PUT": 9, "GET": 5}, {"GET": 4, "POST": 2})


def test_snapshots_of_old_batches_expire(
    s3: S3Server, made: PipelineConfig, bucket: ObjectFolder, tuned: Tuned, tmp_path: Path
) -> None:
    """Those behind another change of the table stay, because it may have replaced files."""
    tuned("kept snapshots", 4)
    tuned("most snapshots", 8)
    config = on_iceberg(made, s3, bucket.prefix)
    land_all(config, FakeLeader(90))
    assert len(iceberg_table(config).snapshots()) == 4
    open_sink(config).replace("orders", {0: ()})
    land_all(config, FakeLeader(150))
    found = iceberg_table(config).snapshots()
    assert len(found) == 5 + 4, "the change of the batch, all before it, and four after it"
    assert landed_in_catalog(config, tmp_path) == (141, 141)


def test_soak_two_drivers_at_once(
    s3: S3Server, made: PipelineConfig, bucket: ObjectFolder, tmp_path: Path
) -> None:
    """Both have the plan of a batch before one of them commits it."""
    for number in range(rounds(1, 20)):
        config = on_iceberg(made, s3, f"{bucket.prefix}_{number}")
        land_all(config, FakeLeader(1))
        meeting = threading.Barrier(2, timeout=LONGEST)

        def meet(_: object, meeting: threading.Barrier = meeting) -> None:
            try:
                meeting.wait()
            except threading.BrokenBarrierError:
                pass

        errors: list[BaseException] = []

        def work(
            config: PipelineConfig = config,
            meeting: threading.Barrier = meeting,
            errors: list[BaseException] = errors,
        ) -> None:
            try:
                land_all(config, FakeLeader(45), engine=FakeEngine(meet))
            except BaseException as error:
                errors.append(error)
            finally:
                meeting.abort()

        drivers = [threading.Thread(target=work) for _ in range(2)]
        for each in drivers:
            each.start()
        for each in drivers:
            each.join(LONGEST)
        assert errors == []
        assert landed_in_catalog(config, tmp_path) == (45, 45)
        state(f"round {number}: exact")


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
        file = config_file(folder, s3, f"{bucket}_{number}", f"ns_{bucket.prefix}_{number}")
        if number % 2 == 0:
            url, catalog_url = misled
            text = file.read_text().replace(s3.url, url).replace(s3.catalog_url, catalog_url)
            file.write_text(text)
        drivers = [
            subprocess.Popen([*program, str(file), "45"], stdout=subprocess.PIPE, env=environment)
            for _ in range(3)
        ]
        for each in drivers:
            assert each.stdout is not None
            assert each.stdout.readline() == b"ready\n"
        (folder / "go").touch()
        time.sleep(random.uniform(0.0, 4.0))
        drivers[0].send_signal(signal.SIGKILL)
        for each in drivers:
            each.communicate(timeout=LONGEST)
        assert [each.returncode for each in drivers[1:]] == [0, 0]
        assert landed_in_catalog(read_config(file), folder) == (45, 45)
        state(f"round {number}: exact")


def config_file(folder: Path, s3: S3Server, path: str, namespace: str) -> Path:
    """Write the file of a pipeline, as its documentation describes it."""
    file = write_config(folder, "iceberg", "nats://127.0.0.1:1", SOURCE)
    text = file.read_text().replace('"lake"', f'"{path}"', 1)
    file.write_text(text + s3.toml(namespace, catalog=True))
    return file


def test_soak_the_server_is_killed(made: PipelineConfig, tmp_path: Path) -> None:
    """It is started again, and the driver goes on, as a source that is restarted does."""
    with S3Server() as server:
        for number in range(rounds(1, 20)):
            driven = on_iceberg(made, server, f"killed{number}")
            land_through_a_kill(driven, server, 65, within=1.5)
            assert landed_in_catalog(driven, tmp_path) == (65, 65)
            state(f"round {number}: exact")
