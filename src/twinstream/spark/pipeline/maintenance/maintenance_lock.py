"""Lock the tables of a pipeline for work that must not run while something is unfinished."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Final

from attrs import frozen

from twinstream.core.deadline import Deadline
from twinstream.spark.errors import CheckpointError
from twinstream.spark.pipeline.letters.finish import finish_interrupted
from twinstream.spark.pipeline.letters.letters_report import LettersReport
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.state.landed_rows import possible_tables, tables_of
from twinstream.spark.pipeline.state.source_state import SourceState, journal_of, journals_in
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.spark.pipeline.tables.table_lock import ExclusiveLock, TableLock

__all__ = ["Maintenance", "maintenance_lock"]

# Seconds between two looks at the journals while another machine lands a batch.
_PAUSE: Final = 0.5


@frozen
class Maintenance:
    """What a command knows while it has the tables alone.

    `finished` has the interrupted replays of dead letters that were finished first, by the name of
    the source. `check` raises `StorageError` if the command has lost the lock, which is possible
    only on an object store. Give it to `open_sink`, which calls it before each change of a table,
    and call it before you write to a journal.
    """

    finished: Mapping[str, LettersReport]
    check: Callable[[], None]


@contextmanager
def maintenance_lock(
    config: PipelineConfig, purpose: str, *, may_be_planned: bool = False
) -> Generator[Maintenance]:
    """Lock the tables of a pipeline for the block, after checking that no batch is unfinished.

    A replay of dead letters that was interrupted is finished first. If the pipeline runs, this
    function waits until the current batches are landed, and the pipeline begins no batch until the
    block ends. While another command has the lock, this function waits for its end. `purpose`
    describes this command to other commands. With `may_be_planned`, an unfinished batch is no
    reason to refuse as long as no table has rows of it.
    Raises `CheckpointError` if a batch was interrupted, and on an object store also if another
    machine lands a batch for longer than a lease.
    """
    folders = Folders.of(config.path)
    with TableLock(folders).alone(f"pipeline {purpose} of {config.name}") as lock:
        if lock.is_taken_over:
            _shut_out_earlier(config, folders, lock.check)
            lock.settle()
        if folders.bucket is not None:
            patience = Deadline.after(folders.bucket.storage.lease)
            _wait_for_batches(config, folders, lock, patience)
        finished: dict[str, LettersReport] = {}
        for source in config.sources:
            finished[source.name] = finish_interrupted(config, source, lock.check)
            _refuse_unfinished(config, source, may_be_planned=may_be_planned)
        yield Maintenance(finished, lock.check)


def _refuse_unfinished(
    config: PipelineConfig, source: SourceConfig, *, may_be_planned: bool
) -> None:
    state = SourceState.of(config, source)
    plan = state.journal.unfinished()
    if plan is None:
        return
    tables = possible_tables(source, state.sink)
    is_held = any(state.sink.holds(table, plan.batch) for table in tables)
    if may_be_planned and not is_held:
        return
    schema = ", with the schema that it began with" if may_be_planned else ""
    raise CheckpointError(
        f"a batch of source {source.name} was interrupted; finish it first{schema}:"
        " twinstream pipeline run --once"
    )


def _shut_out_earlier(config: PipelineConfig, folders: Folders, check: Callable[[], None]) -> None:
    """Let all changes fail that the owner of an expired lease may still want to make.

    These are commits to tables, and plans of letters. `check` is that of the lock, which may be
    lost meanwhile.
    """
    sink, tables = open_sink(config, check), set[str]()
    for source in config.sources:
        # Tables by a token may be new, so that no journal has them.
        tables.update(tables_of(source, ()), possible_tables(source, sink))
    for _, journal in journals_in(folders):
        tables.update(name for each in journal.entries().values() for name in each.tables)
        check()
        journal.letters.closed()
    for table in sorted(tables):
        sink.renew(table)


def _wait_for_batches(
    config: PipelineConfig, folders: Folders, lock: ExclusiveLock, patience: Deadline
) -> None:
    """Wait until other machines have landed the batches that they have planned.

    Another machine lands a batch that it has planned unless it sees the phase `held`. So after the
    change to this phase, such a batch may be unfinished; then the phase is `closing` again.
    """

    def are_due() -> bool:
        return any(_has_unfinished(folders, each) for each in config.sources)

    while True:
        while are_due() and not patience.expired():
            time.sleep(_PAUSE)
        lock.enter("held")
        if not are_due() or patience.expired():
            return
        lock.enter("closing")


def _has_unfinished(folders: Folders, source: SourceConfig) -> bool:
    return journal_of(folders, source).unfinished() is not None
