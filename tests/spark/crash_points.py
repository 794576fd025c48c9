"""A program that dies at the n-th thing it does to files, for every n.

`python crash_points.py SINK FOLDER SEED COUNT` lands three batches into tables of one kind, joins
their files, replaces a batch and vacuums; Spark has no part in it.
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

import pyarrow as pa
from attrs import frozen
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from tests.spark.pipelines import config_of
from twinstream.spark.landing.staging import Staging
from twinstream.spark.landing.table_files import TableFiles
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.maintenance.compact import compact
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.state.batch_log import BatchEntry, BatchLog, TableEntry
from twinstream.spark.pipeline.state.landed_rows import read_landed, tables_of
from twinstream.spark.pipeline.tables.open_sink import open_sink

BATCHES, ROWS = 3, 10
COLUMNS = StructType(
    [
        StructField("_seq", LongType()),
        StructField("_timestamp", TimestampType()),
        StructField("_batch_id", LongType()),
    ]
)
DIED = 9
CHANGES = {"open", "os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.truncate"}


@frozen
class Writer:
    name: str = "orders"
    id: str = "identity"


def write(folder: Path, batch: int, seqs: list[int]) -> list[Path]:
    """Write two files, as two tasks of Spark would."""
    found: list[Path] = []
    half = len(seqs) // 2
    for part in (seqs[:half], seqs[half:]):
        files = TableFiles(folder)
        columns = [
            pa.array(part, pa.int64()),
            pa.array(part, pa.timestamp("us", "UTC")),
            pa.array([batch] * len(part), pa.int64()),
        ]
        files.add("orders", pa.RecordBatch.from_arrays(columns, COLUMNS.names))
        found += [each.path for each in files.finish()]
    return found


def seqs_of(batch: int) -> tuple[list[int], list[int]]:
    """Return the sequences of a batch's rows and of its dead letters."""
    first = batch * ROWS + 1
    return list(range(first, first + ROWS - 2)), list(range(first + ROWS - 2, first + ROWS))


def work(config: PipelineConfig) -> None:
    """Do everything, or what is left to do of it."""
    (source,) = config.sources
    folders, sink = Folders(config.path), open_sink(config)
    log = BatchLog(folders.source(source.name).journal)
    last, committed = log.last(), config.path / "committed"
    # The last batch is landed again, for Spark's commit comes after the journal's line. Tables are
    # joined and replaced behind the commit only.
    start = BATCHES if committed.exists() else last.batch if last else 0
    for batch in range(start, BATCHES):
        rows, dead = seqs_of(batch)
        entry = BatchEntry(
            batch=batch, start=rows[0], end=dead[-1] + 1, created="c", query_id="q", began="b",
            messages=ROWS, tables={
                source.table: TableEntry(rows=len(rows), files=2, bytes=1),
                source.dead_letters: TableEntry(rows=len(dead), files=2, bytes=1),
            },
        )  # fmt: skip
        log.begin(entry)
        tables = sink.batch(batch, Writer())
        tables.put(source.table, write(tables.folder, batch, rows), COLUMNS)
        tables.put(source.dead_letters, write(tables.folder, batch, dead), COLUMNS)
        assert sum(each.rows for each in tables.written) == ROWS, tables.written
        tables.close()
        log.landed(entry)
    committed.touch()
    list(compact(config))
    staging = Staging(folders.staging, "_replay")
    sink.replace(source.table, 1, write(staging.folder, 1, seqs_of(1)[0]))
    staging.close()
    vacuum(config, keep=0)


def check(config: PipelineConfig, *, finished: bool) -> None:
    """Find every row at most once at any time, and exactly once at the end."""
    (source,) = config.sources
    log = BatchLog(Folders(config.path).source(source.name).journal)
    tables = tables_of(source, log.entries().values())
    found = read_landed(open_sink(config), source, tables, 0, 10_000)
    assert found.count == found.distinct, f"doubled: {found.doubles()}"
    landed = {seq for batch in log.entries() for part in seqs_of(batch) for seq in part}
    missing = landed - set(found.seqs.to_pylist())
    assert not missing, f"missing: {missing}"
    if finished:
        assert found.count == BATCHES * ROWS
        assert not Folders(config.path).staging.exists()
        assert not Folders(config.path).replaced.exists()


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


def config_in(folder: Path, sink: str) -> PipelineConfig:
    folder.mkdir(parents=True)
    source = 'stream = "S"\nname = "orders"\ntable = "orders"\nformat = "json"\n'
    return config_of(folder, sink, "nats://127.0.0.1:1", source + 'schema = "order.json"')


def count_points(folder: Path, sink: str) -> int:
    config = config_in(folder / "count", sink)

    def counted() -> None:
        seen = die_at(-1, config.path)
        work(config)
        check(config, finished=True)
        (folder / "points").write_text(str(seen()))

    assert in_child(counted) == 0, "the work fails by itself"
    return int((folder / "points").read_text())


def try_point(folder: Path, sink: str, point: int) -> None:
    config = config_in(folder / f"point-{point}", sink)

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


def main(sink: str, folder: Path, seed: int, count: int) -> None:
    points = count_points(folder, sink)
    chosen = range(points)
    if count:
        chosen = sorted(random.Random(seed).sample(chosen, min(count, points)))
    for point in chosen:
        try_point(folder, sink, point)
    print(f"{sink}: {len(chosen)} of {points} points, all exact")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
