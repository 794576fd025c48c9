"""Commands that change the tables of a lake on S3, from several machines and after crashes.

A lake behind another address has other locks on this machine, as on a machine of its own.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import js_sync
from js_sync import Stream
from tests.hooked import hooked
from tests.s3_proxy import Fault, S3Proxy, S3Request, cut_off
from tests.s3_server import S3Server
from tests.soak import rounds, state
from tests.spark.drivers import (
    SOURCE,
    FakeLeader,
    beside,
    changed,
    journal_in,
    land_all,
    landed_on_s3,
    relaxed,
)
from tests.spark.pipelines import SCHEMA, config_of
from twinstream.lake.entry import BatchEntry
from twinstream.lake.errors import StorageError
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.letters.letters_report import LettersReport
from twinstream.spark.pipeline.letters.replay import replay_letters
from twinstream.spark.pipeline.maintenance.compact import compact
from twinstream.spark.pipeline.maintenance.replay import replay
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.pipeline_events import Happening, Landed
from twinstream.spark.pipeline.runner import run
from twinstream.testing import NatsServer

FAULTS: list[Fault] = ["closed", "expired"]
LOCK = "maintenance.json"


@pytest.fixture
def bucket(bucket: ObjectFolder) -> ObjectFolder:
    """The lock of a command that has died is taken over soon."""
    return evolve(bucket, storage=evolve(bucket.storage, lease=3.0))


@pytest.fixture
def config(tmp_path: Path, bucket: ObjectFolder) -> PipelineConfig:
    return evolve(config_of(tmp_path, "delta", "nats://127.0.0.1:1", SOURCE), path=bucket)


def letters_replayed(config: PipelineConfig) -> LettersReport:
    own = relaxed(config)
    return replay_letters(None, own, own.sources[0])


def letters_in(config: PipelineConfig) -> int:
    return sum(each.dead_letters for each in journal_in(config).entries().values())


def test_letters_are_landed_again(config: PipelineConfig, tmp_path: Path) -> None:
    land_all(config, FakeLeader(25))
    before = journal_in(config).entries()
    done = letters_replayed(config)
    assert (done.letters, done.landed, done.left) == (2, 2, 0)
    assert landed_on_s3(config, tmp_path) == (25, 25)
    found = journal_in(config).entries()
    assert [each.dead_letters for each in found.values()] == [0, 0, 0]
    assert [each.messages for each in found.values()] == [e.messages for e in before.values()]
    assert letters_replayed(config).letters == 0
    assert vacuum(config, keep=0), "files of letters that were replaced"
    assert landed_on_s3(config, tmp_path) == (25, 25)
    land_all(config, FakeLeader(45))
    assert landed_on_s3(config, tmp_path) == (45, 45)
    list(compact(config))
    assert letters_replayed(config).landed == 2
    assert landed_on_s3(config, tmp_path) == (45, 45)


def test_letters_that_do_not_fit_stay(config: PipelineConfig, tmp_path: Path) -> None:
    land_all(config, FakeLeader(25))
    (source,) = config.sources
    schema = {"type": "object", "required": ["item"], "properties": SCHEMA["properties"]}
    options = {**source.options, "jsonSchema": json.dumps(schema)}
    own = evolve(changed(config, options=options), engine="local")
    for _ in range(2):
        done = replay_letters(None, own, own.sources[0])
        assert (done.letters, done.landed, done.left) == (2, 0, 2)
    assert landed_on_s3(config, tmp_path) == (25, 25)
    assert letters_replayed(config).landed == 2
    assert landed_on_s3(config, tmp_path) == (25, 25)


def test_soak_a_replay_of_letters_that_dies_at_any_request(
    s3: S3Server, config: PipelineConfig, tmp_path: Path
) -> None:
    last = 12

    def landed(number: int) -> PipelineConfig:
        own = beside(config, number)
        land_all(own, FakeLeader(last))
        return own

    landed(0)
    with S3Proxy(s3.url) as proxy:
        letters_replayed(beside(config, 0, proxy.url))
        points = [(at, fault) for at in range(len(proxy.requests)) for fault in FAULTS]
    assert len(points) > 60
    seed = random.randrange(2**32)
    tried = random.Random(seed).sample(points, min(rounds(6, len(points)), len(points)))
    for number, (at, fault) in enumerate(tried, start=1):
        own, case = landed(number), (seed, at, fault)
        with S3Proxy(s3.url, cut_off(at, fault)) as proxy:
            try:
                letters_replayed(beside(config, number, proxy.url))
            except StorageError:
                pass
        rows, distinct = landed_on_s3(own, tmp_path)
        # A letter may be in both tables until the replay is finished.
        assert rows == distinct in (last, last + 1), case
        if journal_in(own).letters.unfinished() is None:
            assert rows == last, case
        letters_replayed(own)
        assert landed_on_s3(own, tmp_path) == (last, last), case
        assert letters_in(own) == 0, case
        assert journal_in(own).letters.unfinished() is None, case
    state(f"{len(tried)} of {len(points)} points, all exact")


def test_soak_letters_replayed_on_two_machines_at_once(
    s3: S3Server, config: PipelineConfig, tmp_path: Path
) -> None:
    for number in range(rounds(1, 20)):
        own, done = beside(config, number), list[int]()
        land_all(own, FakeLeader(35))

        def work(machine: PipelineConfig, done: list[int] = done) -> None:
            done.append(letters_replayed(machine).landed)

        with S3Proxy(s3.url) as one, S3Proxy(s3.url) as two:
            in_threads(work, [beside(config, number, proxy.url) for proxy in (one, two)])
        assert sorted(done) == [0, 3]
        assert landed_on_s3(own, tmp_path) == (35, 35)
        assert letters_in(own) == 0


def in_threads(work: Callable[[Any], object], items: list[Any]) -> None:
    """Call a function with each item at once, and raise the first error."""
    errors: list[BaseException] = []

    def call(item: Any) -> None:
        try:
            work(item)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call, args=(each,)) for each in items]
    for each in threads:
        each.start()
    for each in threads:
        each.join(300)
    assert not any(each.is_alive() for each in threads)
    if errors:
        raise errors[0]


class Lake:
    """A pipeline that lands a stream, of which each tenth message has no id, and no replay yet."""

    def __init__(self, config: PipelineConfig) -> None:
        self.config = config
        (self.source,) = config.sources

    def at(self, url: str, timeout: float = 1.0) -> Lake:
        """Return the lake as another machine sees it."""
        assert isinstance(self.config.path, ObjectFolder)
        path = self.config.path
        storage = evolve(path.storage, endpoint=url, timeout=timeout)
        return Lake(evolve(self.config, path=evolve(path, storage=storage)))

    def copy(self, number: int) -> Lake:
        """Return another lake of the same stream."""
        assert isinstance(self.config.path, ObjectFolder)
        own = Lake(evolve(self.config, path=self.config.path / f"{number}"))
        assert run(None, own.config, once=True) == {}
        return own

    def replay(self, *required: str) -> list[BatchEntry]:
        """Land all batches again under a schema with these required members."""
        schema = {"type": "object", "required": required, "properties": SCHEMA["properties"]}
        options = {**self.source.options, "jsonSchema": json.dumps(schema)}
        own = changed(self.config, options=options)
        return replay(None, own, own.sources[0], 1, None)

    def check(self, folder: Path, count: int) -> int:
        """Check all rows, and return the number of dead letters."""
        assert landed_on_s3(self.config, folder) == (count, count)
        (verdict,) = verify(self.config)
        assert verdict.problems == []
        return verdict.dead_letters


@pytest.fixture
def lake(
    tmp_path: Path,
    server: NatsServer,
    bucket: ObjectFolder,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
) -> Lake:
    stream = make_stream()
    fill(stream, [{"item": "i"} if at % 10 == 0 else {"id": at} for at in range(1, 31)])
    source = (
        f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\nformat = "json"\n'
        'schema = "order.json"\nmax_messages = 15\n'
    )
    return Lake(
        evolve(config_of(tmp_path, "delta", server.url, source, engine="local"), path=bucket)
    )


def test_batches_are_landed_again(lake: Lake, tmp_path: Path) -> None:
    lake = lake.copy(0)
    assert lake.check(tmp_path, 30) == 3
    done = lake.replay()
    assert [(each.batch, each.dead_letters, each.replays) for each in done] == [
        (0, 0, 1),
        (1, 0, 1),
    ]
    assert lake.check(tmp_path, 30) == 0
    lake.replay("item")
    assert lake.check(tmp_path, 30) == 27
    list(compact(lake.config))
    lake.replay("id")
    assert lake.check(tmp_path, 30) == 3
    assert vacuum(lake.config, keep=0)
    assert lake.check(tmp_path, 30) == 3


def test_soak_a_replay_that_dies_at_any_request(s3: S3Server, lake: Lake, tmp_path: Path) -> None:
    with S3Proxy(s3.url) as proxy:
        lake.copy(0).at(proxy.url).replay()
        points = [(at, fault) for at in range(len(proxy.requests)) for fault in FAULTS]
    assert len(points) > 60
    seed = random.randrange(2**32)
    tried = random.Random(seed).sample(points, min(rounds(5, len(points)), len(points)))
    for number, (at, fault) in enumerate(tried, start=1):
        own, case = lake.copy(number), (seed, at, fault)
        with S3Proxy(s3.url, cut_off(at, fault)) as proxy:
            try:
                own.at(proxy.url).replay()
            except StorageError:
                pass
        own.replay()
        assert own.check(tmp_path, 30) == 0, case
    state(f"{len(tried)} of {len(points)} points, all exact")


def test_soak_replays_on_two_machines_at_once(s3: S3Server, lake: Lake, tmp_path: Path) -> None:
    """They have different schemas. The tables are those of one of them."""
    for number in range(rounds(1, 20)):
        own = lake.copy(number)
        with S3Proxy(s3.url) as one, S3Proxy(s3.url) as two:
            machines = [(own.at(one.url), ()), (own.at(two.url), ("item",))]
            in_threads(lambda each: each[0].replay(*each[1]), machines)
        assert own.check(tmp_path, 30) in (0, 27)
        entries = journal_in(own.config).entries().values()
        assert [each.replays for each in entries] == [2, 2]


def test_a_replay_beside_a_run_of_another_machine(
    s3: S3Server,
    lake: Lake,
    fill: Callable[..., None],
    tmp_path: Path,
    server: NatsServer,
) -> None:
    lake = lake.copy(0)
    with js_sync.connect(server.url) as connection:
        stream = connection.jetstream().get_stream(lake.source.stream)
        fill(stream, [{"id": at} for at in range(300)])
    with S3Proxy(s3.url) as proxy:
        other = lake.at(proxy.url)
        done: list[BatchEntry] = []
        command = threading.Thread(target=lambda: done.extend(other.replay()))

        def follow(happening: Happening) -> None:
            if isinstance(happening, Landed) and happening.entry.batch == 3:
                command.start()

        assert run(None, lake.config, once=True, tell=follow) == {}
        command.join(120)
        assert not command.is_alive()
    assert len(done) >= 4
    assert lake.check(tmp_path, 330) == 0


def test_a_command_that_sleeps_before_its_check_changes_nothing(
    s3: S3Server, lake: Lake, tmp_path: Path
) -> None:
    lake, asleep = lake.copy(0), threading.Event()

    def sleep(_: object) -> None:
        """Let another machine take the lock over, and land all batches again."""
        if not asleep.is_set():
            asleep.set()
            lake.replay("item")

    with (
        S3Proxy(s3.url, unable_to_renew(asleep)) as proxy,
        hooked("replay: before table", sleep),
        pytest.raises(StorageError, match="the lock of the tables was lost"),
    ):
        lake.at(proxy.url).replay()
    check_item(lake, tmp_path)


@pytest.mark.parametrize("other", ["replay", "vacuum"])
def test_a_command_that_sleeps_between_its_check_and_its_commit_changes_nothing(
    s3: S3Server, lake: Lake, tmp_path: Path, other: str
) -> None:
    """Even if the command that takes the lock over does not change the table."""
    lake, asleep = lake.copy(0), threading.Event()
    refuses = unable_to_renew(asleep)

    def fault(request: S3Request) -> Fault:
        is_commit = request.method == "PUT" and "_delta_log/" in request.key
        if is_commit and not asleep.is_set():
            asleep.set()
            if other == "replay":
                lake.replay("item")
            else:
                vacuum(lake.config)
        return refuses(request)

    with (
        S3Proxy(s3.url, fault) as proxy,
        pytest.raises(StorageError, match="the lock of the tables was lost"),
    ):
        lake.at(proxy.url, timeout=120.0).replay()
    if other == "replay":
        check_item(lake, tmp_path)
    else:
        assert lake.check(tmp_path, 30) == 3


def unable_to_renew(asleep: threading.Event) -> Callable[[S3Request], Fault]:
    """Return what happens to requests: those that renew the lock fail while its owner sleeps."""
    return lambda request: (
        "expired" if asleep.is_set() and request.method == "PUT" and LOCK in request.key else ""
    )


def check_item(lake: Lake, folder: Path) -> None:
    """Check that one replay has changed the lake, under a schema that requires an item."""
    assert lake.check(folder, 30) == 27
    entries = journal_in(lake.config).entries().values()
    assert [each.replays for each in entries] == [1, 1]
