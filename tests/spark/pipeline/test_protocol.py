"""A driver that dies at any point, or works beside another one, lands each message exactly once.

Neither Spark nor a server has a part in it: see `tests.spark.drivers`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hooked import hooked, once
from tests.mortal_store import Died, MortalStore
from tests.soak import LONGEST, rounds, state
from tests.spark.drivers import (
    SOURCE,
    FakeEngine,
    FakeLeader,
    batches_of,
    bounds,
    changed,
    journal_in,
    land_all,
    landed,
)
from tests.spark.pipelines import SINKS, config_of, write_config
from twinstream.lake.journal import Journal
from twinstream.lake.land_batch import BatchLander
from twinstream.lake.local_store import LocalStore
from twinstream.lake.plan import Plan
from twinstream.spark.errors import CheckpointError, DataLossError, JournalError
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.accept import accept_stream, accept_subjects, check_subjects
from twinstream.spark.pipeline.maintenance.compact import compact
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.settings.toml_config import read_config

ROOT = Path(__file__).parents[3]
LAST = 25
BATCHES = [(1, 11), (11, 21), (21, 26)]


@pytest.fixture(params=SINKS)
def config(request: pytest.FixtureRequest, tmp_path: Path) -> PipelineConfig:
    return config_of(tmp_path, request.param, "nats://127.0.0.1:1", SOURCE)


@pytest.fixture
def leader() -> FakeLeader:
    return FakeLeader(LAST)


def store_of(config: PipelineConfig) -> LocalStore:
    return LocalStore(Folders(config.path).state)


def test_a_driver_that_dies_at_any_call_of_the_store(tmp_path: Path) -> None:
    """Each life dies a call later than the one before, until one reaches the end.

    Both batches have a dead letter; a third one would repeat the calls of the second.
    """
    leader = FakeLeader(20)
    for sink in SINKS:
        calls = 0
        while True:
            folder = tmp_path / f"{sink}-{calls}"
            folder.mkdir()
            config = config_of(folder, sink, "nats://127.0.0.1:1", SOURCE)
            store = MortalStore(store_of(config), calls)
            try:
                land_all(config, leader, store=store)
            except Died:
                assert landed(config)[0] == landed(config)[1]
                land_all(config, leader)
                assert (landed(config), bounds(config)) == ((20, 20), BATCHES[:2]), (sink, calls)
                calls += 1
            else:
                break
        assert calls > 20, "each batch has some calls"


def test_a_driver_that_dies_again_and_again_gets_to_the_end(
    config: PipelineConfig, leader: FakeLeader
) -> None:
    lives = 0
    for point in range(6, 60):
        lives += 1
        try:
            land_all(config, leader, store=MortalStore(store_of(config), point))
        except Died:
            continue
        break
    assert lives > 2
    assert (landed(config), bounds(config)) == ((LAST, LAST), BATCHES)


@pytest.mark.parametrize("at", range(5))
def test_a_driver_that_dies_between_two_tables(
    config: PipelineConfig, leader: FakeLeader, at: int
) -> None:
    left = [at]

    def die(_: object) -> None:
        if not left[0]:
            raise Died
        left[0] -= 1

    with hooked("staging: before put", die), pytest.raises(Died):
        land_all(config, leader)
    land_all(config, leader)
    assert (landed(config), bounds(config)) == ((LAST, LAST), BATCHES)


def test_tables_may_have_many_columns(config: PipelineConfig, leader: FakeLeader) -> None:
    """Readers of Delta's log ignore the bounds of columns behind the first 32, by default."""
    members = {"id": {"type": "integer"}} | {f"c{at}": {"type": "string"} for at in range(40)}
    wide = schema(config, json.dumps({"type": "object", "properties": members}))
    land_all(wide, leader)
    assert (landed(wide), bounds(wide)) == ((LAST, LAST), BATCHES)


def test_a_driver_that_is_overtaken_adds_nothing(
    config: PipelineConfig, leader: FakeLeader
) -> None:
    """While its tasks run, another driver lands everything; then it goes on."""
    other = once(lambda: land_all(config, leader))
    land_all(config, leader, engine=FakeEngine(other))
    assert (landed(config), bounds(config)) == ((LAST, LAST), BATCHES)


def test_a_driver_that_is_overtaken_at_any_call_of_the_store(tmp_path: Path) -> None:
    leader = FakeLeader(12)
    for sink in SINKS:
        calls, is_reached = 0, True
        while is_reached:
            folder = tmp_path / f"{sink}-{calls}"
            folder.mkdir()
            config = config_of(folder, sink, "nats://127.0.0.1:1", SOURCE)
            store = MortalStore(store_of(config), calls, lambda c=config: land_all(c, leader))
            land_all(config, leader, store=store)
            is_reached = store.is_reached
            assert (landed(config), bounds(config)) == ((12, 12), [(1, 11), (11, 13)]), calls
            calls += 1
        assert calls > 20


