"""Iceberg tables by a token of the subject: each is created when its first message is met."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from js_sync import Stream
from tests.hooked import hooked
from tests.mortal_store import Died
from tests.proxy_faults import NONE, Failure, failures_of, two_proxies
from tests.s3_proxy import Fault, S3Proxy, S3Request
from tests.s3_server import S3Server
from tests.soak import sampled, state
from tests.spark.drivers import (
    SOURCE,
    FakeEngine,
    FakeLeader,
    batches_of,
    bounds,
    changed,
    journal_in,
    land_all,
    relaxed,
)
from tests.spark.iceberg import iceberg_table, landed_in_catalog, on_iceberg, tables_in
from tests.spark.pipelines import config_of
from twinstream.lake.errors import StorageError
from twinstream.lake.land_batch import BatchLander
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.errors import OptionError
from twinstream.spark.landing.token_tables import named
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.letters.replay import replay_letters
from twinstream.spark.pipeline.maintenance.replay import replay
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.runner import run
from twinstream.testing import NatsServer

BY_TOKEN = SOURCE.replace('"orders"\nformat', '"orders_{subject[2]}"\nformat')

# Requests that a batch sends for a table that gets no rows.
PER_TABLE = 3


@pytest.fixture
def made(tmp_path: Path) -> PipelineConfig:
    return config_of(tmp_path, "delta", "nats://127.0.0.1:1", BY_TOKEN)


@pytest.fixture
def config(made: PipelineConfig, s3: S3Server, bucket: ObjectFolder) -> PipelineConfig:
    return on_iceberg(made, s3, bucket.prefix)


def of_subjects(*subjects: str, is_good: bool = False) -> FakeEngine:
    """Return an engine whose messages have the subjects in turn, from sequence 1 on."""
    payload = (lambda seq: b'{"id": %d}' % seq) if is_good else None
    subject = lambda seq: subjects[(seq - 1) % len(subjects)]  # noqa: E731
    return FakeEngine(subject=subject, payload=payload) if payload else FakeEngine(subject=subject)


def test_names_in_catalogs_are_different() -> None:
    tokens = ["new-york", "newYork", "new_york", "New-York", "x-", "x", None]
    names = [named("orders_", each, in_catalog=True) for each in tokens]
    assert names[:3] == ["orders_new_045york", "orders_new_york", "orders_new__york"]
    assert len(set(names)) == len(tokens)


def test_tables_appear_with_their_first_message(config: PipelineConfig, tmp_path: Path) -> None:
    jobs: list[object] = []
    engine = of_subjects("s.eu", "s.EU", "s.new-york", "s")
    land_all(config, FakeLeader(10), engine=engine)
    assert tables_in(config) == [
        *("dead_letters_orders", "orders__e_u", "orders_eu", "orders_new_045york", "orders_none_"),
    ]
    land_all(config, FakeLeader(20), engine=FakeEngine(jobs.append, subject=lambda _: "s.eu"))
    assert len(jobs) == 1, "the messages are read once if their tables exist"
    land_all(config, FakeLeader(30), engine=FakeEngine(jobs.append, subject=lambda _: "s.us"))
    assert len(jobs) == 3
    assert landed_in_catalog(config, tmp_path) == (30, 30)
    found = iceberg_table(config, "orders_eu").scan(selected_fields=("_subject",)).to_arrow()
    assert found.column("_subject").unique().to_pylist() == ["s.eu"]
    last = journal_in(config).last()
    assert last is not None
    assert set(last.tables) == {"orders_us", "dead_letters/source=orders"}


def test_more_tables_than_allowed(config: PipelineConfig, tmp_path: Path) -> None:
    """No table is created, and nothing of the batch is landed."""
    few = changed(config, max_tables=3)
    land_all(few, FakeLeader(10), engine=of_subjects("s.a", "s.b"))
    before = tables_in(config)
    engine = of_subjects("s.c", "s.d")
    with pytest.raises(OptionError, match=r"has more than 3 values, .* the last one orders_d"):
        land_all(few, FakeLeader(20), engine=engine)
    assert tables_in(config) == before
    assert landed_in_catalog(config, tmp_path) == (10, 10)
    land_all(changed(config, max_tables=4), FakeLeader(20), engine=engine)
    assert landed_in_catalog(config, tmp_path) == (20, 20)


def test_maintenance_of_all_tables(config: PipelineConfig, tmp_path: Path) -> None:
    """A letter may be the first message of its table."""
    land_all(config, FakeLeader(20), engine=of_subjects(*(f"s.x{at}" for at in range(10))))
    assert "orders_x9" not in tables_in(config), "all of its messages are dead letters"
    local = relaxed(config)
    report = replay_letters(None, local, local.sources[0])
    assert (report.letters, report.left) == (2, 0)
    assert iceberg_table(config, "orders_x9").scan().to_arrow().num_rows == 2
    vacuum(config, keep=0)
    assert landed_in_catalog(config, tmp_path) == (20, 20)


def test_a_stream_is_landed_and_replayed(
    tmp_path: Path,
    s3: S3Server,
    bucket: ObjectFolder,
    server: NatsServer,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} if at % 7 else {} for at in range(40)], subjects=("eu.1", "US"))
    source = (
        f'stream = "{stream.name}"\nname = "orders"\nformat = "json"\nschema = "order.json"\n'
        'table = "orders_{subject[2]}"\nmax_messages = 30\noptions = {minPartitions = 2}\n'
    )
    made = config_of(tmp_path, "delta", server.url, source, engine="local")
    config = on_iceberg(made, s3, bucket.prefix)
    assert run(None, config, once=True) == {}
    assert landed_in_catalog(config, tmp_path) == (40, 40)
    assert [each.messages for each in replay(None, config, config.sources[0], 1, None)] == [30, 10]
    (verdict,) = verify(config)
    assert (verdict.rows, verdict.problems) == (40, [])


def points_of(made: PipelineConfig, s3: S3Server, name: str, failure: Failure) -> list[S3Proxy]:
    """Land two batches with two tables each behind proxies, and return them."""
    with two_proxies(s3, failure.answer) as (store, catalog):
        own = on_iceberg(
            made, s3, name, url=store.url, catalog_url=catalog.url, fault=failure.fault
        )
        try:
            land_all(own, FakeLeader(12), engine=of_subjects("s.a", "s.b"))
        except StorageError:
            pass
        return [store, catalog]


@pytest.mark.parametrize("at", range(3))
def test_a_driver_that_dies_between_two_tables(
    made: PipelineConfig, s3: S3Server, bucket: ObjectFolder, tmp_path: Path, at: int
) -> None:
    """It has landed the rows of `at` tables of the first batch."""
    commits: list[str] = []

    def stop(request: S3Request) -> Fault:
        if request.method == "POST" and "/tables/" in request.key:
            commits.append(request.key)
        return "expired" if len(commits) > at else ""

    points_of(made, s3, bucket.prefix, Failure(stop, "expired"))
    own = on_iceberg(made, s3, bucket.prefix)
    rows, distinct = landed_in_catalog(own, tmp_path)
    assert rows == distinct < 10
    assert (rows > 0) == (at > 0)
    land_all(own, FakeLeader(12), engine=of_subjects("s.a", "s.b"))
    assert landed_in_catalog(own, tmp_path) == (12, 12)
    assert bounds(own) == [(1, 11), (11, 13)]


def test_soak_tables_and_a_request_that_fails(
    s3: S3Server, made: PipelineConfig, bucket: ObjectFolder, tmp_path: Path
) -> None:
    """The driver dies at any request, or gets a wrong answer to a write that was carried out."""
    store, catalog = points_of(made, s3, f"{bucket.prefix}_0", NONE)
    points = failures_of(["409", "500", "closed"], store, catalog)
    order = sampled(range(len(points)), 3, 80)
    for number, point in enumerate(order, start=1):
        name = f"{bucket.prefix}_{number}"
        points_of(made, s3, name, points[point])
        own = on_iceberg(made, s3, name)
        rows, distinct = landed_in_catalog(own, tmp_path)
        assert rows == distinct, point
        land_all(own, FakeLeader(12), engine=of_subjects("s.a", "s.b"))
        assert landed_in_catalog(own, tmp_path) == (12, 12), point
    state(f"{len(order)} of {len(points)} points, all exact")


def test_a_driver_that_dies_before_its_entry(config: PipelineConfig, tmp_path: Path) -> None:
    def die(_: object) -> None:
        raise Died

    engine = of_subjects("s.a", "s.b")
    with hooked("journal: before landed", die), pytest.raises(Died):
        land_all(config, FakeLeader(10), engine=engine)
    land_all(config, FakeLeader(15), engine=engine)
    assert landed_in_catalog(config, tmp_path) == (15, 15)


def test_requests_of_a_batch_for_each_table(
    s3: S3Server, made: PipelineConfig, bucket: ObjectFolder
) -> None:
    """Also of a table that gets no rows."""
    counts: list[int] = []
    for number, tokens in enumerate(("a", "abcd")):
        land_all(
            on_iceberg(made, s3, f"{bucket.prefix}_{number}"),
            FakeLeader(10),
            engine=of_subjects(*(f"s.{each}" for each in tokens)),
        )
        with S3Proxy(s3.catalog_url, lambda _: "") as catalog:
            own = on_iceberg(made, s3, f"{bucket.prefix}_{number}", catalog_url=catalog.url)
            journal = journal_in(own)
            engine = of_subjects("s.a")
            lander = BatchLander(journal, batches_of(own, journal, FakeLeader(30), engine))
            while (plan := lander.due()) is not None:
                catalog.clear()
                lander.land(plan)
            counts.append(catalog.counts()["GET"])
    assert counts[1] - counts[0] == 3 * PER_TABLE
