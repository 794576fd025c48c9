"""A program that dies at the n-th thing it does to files, for every n.

`python crash_points.py JOB SINK FOLDER SEED COUNT` does a job with tables of a sink, in each
layout; Spark has no part in it. The job `all` lands three batches, joins their files, replaces a
batch, lands the dead letters again under another schema, and vacuums. The job `rewrite` lands them,
gives a column another type and name, and vacuums.
For COUNT of the points (0: all), which are spread over the job, a process dies there without any
cleaning up, and another one does the same work again, as a new run does. Prints how many points
there are and which were tried; ends with an error when rows are missing or doubled.

Python tells an audit hook of each file that it opens, renames, links or removes. Further points are
those of a rewrite, whose files deltalake writes without Python. All work is done
in forked processes, for the threads of Arrow do not outlive a fork.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from tests.soak import spread
from tests.spark.drivers import (
    SOURCE,
    FakeEngine,
    FakeLeader,
    changed,
    check_partitions,
    journal_in,
    land_all,
    relaxed,
    with_schema,
)
from tests.spark.pipelines import config_of, rows_of
from twinstream.core.hooks import HOOKS
from twinstream.lake.local_store import LocalStore
from twinstream.lake.task_report import files_by_table
from twinstream.spark.landing.land_job import LandJob
from twinstream.spark.landing.staging import Staging
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.letters.replay import replay_letters
from twinstream.spark.pipeline.maintenance.compact import compact
from twinstream.spark.pipeline.maintenance.rewrite import rewrite
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.state.landed_rows import read_landed, tables_of
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.spark.source.plan import SequenceRange

# How the tables of a sink are laid out, by the names that the output has.
LAYOUTS = {
    "one": "table = 'orders'\n",
    "partitions": 'table = "orders"\npartition_by = ["subject[2]", "day(_timestamp)"]\n',
    "tables": 'table = "orders_{subject[2]}"\n',
}
OF_ALL = SOURCE.replace('table = "orders"\n', "")
BATCHES, ROWS = 3, 10
DIED = 9
CHANGES = {"open", "os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.truncate"}


@frozen
class Job:
    """Work that may be done again after a death, and what must be true of its tables."""

    work: Callable[[PipelineConfig], None]
    check: Callable[..., None]


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
        sink.replace(table, {1: files})
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


def work_rewrite(config: PipelineConfig) -> None:
    land_all(
        with_schema(config, id={"type": "integer", "format": "int32"}), FakeLeader(BATCHES * ROWS)
    )
    list(
        rewrite(changed(with_schema(config, number={"type": "integer"}), renames={"id": "number"}))
    )
    vacuum(config, keep=0)


def check_rewrite(config: PipelineConfig, *, finished: bool) -> None:
    """Find every row once at any time; a table has all values in the old or the new column."""
    entries = journal_in(config).entries()
    tables = open_sink(config).existing("orders") if entries else []
    # Each row with its number; a table has all of them in the same column.
    rows: list[dict[str, Any]] = []
    for table in tables:
        inside = rows_of(config.path / table, config.sink)
        number = "number" if inside and "number" in inside[0] else "id"
        assert not finished or number == "number"
        assert not finished or (set(inside[0]) >= {"number", "_extra"} and "id" not in inside[0])
        rows += [{"_seq": row["_seq"], "number": row.get(number)} for row in inside]
    expected = [seq for each in entries.values() for seq in range(each.start, each.end)]
    by_seq = sorted(rows, key=lambda row: row["_seq"])
    assert not finished or len(entries) == BATCHES
    # A batch that was interrupted before its entry may have rows already.
    assert [row["_seq"] for row in by_seq][: len(expected)] == expected
    assert len(by_seq) == len({row["_seq"] for row in by_seq})
    assert {row["_seq"]: row["number"] for row in rows} == {
        row["_seq"]: row["_seq"] if row["_seq"] % 10 else None for row in rows
    }
    if finished:
        check_partitions(config)
        assert not Folders(config.path).staging.exists()
        assert not Folders(config.path).replaced.exists()


JOBS = {"all": Job(work, check), "rewrite": Job(work_rewrite, check_rewrite)}


def die_at(point: int, root: Path) -> Callable[[], int]:
    """Let this process die at the n-th change below `root`; return what counts them."""
    seen = 0
    mark = str(root)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in CHANGES or not str(arguments[0]).startswith(mark):
            return
        if event == "open" and isinstance(arguments[2], int) and not arguments[2] & os.O_ACCMODE:
            return
        count(event)

    def count(_: object) -> None:
        nonlocal seen
        if seen == point:
            os._exit(DIED)
        seen += 1

    sys.addaudithook(hook)
    HOOKS["rewrite: before rows"] = HOOKS["rewrite: between rows"] = count
    return lambda: seen


def in_child(task: Callable[[], None]) -> int:
    """Run a task in a process of its own; return its exit code."""
    child = os.fork()
    if child == 0:
        # Collecting garbage would copy the memory of all modules into this short life.
        gc.disable()
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


def config_in(folder: Path, sink: str, layout: str) -> PipelineConfig:
    folder.mkdir(parents=True)
    return config_of(folder, sink, "nats://127.0.0.1:1", OF_ALL + LAYOUTS[layout])


def count_points(folder: Path, sink: str, layout: str, job: Job) -> int:
    config = config_in(folder / "count", sink, layout)

    def counted() -> None:
        seen = die_at(-1, config.path)
        job.work(config)
        job.check(config, finished=True)
        (folder / "points").write_text(str(seen()))

    assert in_child(counted) == 0, "the work fails by itself"
    return int((folder / "points").read_text())


def try_point(folder: Path, sink: str, layout: str, job: Job, point: int) -> None:
    config = config_in(folder / f"point-{point}", sink, layout)

    def dying() -> None:
        die_at(point, config.path)
        job.work(config)

    def after() -> None:
        job.check(config, finished=False)
        job.work(config)
        job.check(config, finished=True)
        job.work(config)
        job.check(config, finished=True)

    assert in_child(dying) == DIED, f"{layout}, point {point}: it did not die"
    assert in_child(after) == 0, f"{layout}, point {point}: not exact afterwards"


def main(name: str, sink: str, folder: Path, seed: int, count: int) -> None:
    job, dice = JOBS[name], random.Random(seed)
    for layout in LAYOUTS:
        points = count_points(folder / layout, sink, layout, job)
        chosen = spread(range(points), count or points, dice)
        for point in chosen:
            try_point(folder / layout, sink, layout, job, point)
        print(f"{name}, {sink}, {layout}: {len(chosen)} of {points} points, all exact")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