def test_a_driver_that_is_overtaken_before_its_plan_is_stored(
    config: PipelineConfig, leader: FakeLeader
) -> None:
    journal = journal_in(config)
    lander = BatchLander(journal, batches_of(config, journal, leader))
    plan = lander.due()
    assert plan is not None
    land_all(config, leader)
    list(compact(config))
    assert lander.land(plan) == journal_in(config).entry(0)
    assert (landed(config), bounds(config)) == ((LAST, LAST), BATCHES)


@pytest.mark.parametrize("known", [0, 1], ids=["cold", "warm"])
def test_a_driver_that_slept_while_its_batch_was_bundled(
    config: PipelineConfig, known: int
) -> None:
    """Its batch is in a compacted file and in a bundle, so neither a folder nor a plan shows it."""
    leader = FakeLeader(10 * known + 5)
    journal = Journal(store_of(config), "orders", 2)
    lander = BatchLander(journal, batches_of(config, journal, leader))
    for _ in range(known):
        due = lander.due()
        assert due is not None
        lander.land(due)
    slept = lander.due()
    assert slept is not None
    leader.last = LAST
    land_all(config, leader)
    list(compact(config))
    assert Journal(store_of(config), "orders", 2).bundle() == (6, 3)
    assert lander.land(slept) == journal.entry(known)
    assert landed(config) == (LAST, LAST)
    assert lander.due() is None


def test_drivers_at_once_use_the_plan_of_the_first(config: PipelineConfig) -> None:
    """The second one would end the batch later."""
    first, second = FakeLeader(5), FakeLeader(8)
    journal = journal_in(config)
    lander = BatchLander(journal, batches_of(config, journal, second))
    late = lander.due()
    assert late is not None
    assert late.end == 9
    land_all(config, first)
    lander.land(late)
    while (plan := lander.due()) is not None:
        lander.land(plan)
    assert (landed(config), bounds(config)) == ((8, 8), [(1, 6), (6, 9)])


def test_many_drivers_at_once(config: PipelineConfig, leader: FakeLeader) -> None:
    errors: list[BaseException] = []
    ready = threading.Barrier(4)

    def work() -> None:
        try:
            ready.wait(LONGEST)
            land_all(config, leader)
        except BaseException as error:
            errors.append(error)

    drivers = [threading.Thread(target=work) for _ in range(4)]
    for each in drivers:
        each.start()
    for each in drivers:
        each.join(LONGEST)
    assert errors == []
    assert (landed(config), bounds(config)) == ((LAST, LAST), BATCHES)


@pytest.mark.parametrize("sink", SINKS)
def test_soak_drivers_in_processes_at_once(sink: str, tmp_path: Path) -> None:
    program = [sys.executable, str(ROOT / "tests" / "spark" / "land_alone.py")]
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    for number in range(rounds(1, 20)):
        folder = tmp_path / str(number)
        folder.mkdir()
        file = write_config(folder, sink, "nats://127.0.0.1:1", SOURCE)
        drivers = [
            subprocess.Popen(
                [*program, str(file), "55"], stdout=subprocess.PIPE, text=True, env=environment
            )
            for _ in range(3)
        ]
        for each in drivers:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        (folder / "go").touch()
        for each in drivers:
            each.communicate(timeout=LONGEST)
        config = read_config(file)
        found = landed(config)
        state(f"{sink}, round {number}: rows, distinct: {found}")
        assert (found, len(bounds(config))) == ((55, 55), 6)
        assert [each.returncode for each in drivers] == [0, 0, 0]


def test_rows_that_the_journal_does_not_know_are_refused(
    config: PipelineConfig, leader: FakeLeader
) -> None:
    land_all(config, leader)
    folder = Folders(config.path).state / "orders"
    for name in ("plan", "landed"):
        (folder / name).rename(folder / f"{name}.lost")
    with pytest.raises(JournalError, match="table orders has rows of batch 0 or later"):
        land_all(config, leader)
    (folder / "plan.lost").rename(folder / "plan")
    with pytest.raises(JournalError, match="plans of batches 0 and 1, and no entry of batch 0"):
        land_all(config, leader)
    (folder / "landed.lost").rename(folder / "landed")
    land_all(config, leader)
    assert landed(config) == (LAST, LAST)


def test_a_restored_journal_does_not_land_again(config: PipelineConfig, leader: FakeLeader) -> None:
    """A backup that was made while batch 1 was being landed."""
    land_all(config, leader)
    folder = Folders(config.path).state / "orders"
    for name in ("landed/000000001", "landed/000000002", "plan/000000002"):
        (folder / f"{name}.json").unlink()
    list_before = landed(config)
    with pytest.raises(JournalError, match="table orders has rows of batch 2 or later"):
        land_all(config, leader)
    assert landed(config) == list_before


