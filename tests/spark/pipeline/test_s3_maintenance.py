"""Commands that change the tables of a lake on S3, from several machines and after crashes.

A lake behind another address has other locks on this machine, as on a machine of its own.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve
from deltalake import DeltaTable

from js_sync import Stream
from tests.hooked import hooked
from tests.proxy_faults import cut_off, request_limit
from tests.s3_proxy import Fault, S3Proxy, S3Request
from tests.s3_server import S3Server
from tests.soak import LONGEST, rounds, sampled, state
from tests.spark.drivers import (
    SOURCE,
    FakeEngine,
    FakeLeader,
    beside,
    changed,
    check_partitions,
    journal_in,
    land_all,
    landed_on_s3,
    misled_beside,
    relaxed,
    until_done,
    with_lease,
    with_schema,
)
from tests.spark.overtaken import overtaken_at, versions_of
from tests.spark.pipelines import SCHEMA, config_of
from tests.unhurried import connected
from twinstream.lake.entry import BatchEntry
from twinstream.lake.errors import StorageError
from twinstream.lake.objects.client import delta_options
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.letters.letters_report import LettersReport
from twinstream.spark.pipeline.letters.replay import replay_letters
from twinstream.spark.pipeline.maintenance.compact import compact
from twinstream.spark.pipeline.maintenance.replay import replay
from twinstream.spark.pipeline.maintenance.rewrite import Rewritten, rewrite
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.pipeline_events import Happening, Landed
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.testing import NatsServer

FAULTS: list[Fault] = ["closed", "expired"]
LOCK = "maintenance.json"

# A request was carried out, and its answer says otherwise, or there is none.
LOST: list[Fault] = ["412", "503", "time-out", "closed"]

# The lines of a source without partitions, and with some.
LAYOUTS = ["", 'partition_by = ["subject[2]", "hour(_timestamp)"]\n']


@pytest.fixture
def layout() -> str:
    """Further lines of the source."""
    return ""


@pytest.fixture
def config(tmp_path: Path, bucket: ObjectFolder, layout: str) -> PipelineConfig:
    return evolve(config_of(tmp_path, "delta", "nats://127.0.0.1:1", SOURCE + layout), path=bucket)


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


@pytest.mark.parametrize("layout", LAYOUTS)
def test_soak_a_replay_of_letters_that_dies_at_any_request(
    s3: S3Server, config: PipelineConfig, misled: list[str], tmp_path: Path
) -> None:
    """The next command takes the lock over, and gets wrong answers each second time."""
    last = 12

    def landed(number: int) -> PipelineConfig:
        own = beside(config, number)
        land_all(own, FakeLeader(last))
        vacuum(own)  # see Lake.copy
        return own

    landed(0)
    with S3Proxy(s3.url) as proxy:
        letters_replayed(beside(config, 0, proxy.url))
        points = [(at, fault) for fault in FAULTS for at in range(len(proxy.requests))]
    assert len(points) > 60
    tried = sampled(points, 4)
    for number, (at, fault) in enumerate(tried, start=1):
        own, case = landed(number), (at, fault)
        with S3Proxy(s3.url, cut_off(at, fault)) as proxy:
            try:
                letters_replayed(with_lease(beside(config, number, proxy.url)))
            except StorageError:
                pass
        rows, distinct = landed_on_s3(own, tmp_path)
        # A letter may be in both tables until the replay is finished.
        assert rows == distinct in (last, last + 1), case
        if journal_in(own).letters.unfinished() is None:
            assert rows == last, case
        next_one = misled_beside(config, number, misled)
        until_done(lambda other=next_one: letters_replayed(other))
        assert landed_on_s3(own, tmp_path) == (last, last), case
        check_partitions(own)
        assert letters_in(own) == 0, case
        assert journal_in(own).letters.unfinished() is None, case
    state(f"{len(tried)} of {len(points)} points, all exact")


def test_soak_letters_replayed_on_two_machines_at_once(
    s3: S3Server, config: PipelineConfig, tmp_path: Path
) -> None:
    for number in range(rounds(1, 20)):
        own, done = beside(config, number), list[int]()
        land_all(own, FakeLeader(35))
        vacuum(own)  # see Lake.copy

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
        each.join(LONGEST)
    assert not any(each.is_alive() for each in threads)
    if errors:
        raise errors[0]


class Lake:
    """A pipeline that lands a stream, of which each tenth message has no id, and no replay yet."""

    def __init__(self, config: PipelineConfig) -> None:
        self.config = config
        (self.source,) = config.sources

    def at(self, url: str, fault: Fault = "") -> Lake:
        """Return the lake as another machine sees it, perhaps through a proxy with a fault."""
        assert isinstance(self.config.path, ObjectFolder)
        path = self.config.path
        storage = evolve(path.storage, endpoint=url, timeout=request_limit(fault))
        return Lake(evolve(self.config, path=evolve(path, storage=storage)))

    def asleep_at(self, url: str) -> Lake:
        """Return the lake of a command that sleeps while it waits for the answer of a proxy."""
        assert isinstance(self.config.path, ObjectFolder)
        path = self.config.path
        storage = evolve(path.storage, endpoint=url, timeout=LONGEST)
        return Lake(evolve(self.config, path=evolve(path, storage=storage))).dying

    @property
    def dying(self) -> Lake:
        """The lake of a command that dies or sleeps."""
        return Lake(with_lease(self.config))

    def copy(self, number: int) -> Lake:
        """Return another lake of the same stream."""
        assert isinstance(self.config.path, ObjectFolder)
        own = Lake(evolve(self.config, path=self.config.path / f"{number}"))
        assert run(None, own.config, once=True) == {}
        # The first command shuts out earlier owners. deltalake holds Python's lock while it changes
        # a property, so a proxy in this process could not answer.
        vacuum(own.config)
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
        check_partitions(self.config)
        (verdict,) = verify(self.config)
        assert verdict.problems == []
        return verdict.dead_letters


@pytest.fixture
def lake(
    tmp_path: Path,
    server: NatsServer,
    bucket: ObjectFolder,
    layout: str,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
) -> Lake:
    stream = make_stream()
    fill(stream, [{"item": "i"} if at % 10 == 0 else {"id": at} for at in range(1, 31)])
    source = (
        f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\nformat = "json"\n'
        f'schema = "order.json"\nmax_messages = 15\n{layout}'
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


@pytest.mark.parametrize("layout", LAYOUTS)
def test_soak_a_replay_that_dies_at_any_request(
    s3: S3Server, lake: Lake, misled: list[str], tmp_path: Path
) -> None:
    with S3Proxy(s3.url) as proxy:
        lake.copy(0).at(proxy.url).replay()
        points = [(at, fault) for fault in FAULTS for at in range(len(proxy.requests))]
    assert len(points) > 60
    tried = sampled(points, 4)
    for number, (at, fault) in enumerate(tried, start=1):
        own, case = lake.copy(number), (at, fault)
        with S3Proxy(s3.url, cut_off(at, fault)) as proxy:
            try:
                own.at(proxy.url).dying.replay()
            except StorageError:
                pass
        next_one = (own.at(misled[0], "time-out") if number % 2 else own).dying
        until_done(next_one.replay)
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
    with connected(server.url) as connection:
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
        command.join(LONGEST)
        assert not command.is_alive()
    assert len(done) >= 4
    assert lake.check(tmp_path, 330) == 0


# How many commands may lose their short lock before they sleep.
ATTEMPTS = 10


def overslept(lake: Lake, work: Callable[[Lake, threading.Event], object]) -> Lake:
    """Return a copy of the lake in which a command has slept, and has lost its lock so.

    The command sets the event when it sleeps. On a busy machine it may lose its short lock before,
    so another one tries in another copy.
    """
    for number in range(ATTEMPTS):
        own, asleep = lake.copy(number), threading.Event()
        with pytest.raises(StorageError, match="the lock of the tables was lost"):
            work(own, asleep)
        if asleep.is_set():
            return own
    raise AssertionError("no command has slept")


def sleeping(
    s3: S3Server,
    sleeps: Callable[[S3Request], bool],
    meanwhile: Callable[[Lake], object],
    work: Callable[[Lake], object],
) -> Callable[[Lake, threading.Event], None]:
    """Return work for `overslept`, which sleeps before one of its requests is passed on."""

    def run(lake: Lake, asleep: threading.Event) -> None:
        refuses = unable_to_renew(asleep)

        def fault(request: S3Request) -> Fault:
            if sleeps(request) and not asleep.is_set():
                asleep.set()
                meanwhile(lake)
            return refuses(request)

        with S3Proxy(s3.url, fault) as proxy:
            work(lake.asleep_at(proxy.url))

    return run


def test_a_command_that_sleeps_before_its_check_changes_nothing(
    s3: S3Server, lake: Lake, tmp_path: Path
) -> None:

    def work(lake: Lake, asleep: threading.Event) -> None:
        def sleep(_: object) -> None:
            """Let another machine take the lock over, and land all batches again."""
            if not asleep.is_set():
                asleep.set()
                lake.replay("item")

        with (
            S3Proxy(s3.url, unable_to_renew(asleep)) as proxy,
            hooked("replay: before table", sleep),
        ):
            lake.asleep_at(proxy.url).replay()

    check_item(overslept(lake, work), tmp_path)


@pytest.mark.parametrize("other", ["replay", "vacuum"])
def test_a_command_that_sleeps_between_its_check_and_its_commit_changes_nothing(
    s3: S3Server, lake: Lake, tmp_path: Path, other: str
) -> None:
    """Even if the command that takes the lock over does not change the table."""

    def meanwhile(lake: Lake) -> None:
        if other == "replay":
            lake.replay("item")
        else:
            vacuum(lake.config)

    lake = overslept(lake, sleeping(s3, is_commit, meanwhile, lambda own: own.replay()))
    if other == "replay":
        check_item(lake, tmp_path)
    else:
        assert lake.check(tmp_path, 30) == 3


def test_a_compaction_that_sleeps_before_its_commit_names_no_removed_file(
    s3: S3Server, lake: Lake, tmp_path: Path
) -> None:
    """A vacuum of the next owner removes the files that are in no version of the table."""

    def meanwhile(lake: Lake) -> None:
        assert vacuum(lake.config, keep=0)

    def work(lake: Lake) -> None:
        list(compact(lake.config))

    lake = overslept(lake, sleeping(s3, is_commit, meanwhile, work))
    assert lake.check(tmp_path, 30) == 3
    list(compact(lake.config))
    assert lake.check(tmp_path, 30) == 3


@pytest.mark.parametrize("other", ["replay", "letters"])
def test_a_plan_of_letters_that_is_stored_too_late_changes_nothing(
    s3: S3Server, lake: Lake, tmp_path: Path, other: str
) -> None:

    def is_plan(request: S3Request) -> bool:
        return request.method == "PUT" and "/letters/plan/" in request.key

    def meanwhile(lake: Lake) -> None:
        if other == "replay":
            lake.replay()
        else:
            assert letters_replayed(lake.config).landed == 3
        vacuum(lake.config, keep=0)

    lake = overslept(
        lake, sleeping(s3, is_plan, meanwhile, lambda own: letters_replayed(own.config))
    )
    assert lake.check(tmp_path, 30) == 0
    assert letters_replayed(lake.config).letters == 0
    assert run(None, lake.config, once=True) == {}
    assert lake.check(tmp_path, 30) == 0


def test_an_entry_of_a_replay_that_is_stored_too_late_does_not_count(
    s3: S3Server, lake: Lake, tmp_path: Path
) -> None:
    """The replay changed no number of rows, so a replay of letters goes on from its tables."""

    def is_entry(request: S3Request) -> bool:
        is_new = "/landed/" in request.key and request.key.endswith(".001.json")
        return request.method == "PUT" and is_new

    def meanwhile(lake: Lake) -> None:
        assert letters_replayed(lake.config).landed == 3

    lake = overslept(lake, sleeping(s3, is_entry, meanwhile, lambda own: own.replay("id")))
    assert lake.check(tmp_path, 30) == 0
    assert letters_replayed(lake.config).letters == 0


def test_a_plan_that_is_dropped_too_late_has_entries_nevertheless(
    config: PipelineConfig, tmp_path: Path
) -> None:
    """Another owner has slept since it found that the plan did not fit the tables."""
    land_all(config, FakeLeader(25))
    with hooked("letters: before removal", journal_in(config).letters.dropped):
        assert letters_replayed(config).landed == 2
    assert landed_on_s3(config, tmp_path) == (25, 25)
    entries = journal_in(config).entries().values()
    assert [(each.dead_letters, each.replays) for each in entries] == [(0, 1), (0, 1), (0, 0)]
    assert letters_replayed(config).letters == 0


@pytest.mark.parametrize("is_late", [False, True])
def test_a_lock_that_was_removed_shuts_out_its_owner(
    s3: S3Server, lake: Lake, tmp_path: Path, is_late: bool
) -> None:
    """Even if its owner is between its check and its commit."""
    lake, removed = lake.copy(0), threading.Event()

    def remove(_: object = None) -> None:
        if not removed.is_set():
            removed.set()
            Folders.of(lake.config.path).store.delete(LOCK)
            vacuum(lake.config)

    def fault(request: S3Request) -> Fault:
        if is_late and is_commit(request):
            remove()
        return ""

    with (
        S3Proxy(s3.url, fault) as proxy,
        hooked("replay: before table", lambda _: None if is_late else remove()),
        pytest.raises(StorageError, match="the lock of the tables was lost"),
    ):
        lake.at(proxy.url).replay()
    assert lake.check(tmp_path, 30) == 3


ORDER = {"id": {"type": "integer", "format": "int32"}, "item": {"type": "string"}}
WIDER = {"number": {"type": "integer"}, "item": {"type": "string"}}


def rewritten(config: PipelineConfig) -> list[Rewritten]:
    """Widen the column `id`, and name it `number`."""
    return list(rewrite(changed(with_schema(config, **WIDER), renames={"id": "number"})))


def check_columns(config: PipelineConfig, folder: Path, last: int, *, finished: bool) -> None:
    """Check that each row is there once, all with the old columns, or all with the new ones."""
    assert landed_on_s3(config, folder) == (last, last)
    assert isinstance(config.path, ObjectFolder)
    options = delta_options(config.path.storage)
    rows = DeltaTable(f"{config.path}/orders", storage_options=options).to_pyarrow_table()
    is_new = "number" in rows.column_names
    assert is_new or not finished
    name, kind = ("number", pa.int64()) if is_new else ("id", pa.int32())
    assert not {"id", "number"} - {name} & {*rows.column_names}
    assert rows.schema.field(name).type == kind
    assert rows.column(name).to_pylist() == rows.column("_seq").to_pylist()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_soak_a_rewrite_that_dies_at_any_request(
    s3: S3Server, config: PipelineConfig, misled: list[str], tmp_path: Path
) -> None:
    last = 12

    def landed(number: int) -> PipelineConfig:
        own = with_schema(beside(config, number), **ORDER)
        numbered = FakeEngine(payload=lambda seq: b'{"id": %d}' % seq)
        land_all(own, FakeLeader(last), engine=numbered)
        vacuum(own)
        return own

    whole = landed(0)
    with S3Proxy(s3.url) as proxy:
        (done,) = rewritten(beside(config, 0, proxy.url))
        points = [(at, fault) for fault in FAULTS for at in range(len(proxy.requests))]
    assert done.table == "orders"
    check_columns(whole, tmp_path, last, finished=True)
    assert rewritten(whole) == []
    assert vacuum(whole, keep=0)
    check_columns(whole, tmp_path, last, finished=True)
    assert len(points) > 30
    tried = sampled(points, 4)
    for number, (at, fault) in enumerate(tried, start=1):
        own, case = landed(number), (at, fault)
        with S3Proxy(s3.url, cut_off(at, fault)) as proxy:
            try:
                rewritten(with_lease(beside(config, number, proxy.url)))
            except StorageError:
                pass
        check_columns(own, tmp_path, last, finished=False)
        next_one = misled_beside(config, number, misled)
        assert len(until_done(lambda other=next_one: rewritten(other))) <= 1, case
        check_columns(own, tmp_path, last, finished=True)
        check_partitions(own)
    state(f"{len(tried)} of {len(points)} points, all exact")


def test_a_rewrite_that_cannot_read_the_table_says_why(
    s3: S3Server, config: PipelineConfig, tmp_path: Path
) -> None:
    def refused(request: S3Request) -> Fault:
        is_read = request.method in ("GET", "HEAD") and "/orders/data/" in request.key
        return "expired" if is_read else ""

    own = with_schema(beside(config, 0), **ORDER)
    land_all(own, FakeLeader(12), engine=FakeEngine(payload=lambda seq: b'{"id": %d}' % seq))
    vacuum(own)
    with (
        S3Proxy(s3.url, refused) as proxy,
        pytest.raises(StorageError, match=r"cannot read \S+/orders/data/\S+: the server refuses"),
    ):
        rewritten(beside(config, 0, proxy.url))
    check_columns(own, tmp_path, 12, finished=False)


def test_a_rewrite_whose_answer_is_lost_is_done(
    s3: S3Server, config: PipelineConfig, tmp_path: Path
) -> None:
    for number, fault in enumerate(LOST):
        own = with_schema(beside(config, number), **ORDER)
        numbered = FakeEngine(payload=lambda seq: b'{"id": %d}' % seq)
        land_all(own, FakeLeader(12), engine=numbered)
        vacuum(own)

        def answer(request: S3Request, fault: Fault = fault) -> Fault:
            return fault if is_commit(request) else ""

        with S3Proxy(s3.url, answer, patience=1.5) as proxy:
            (done,) = rewritten(beside(config, number, proxy.url, fault))
        assert done.table == "orders"
        check_columns(own, tmp_path, 12, finished=True)


def with_bounds(config: PipelineConfig, column: str) -> PipelineConfig:
    """Return the pipeline with bounds of a column, which readers use if a table's property says."""
    (source,) = config.sources
    return changed(config, files=evolve(source.files, bounds=(column,)))


