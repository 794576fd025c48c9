"""Land a range again, after a change of the schema or after damage to files of a table.

A replay reads whole batches from the stream again, with the same bounds, and replaces their rows in
the tables. It can be repeated, even after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from twinstream.core.hooks import HOOKS, reached
from twinstream.lake.engine import Engine
from twinstream.lake.entry import BatchEntry, of_one_stream
from twinstream.lake.task_report import TaskReport, files_by_table
from twinstream.spark.errors import DataLossError, SparkSourceError
from twinstream.spark.landing.land_job import LandJob, ranges_of
from twinstream.spark.landing.landed_seqs import pieces, seqs_in
from twinstream.spark.landing.missing_tables import reports_of
from twinstream.spark.landing.outputs import LakeOutput
from twinstream.spark.landing.split_tables import TableSplit
from twinstream.spark.landing.staging import Staging, Written, remove_attempts
from twinstream.spark.landing.write_batch import counted, position_of
from twinstream.spark.pipeline.engines import engine_of
from twinstream.spark.pipeline.located_source import located_source
from twinstream.spark.pipeline.maintenance.maintenance_lock import maintenance_lock
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.state.landed_rows import (
    messages_of,
    missing_of,
    read_landed,
    tables_of,
)
from twinstream.spark.pipeline.state.source_state import journal_of, refuse_tables_of_others
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.spark.pipeline.tables.sink import Sink
from twinstream.spark.pipeline.tables.source_columns import refuse_old_columns
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.stream_identity import why_other

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["batches_of", "replay"]


def batches_of(
    config: PipelineConfig, source: SourceConfig, low: int, high: int | None
) -> list[BatchEntry]:
    """Return the landed batches that have sequences in `[low, high)`, ascending.

    If `high` is `None`, there is no upper bound. Batches of an earlier stream of the same name
    are omitted. Raises `SparkSourceError` if no batch has sequences of the range.
    """
    entries = journal_of(Folders.of(config.path), source).entries()
    if not entries:
        raise SparkSourceError(f"nothing of source {source.name} is landed yet")
    newest = entries[max(entries)]
    due = [
        each
        for each in of_one_stream(entries).values()
        if each.end > low and (high is None or each.start < high)
    ]
    if not due:
        wanted = (
            f"sequence {low} or later ones" if high is None else f"sequences {low} to {high - 1}"
        )
        raise SparkSourceError(
            f"no batch of source {source.name} has {wanted}; the last one ended at {newest.end - 1}"
        )
    return due


def replay(
    spark: SparkSession | None,
    config: PipelineConfig,
    source: SourceConfig,
    low: int,
    high: int | None,
    *,
    tell: Callable[[BatchEntry], None] = lambda _: None,
) -> list[BatchEntry]:
    """Land again all batches that have sequences in `[low, high)`; return their new entries.

    Args:
        spark: the session that runs the tasks, or `None` with `engine = "local"`.
        config: the pipeline.
        source: the source of the batches.
        low: the first sequence.
        high: the sequence after the last sequence; `None` means no upper bound.
        tell: called with the new entry of each batch.

    Raises:
        DataLossError: if the stream was re-created or restored, or if it has lost messages of a
            batch that the tables have. The rows of this batch are not changed.
        JournalError: if another source has landed into a table. Nothing is changed.
        SchemaError: if the columns of the schema do not fit the tables. Nothing is changed.
        SparkSourceError: if no batch has sequences of the range.
        StorageError: if an object store does not answer, or if the lock in it was lost meanwhile.
            Run the replay again.
        CheckpointError: if the tables have a part of an unfinished batch.
    """
    folders = Folders.of(config.path)
    journal = journal_of(folders, source)
    source = located_source(source)
    with maintenance_lock(config, "replay") as held, engine_of(spark, config) as engine:
        sink = open_sink(config, held.check)
        due = batches_of(config, source, low, high)
        _check_stream(source, due[-1])
        known = journal.entries()
        refuse_tables_of_others(folders, source, sink, known)
        tables = tables_of(source, known.values())
        refuse_old_columns(sink, source, tables)
        done: list[BatchEntry] = []
        for entry in due:
            done.append(_again(engine, folders, source, sink, entry, tables))
            if HOOKS:
                reached("replay: before journal", entry)
            done[-1] = journal.replayed(done[-1], held.check)
            tell(done[-1])
    return done


def _check_stream(source: SourceConfig, last: BatchEntry) -> None:
    with Leader(source.source_options) as leader:
        (state,) = leader.states()
        reason = why_other(position_of(last), state, leader.time_at)
    if reason is not None:
        raise DataLossError(f"{reason}; the messages of the tables cannot be read again")


def _again(
    engine: Engine,
    folders: Folders,
    source: SourceConfig,
    sink: Sink,
    entry: BatchEntry,
    tables: list[str],
) -> BatchEntry:
    split = TableSplit(source.source_options, source.tables, entry.batch)

    def output(new: Sequence[str] = ()) -> LakeOutput | None:
        # No source has a dot in its name.
        return sink.output(f"{source.name}.replay-", split, new)

    staged = _Staged(folders, output())
    try:
        reports = reports_of(
            lambda folder: _write_batch(engine, source, entry, folder),
            staged.folder,
            lambda new: output(new) or staged.folder,
            source.tables,
            sink.existing,
        )
        found = sum(each.rows for each in reports)
        files = files_by_table(reports)
        source.tables.refuse_many([*tables, *files])
        lake = sink.lake
        written = {table: Written.of(table, each, lake) for table, each in files.items()}
        _refuse_lost(source, sink, entry, tables, list(written.values()))
        for table in _order(source, tables, written):
            if HOOKS:
                reached("replay: before table", table)
            sink.replace(table, {entry.batch: files.get(table, ())})
        seqs = seqs_in(list(written.values()), source.seq_column, found)
        again = counted(entry, seqs, list(written.values()), source.dead_letters)
        return evolve(again, replays=entry.replays + 1, filter=source.filter)
    finally:
        staged.close()


class _Staged:
    """The files of one attempt. On an object store they stay until a vacuum."""

    def __init__(self, folders: Folders, output: LakeOutput | None) -> None:
        self._staging: Staging | None = None
        self.folder: Path | LakeOutput
        if output is None:
            remove_attempts(folders.staging, "_replay")
            self._staging = Staging(folders.staging, "_replay")
            self.folder = self._staging.folder
        else:
            self.folder = output

    def close(self) -> None:
        if self._staging is not None:
            self._staging.close()


def _write_batch(
    engine: Engine, source: SourceConfig, entry: BatchEntry, folder: Path | LakeOutput
) -> list[TaskReport]:
    """Write the rows of the batch to files in `folder`."""
    # Tasks must not fail if messages are missing. `_refuse_lost` compares the files with the
    # tables, and reports the sequences of lost messages.
    options = evolve(source.source_options, slots=engine.slots, fail_on_data_loss=False)
    job = LandJob(options, source.tables, folder, entry.batch)
    with Leader(options) as leader:
        ranges = ranges_of(leader, options, entry.start, position_of(entry))
    return job.run(engine, ranges)


def _refuse_lost(
    source: SourceConfig, sink: Sink, entry: BatchEntry, tables: list[str], written: list[Written]
) -> None:
    """Raise `DataLossError` if the tables have messages of the batch that `written` lacks."""
    lost: list[int] = []
    for low, high in pieces(entry.start, entry.end, entry.messages):
        new = messages_of(written, source, low, high)
        old = read_landed(sink, source, tables, low, high, entry.batch)
        lost += missing_of(old.up_to(entry.batch).rows, new)
    if lost:
        raise DataLossError(
            f"batch {entry.batch} of source {source.name} cannot be landed again: the stream"
            f" no longer has {len(lost)} of its messages, the first has sequence {lost[0]}"
        )


def _order(source: SourceConfig, tables: list[str], written: Mapping[str, Written]) -> list[str]:
    """Return the names of all tables to change, with the dead letters last.

    A message may move from the dead letters to a table. The table is changed first. So after an
    interruption between the two changes, the message exists twice and is not lost.
    """
    names = sorted({*tables, *written} - {source.dead_letters})
    return [*names, source.dead_letters]