def interrupted(config: PipelineConfig, leader: FakeLeader, table: str) -> None:
    """Land until just before a table gets its files."""

    def die(target: Path) -> None:
        if table in str(target):
            raise Died

    with hooked("staging: before put", die), pytest.raises(Died):
        land_all(config, leader)


def schema(config: PipelineConfig, text: str) -> PipelineConfig:
    folder = config.path.parent
    (folder / "order.json").write_text(text)
    return read_config(folder / "orders.toml")


def test_a_batch_is_finished_with_the_schema_that_it_was_begun_with(
    config: PipelineConfig, leader: FakeLeader
) -> None:
    strict = (config.path.parent / "order.json").read_text()
    interrupted(config, leader, "dead_letters")
    other = schema(config, strict.replace('"integer"', '"string"'))
    for _ in range(2):
        with pytest.raises(JournalError, match="begun with another schema; finish it with"):
            land_all(other, leader)
    land_all(schema(config, strict), leader)
    assert landed(config) == (LAST, LAST)


def accepts(
    config: PipelineConfig, leader: FakeLeader, accept: Callable[..., None] = accept_stream
) -> None:
    journal = journal_in(config)
    batches = batches_of(config, journal, leader)
    accept(journal, batches, leader.states()[0], leader.time_at)


def test_an_accepted_stream_takes_the_place_of_an_unfinished_batch(
    config: PipelineConfig, leader: FakeLeader
) -> None:
    interrupted(config, leader, "dead_letters")
    assert landed(config) == (9, 9)
    copy = FakeLeader(3, "tomorrow")
    with pytest.raises(DataLossError, match="it was deleted and re-created"):
        land_all(config, copy)
    accepts(config, copy)
    assert landed(config) == (0, 0)
    copy.last = 8
    land_all(config, copy)
    assert (landed(config), bounds(config)) == ((8, 8), [(1, 1), (1, 9)])
    accepts(config, copy)
    assert len(bounds(config)) == 2, "once is enough"


def test_only_what_may_be_a_copy_is_accepted(config: PipelineConfig, leader: FakeLeader) -> None:
    land_all(config, leader)
    for other in (FakeLeader(20, "tomorrow"), FakeLeader(20)):
        with pytest.raises(DataLossError, match="cannot be accepted as a copy"):
            accepts(config, other)
    same = FakeLeader(LAST, "tomorrow")
    accepts(config, same)  # it has the message of the mark
    assert (landed(config), bounds(config)) == ((LAST, LAST), BATCHES)


def test_accepted_subjects_take_the_place_of_an_unfinished_batch(
    config: PipelineConfig, leader: FakeLeader
) -> None:
    land_all(config, FakeLeader(10))
    interrupted(config, leader, "dead_letters")
    (source,) = config.sources
    wider = changed(
        config, options={**source.options, "subject": "s.a,s.b", "maxMessagesPerTrigger": "99"}
    )
    (widened,) = wider.sources
    journal = journal_in(wider)
    with pytest.raises(CheckpointError, match=r"the subjects > before, now it names s.a,s.b"):
        check_subjects(widened, journal)
    batches = batches_of(wider, journal, leader)
    origin = journal.origin()
    assert origin is not None
    lookups = leader.time_at, leader.seq_from
    for _ in range(2):
        accept_subjects(widened, journal, batches, origin, leader.states()[0], *lookups)
        check_subjects(widened, journal)
    land_all(wider, leader)
    assert landed(wider) == (LAST, LAST)
    entries = journal_in(wider).entries()
    assert [each.filter for each in entries.values()] == ["", "s.a,s.b", "s.a,s.b"]
    assert (entries[1].start, entries[1].end, entries[1].messages) == (11, 11, 0)


def test_a_lake_of_the_earlier_layout_is_refused(config: PipelineConfig) -> None:
    from twinstream.spark.pipeline.state.source_state import SourceState

    for name in ("source.json", "journal.jsonl"):
        file = Folders(config.path).state / "orders" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        with pytest.raises(JournalError, match=rf"{name} is of a layout .* land into a new folder"):
            SourceState.of(config, config.sources[0])
        file.unlink()


def test_a_batch_of_a_plan_has_the_subjects_of_the_plan(
    config: PipelineConfig, leader: FakeLeader
) -> None:
    seen: list[tuple[str, ...]] = []
    engine = FakeEngine(lambda job: seen.append(job.options.subjects))
    batches = batches_of(config, journal_in(config), leader, engine)
    batches.land(Plan(batch=0, start=1, end=5, created="today", filter="s.a,s.c", parts=2), None)
    assert seen == [("s.a", "s.c")]
