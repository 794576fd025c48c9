"""Batches and dead letters in Iceberg tables are landed again, with each message once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from js_sync import Stream
from tests.hooked import hooked
from tests.proxy_faults import cut_off, two_proxies
from tests.s3_proxy import Fault, S3Request
from tests.s3_server import S3Server
from tests.soak import sampled, state
from tests.spark.drivers import (
    SOURCE,
    FakeLeader,
    changed,
    journal_in,
    land_all,
    until_done,
    with_lease,
)
from tests.spark.iceberg import iceberg_table, landed_in_catalog, misled_on_iceberg, on_iceberg
from tests.spark.pipelines import SCHEMA, config_of
from twinstream.lake.entry import BatchEntry
from twinstream.lake.errors import StorageError
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.letters.letters_report import LettersReport
from twinstream.spark.pipeline.letters.replay import replay_letters
from twinstream.spark.pipeline.maintenance.replay import replay
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.runner import run
from twinstream.testing import NatsServer

LAST = 12
ENDS: list[Fault] = ["closed", "expired"]


class Killed(BaseException):
    """Ends a command at once."""


@pytest.fixture
def config(tmp_path: Path, s3: S3Server, bucket: ObjectFolder) -> PipelineConfig:
    made = config_of(tmp_path, "delta", "nats://127.0.0.1:1", SOURCE)
    return on_iceberg(made, s3, bucket.prefix)


def requiring(config: PipelineConfig, *required: str) -> PipelineConfig:
    """Return the pipeline with a schema that requires these members."""
    (source,) = config.sources
    schema = {"type": "object", "required": required, "properties": SCHEMA["properties"]}
    options = {**source.options, "jsonSchema": json.dumps(schema)}
    return evolve(changed(config, options=options), engine="local")


def letters_replayed(config: PipelineConfig, *required: str) -> LettersReport:
    own = requiring(config, *required)
    return replay_letters(None, own, own.sources[0])


def letters_in(config: PipelineConfig) -> int:
    return sum(each.dead_letters for each in journal_in(config).entries().values())


def test_letters_are_landed_again(config: PipelineConfig, tmp_path: Path) -> None:
    land_all(config, FakeLeader(25))
    for _ in range(2):
        done = letters_replayed(config, "item")
        assert (done.letters, done.landed, done.left) == (2, 0, 2)
    done = letters_replayed(config)
    assert (done.letters, done.landed, done.left) == (2, 2, 0)
    assert landed_in_catalog(config, tmp_path) == (25, 25)
    assert iceberg_table(config, "dead_letters_orders").scan().to_arrow().num_rows == 0
    assert letters_in(config) == 0
    assert letters_replayed(config).letters == 0
    vacuum(config, keep=0)
    assert landed_in_catalog(config, tmp_path) == (25, 25)
    land_all(config, FakeLeader(45))
    assert letters_replayed(config).landed == 2
    assert landed_in_catalog(config, tmp_path) == (45, 45)


@pytest.mark.parametrize("point", ["letters: before tables", "letters: before removal"])
def test_a_replay_of_letters_that_is_interrupted_is_finished(
    config: PipelineConfig, tmp_path: Path, point: str
) -> None:
    """By the next command. Until then, a letter may be in both tables, and is in none twice."""
    land_all(config, FakeLeader(25))

    def stop(_: object) -> None:
        raise Killed

    with hooked(point, stop), pytest.raises(Killed):
        letters_replayed(config)
    assert journal_in(config).letters.unfinished() is not None
    done = letters_replayed(config)
    assert (done.letters, done.landed, done.left) == (2, 2, 0)
    assert landed_in_catalog(config, tmp_path) == (25, 25)
    assert letters_in(config) == 0


def test_soak_a_replay_of_letters_that_dies_at_any_request(
    s3: S3Server, config: PipelineConfig, misled: list[str], bucket: ObjectFolder, tmp_path: Path
) -> None:
    """The store or the catalog has carried out its last request, or has not.

    The next command takes the lock over, and gets wrong answers each second time.
    """

    def replayed_behind(name: str, fault: Callable[[S3Request], Fault]) -> int:
        land_all(on_iceberg(config, s3, name), FakeLeader(LAST))
        with two_proxies(s3, fault) as (store, catalog):
            own = on_iceberg(config, s3, name, url=store.url, catalog_url=catalog.url)
            try:
                letters_replayed(with_lease(own))
            except StorageError:
                pass
            return len(store.requests) + len(catalog.requests)

    count = replayed_behind(f"{bucket.prefix}_0", lambda _: "")
    points = [(at, fault) for fault in ENDS for at in range(count)]
    assert len(points) > 100
    tried = sampled(points, 4, 60)
    for number, (at, fault) in enumerate(tried, start=1):
        name, case = f"{bucket.prefix}_{number}", (at, fault)
        replayed_behind(name, cut_off(at, fault))
        own = with_lease(on_iceberg(config, s3, name))
        rows, distinct = landed_in_catalog(own, tmp_path)
        # A letter may be in both tables until the replay is finished.
        assert rows == distinct in (LAST, LAST + 1), case
        next_one = with_lease(misled_on_iceberg(config, s3, name, misled)) if number % 2 else own
        until_done(lambda other=next_one: letters_replayed(other))
        assert landed_in_catalog(own, tmp_path) == (LAST, LAST), case
        assert letters_in(own) == 0, case
        assert journal_in(own).letters.unfinished() is None, case
    state(f"{len(tried)} of {len(points)} points, all exact")


@pytest.fixture
def lake(
    tmp_path: Path,
    server: NatsServer,
    s3: S3Server,
    bucket: ObjectFolder,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
) -> PipelineConfig:
    """A pipeline that has landed a stream, of which each tenth message has no ID."""
    stream = make_stream()
    fill(stream, [{"item": "i"} if at % 10 == 0 else {"id": at} for at in range(1, 31)])
    source = (
        f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\nformat = "json"\n'
        'schema = "order.json"\nmax_messages = 15\n'
    )
    made = config_of(tmp_path, "delta", server.url, source, engine="local")
    config = on_iceberg(made, s3, bucket.prefix)
    assert run(None, config, once=True) == {}
    return config


def replayed(config: PipelineConfig, *required: str) -> list[BatchEntry]:
    own = requiring(config, *required)
    return replay(None, own, own.sources[0], 1, None)


def dead_letters(config: PipelineConfig, folder: Path) -> int:
    """Check all rows, and return the number of dead letters."""
    assert landed_in_catalog(config, folder) == (30, 30)
    (verdict,) = verify(config)
    assert verdict.problems == []
    return verdict.dead_letters


def test_batches_are_landed_again(lake: PipelineConfig, tmp_path: Path) -> None:
    assert dead_letters(lake, tmp_path) == 3
    done = replayed(lake)
    assert [(each.batch, each.dead_letters, each.replays) for each in done] == [
        (0, 0, 1),
        (1, 0, 1),
    ]
    assert dead_letters(lake, tmp_path) == 0
    assert [each.dead_letters for each in replayed(lake, "id")] == [1, 2]
    assert dead_letters(lake, tmp_path) == 3
    vacuum(lake, keep=0)
    assert dead_letters(lake, tmp_path) == 3
    assert run(None, lake, once=True) == {}


@pytest.mark.parametrize("point", ["replay: before table", "replay: before journal"])
def test_a_replay_that_is_interrupted_is_repeated(
    lake: PipelineConfig, tmp_path: Path, point: str
) -> None:
    def stop(_: object) -> None:
        raise Killed

    with hooked(point, stop), pytest.raises(Killed):
        replayed(lake)
    assert len(replayed(lake)) == 2
    assert dead_letters(lake, tmp_path) == 0
