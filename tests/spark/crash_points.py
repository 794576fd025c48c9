"""A program that dies at the n-th thing it does to files, for every n.

`python crash_points.py KIND FOLDER SEED COUNT` lands three batches into tables of one kind, joins
their files, replaces a batch, lands the dead letters again under another schema, and vacuums; Spark
has no part in it.
For COUNT of the points (0: all) a process dies there without any cleaning up, and another one does
the same work again, as a new run does. Prints how many points there are and which were tried; ends
with an error when rows are missing or doubled.

Python tells an audit hook of each file that it opens, renames, links or removes. All work is done
in forked processes, for the threads of Arrow do not outlive a fork.
"""

from __future__ import annotations

import os
import random
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import evolve

from tests.spark.drivers import SOURCE, FakeEngine, FakeLeader, journal_in, land_all, relaxed
from tests.spark.pipelines import config_of
from twinstream.lake.local_store import LocalStore
from twinstream.lake.task_report import files_by_table
from twinstream.spark.landing.land_job import LandJob
from twinstream.spark.landing.staging import Staging
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.letters.replay import replay_letters
from twinstream.spark.pipeline.maintenance.compact import compact
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.state.landed_rows import read_landed, tables_of
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.spark.source.plan import SequenceRange

# The names of layouts behind the sink in KIND, as in `delta-partitions`.
LAYOUTS = {
    "": "table = 'orders'\n",
    "partitions": 'table = "orders"\npartition_by = ["subject[2]", "day(_timestamp)"]\n',
    "tables": 'table = "orders_{subject[2]}"\n',
}
OF_ALL = SOURCE.replace('table = "orders"\n', "")
BATCHES, ROWS = 3, 10
DIED = 9
CHANGES = {"open", "os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.truncate"}


def work(config: PipelineConfig) -> None:
    """Do everything, or what is left to do of it."""
    (source,) = config.sources
    leader, folders, sink = FakeLeader(BATCHES * ROWS), Folders(config.path), open_sink(config)
    land_all(config, leader)
    list(compact(config))
    # As a replay does.
    staging = Staging(folders.staging, "_replay")
    job = LandJob(source.source_options, source.tables, staging.folder, 1)
    parts = [SequenceRange(source.stream, ROWS + 1, 2 * ROWS + 1, "direct")]
    for table, files in files_by_table(job.run(FakeEngine(), parts)).items():
        sink.replace(table, {1: [each.path for each in files]})
    staging.close()
    entry = journal_in(config).entries()[1]
    journal_in(config).replayed(evolve(entry, replays=entry.replays + 1, dead_letters=1))
    replay_letters(None, relaxed(config), relaxed(config).sources[0])
    vacuum(config, keep=0)


def check(config: PipelineConfig, *, finished: bool) -> None:
    """Find every row at most once at any time, and exactly once at the end."""
    (source,) = config.sources
    entries = journal_in(config).entries()
    tables = tables_of(source, entries.values())
    found = read_landed(open_sink(config), source, tables, 0, 10_000)
    for table in tables:
        rows = read_landed(open_sink(config), source, [table], 0, 10_000)
        assert rows.count == rows.distinct, f"doubled in {table}: {rows.doubles()}"
    if finished or journal_in(config).letters.unfinished() is None:
        assert found.count == found.distinct, f"doubled: {found.doubles()}"
    expected = {seq for each in entries.values() for seq in range(each.start, each.end)}
    missing = expected - set(found.seqs.to_pylist())
    assert not missing, f"missing: {missing}"
    if finished:
        assert list(entries) == list(range(BATCHES))
        assert found.count == BATCHES * ROWS
        assert {(each.messages, each.dead_letters) for each in entries.values()} == {(ROWS, 0)}
        assert not read_landed(open_sink(config), source, tables[-1:], 0, 10_000).count
        assert not Folders(config.path).staging.exists()
        assert not Folders(config.path).replaced.exists()
        assert not LocalStore(Folders(config.path).state).unfinished()


def die_at(point: int, root: Path) -> Callable[[], int]:
    """Let this process die at the n-th change below `root`; return what counts them."""
    seen = 0
    mark = str(root)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if event not in CHANGES or not str(arguments[0]).startswith(mark):
            return
        if event == "open" and isinstance(arguments[2], int) and not arguments[2] & os.O_ACCMODE:
            return
        if seen == point:
            os._exit(DIED)
        seen += 1

    sys.addaudithook(hook)
    return lambda: seen


def in_child(task: Callable[[], None]) -> int:
    """Run a task in a process of its own; return its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            task()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def config_in(folder: Path, kind: str) -> PipelineConfig:
    folder.mkdir(parents=True)
    sink, _, layout = kind.partition("-")
    return config_of(folder, sink, "nats://127.0.0.1:1", OF_ALL + LAYOUTS[layout])


def count_points(folder: Path, kind: str) -> int:
    config = config_in(folder / "count", kind)

    def counted() -> None:
        seen = die_at(-1, config.path)
        work(config)
        check(config, finished=True)
        (folder / "points").write_text(str(seen()))

    assert in_child(counted) == 0, "the work fails by itself"
    return int((folder / "points").read_text())


def try_point(folder: Path, kind: str, point: int) -> None:
    config = config_in(folder / f"point-{point}", kind)

    def dying() -> None:
        die_at(point, config.path)
        work(config)

    def after() -> None:
        check(config, finished=False)
        work(config)
        check(config, finished=True)
        work(config)
        check(config, finished=True)

    assert in_child(dying) == DIED, f"point {point}: it did not die"
    assert in_child(after) == 0, f"point {point}: not exact afterwards"


def main(kind: str, folder: Path, seed: int, count: int) -> None:
    points = count_points(folder, kind)
    chosen = range(points)
    if count:
        chosen = sorted(random.Random(seed).sample(chosen, min(count, points)))
    for point in chosen:
        try_point(folder, kind, point)
    print(f"{kind}: {len(chosen)} of {points} points, all exact")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