def landed_letters(config: PipelineConfig) -> None:
    letters_replayed(with_bounds(config, "id"))


def widened(config: PipelineConfig) -> None:
    rewritten(with_bounds(config, "number"))


# Commands that change properties of the table, and which of their commits does.
PROPERTIES: dict[str, tuple[Callable[[PipelineConfig], object], int]] = {
    "first command": (vacuum, 1),
    "letters": (landed_letters, 1),
    "rewrite": (widened, 2),
}


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_change_of_properties_that_takes_longer_than_a_lease_is_not_stored(
    config: PipelineConfig, tmp_path: Path, name: str
) -> None:
    """deltalake lets no thread run meanwhile, so none renews the lock."""
    command, at = PROPERTIES[name]
    if name == "rewrite":
        config = with_schema(config, **ORDER)
    base, versions = config, dict[str, int]()
    for number in range(ATTEMPTS):
        config = beside(base, number)
        land_all(config, FakeLeader(25))
        if name != "first command":
            vacuum(config)  # the first one changes a property, too
        with overtaken_at(config, at) as other:
            with pytest.raises(StorageError, match="the lock of the tables was lost"):
                command(other.config)
            if other.is_over:  # otherwise the short lock was lost before
                versions = other.versions
                break
    assert versions_of(config) == versions, "the command has changed the table since"
    assert landed_on_s3(config, tmp_path) == (25, 25)
    command(config)
    assert landed_on_s3(config, tmp_path) == (25, 25)


def is_commit(request: S3Request) -> bool:
    return request.method == "PUT" and "_delta_log/" in request.key


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
